"""An operator that changes nothing gives back the very tensor: its class, its history and what hangs on it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from dy2static import to_static
from tests.oracle import same

SAME: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "plus": lambda t: +t, "positive": lambda t: t.positive(), "to": lambda t: t.to(torch.float32),
    "float": lambda t: t.float(), "cpu": lambda t: t.cpu(), "contiguous": lambda t: t.contiguous(),
    "resolve_conj": lambda t: t.resolve_conj(), "real": lambda t: t.real, "type_as": lambda t: t.type_as(t),
    "requires_grad_": lambda t: t.requires_grad_(t.requires_grad),
}  # fmt: skip
KINDS: dict[str, Callable[[], torch.Tensor]] = {
    "parameter": lambda: torch.nn.Parameter(torch.ones(3)), "leaf": lambda: torch.ones(3, requires_grad=True),
    "plain": lambda: torch.ones(3),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", SAME)
def test_it_is_the_tensor(name: str, kind: str) -> None:
    def ask(x: torch.Tensor) -> Any:
        given = SAME[name](x)
        given.other = 3  # type: ignore[attr-defined]
        return (given is x, type(given).__name__, isinstance(given, torch.nn.Parameter), given.is_leaf,
                given.grad_fn is None, given.requires_grad, getattr(given, "note", None), getattr(x, "other", None))

    found = []
    for function in (ask, to_static(ask)):
        x = KINDS[kind]()
        x.note = 7  # type: ignore[attr-defined]
        found.append(function(x))
    same(found[1], found[0])
