"""Items of dicts and lists made on a path inside a path, while another path leaves other keys or another length."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

from tests.oracle import check


@dataclass(frozen=True)
class Frozen:
    a: torch.Tensor
    n: int = 0


class Named(NamedTuple):
    a: torch.Tensor
    n: int = 0


MAKE: dict[str, Callable[[torch.Tensor], Any]] = {
    "tensor": lambda x: x * 2,
    "number": lambda x: float(x.detach().sum()),
    "array": lambda x: x.detach().numpy() * 2,
    "frozen": lambda x: Frozen(x * 2, 1),
    "named": lambda x: Named(x * 2, 1),
    "tuple": lambda x: (x * 2, 1),
    "nested": lambda x: (Frozen(x * 2), [x.detach().numpy() + 1]),
}
HELD: dict[str, Any] = {
    "tensor": torch.zeros(3), "number": 0.5, "array": np.zeros(3, np.float32), "frozen": Frozen(torch.zeros(3)),
    "named": Named(torch.zeros(3)), "tuple": (torch.zeros(3), 3), "nested": None,
}  # fmt: skip
INNER = ("if x[0] > 0:", "for _ in range(int((x > 0).sum())):", "if True:")
OTHER = {
    "{'a': first}": ("d['b'] = x * 2", "d['b'] = make(x)", "d['a'] = 1", "d.clear()", "d['b'] = d.pop('a')"),
    "[first]": ("d.append(x * 2)", "d.append(make(x))", "d[0] = 1", "d.clear()", "d.insert(0, None)"),
}
FORMS = list(itertools.product(MAKE, OTHER, ("make(x)", "held"), INNER))


@pytest.mark.sample(24)
@pytest.mark.parametrize(("kind", "start", "first", "inner"), FORMS, ids=["-".join(form) for form in FORMS])
def test_as_eager(kind: str, start: str, first: str, inner: str, tmp_path: Any) -> None:
    key = 0 if start.startswith("[") else "a"
    for number, other in enumerate(OTHER[start]):
        path = tmp_path / f"made_{number}.py"
        path.write_text(
            f"def f(x):\n    first = {first}\n    d = {start}\n    if x.sum() < 1.5:\n        {inner}\n"
            f"            d[{key!r}] = make(x)\n    else:\n        {other}\n    return d\n")
        names: dict[str, Any] = {"make": MAKE[kind], "held": HELD[kind]}
        exec(compile(path.read_text(), str(path), "exec"), names)
        calls = [(torch.tensor(row, requires_grad=True),) for row in ([1.0, 2, 3], [1.0, 2, -3], [-1.0, -2, -3])]
        check(names["f"], *calls)
