"""What an operator gives back as it was given is the argument in saved functions too: its class, history, memory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import dy2static
from dy2static import InputSpec, SignatureError
from tests.oracle import difference

SAME: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "plus": lambda t: +t, "float": lambda t: t.float(), "contiguous": lambda t: t.contiguous(),
    "real": lambda t: t.real, "type_as": lambda t: t.type_as(t), "to_dense": lambda t: t.to_dense(),
    "to": lambda t: t.to(torch.float32, memory_format=torch.contiguous_format),
}  # fmt: skip
ASKED: dict[str, Callable[[torch.Tensor, torch.Tensor], bool]] = {
    "type": lambda given, x: type(given) is torch.nn.Parameter,
    "class": lambda given, x: given.__class__ is torch.nn.Parameter,
    "isinstance": lambda given, x: isinstance(given, torch.nn.Parameter),
    "is_leaf": lambda given, x: given.is_leaf,
    "grad_fn": lambda given, x: given.grad_fn is None,
    "is": lambda given, x: given is x,
}
KINDS: tuple[Callable[[], torch.Tensor], ...] = (
    lambda: torch.ones(2, 3),
    lambda: torch.ones(3, 2).t(),
    lambda: torch.nn.Parameter(torch.ones(2, 3)),
    lambda: torch.nn.Parameter(torch.ones(3, 2).t()),
    lambda: torch.ones(2, 3, requires_grad=True) * 1,
)


@pytest.mark.parametrize("asked", [*ASKED, "written"])
@pytest.mark.parametrize("name", SAME)
def test_it_is_the_argument(tmp_path: Path, name: str, asked: str) -> None:
    def ask(x: torch.Tensor) -> torch.Tensor:
        return x * 2 if ASKED[asked](SAME[name](x), x) else x * 1

    def write(x: torch.Tensor) -> torch.Tensor:
        given = SAME[name](x)
        given += 1
        return x * 2

    function = write if asked == "written" else ask
    dy2static.save(function, tmp_path / "saved", input_spec=[InputSpec([2, 3])])
    loaded: Any = dy2static.load(tmp_path / "saved")
    answered = 0
    for make in KINDS:
        mine, theirs = make(), make()
        with torch.set_grad_enabled(asked != "written"):
            expected = function(theirs)
            try:
                got = loaded(mine)
            except SignatureError:  # it was saved for another answer, and says so
                continue
        answered += 1
        assert not difference((got, mine), (expected, theirs))
    assert answered
