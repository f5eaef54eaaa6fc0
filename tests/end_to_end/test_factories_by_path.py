"""Items of a ``defaultdict`` whose key a tensor chooses: what is missing is made on the paths that ask for it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pytest
import torch

from tests import oracle


def _sign(x: torch.Tensor) -> str:
    return "pos" if x.sum() > 0 else "neg"


def numbers_of_rows(x: torch.Tensor) -> Any:
    d = defaultdict(list)
    for i, row in enumerate(x):
        d[_sign(row)].append(i)
    return d, list(d), len(d)


def rows(x: torch.Tensor) -> Any:
    d = defaultdict(list)
    for row in x:
        d[_sign(row)].append(row * 2)
    return {key: torch.stack(value).sum(0) for key, value in d.items()}


def counts(x: torch.Tensor) -> Any:
    d: Any = defaultdict(int)
    for row in x:
        d[_sign(row)] += 1
    return d


def dicts(x: torch.Tensor) -> Any:
    d: Any = defaultdict(dict)
    for i, row in enumerate(x):
        d[_sign(row)][i] = row
    return d


def one_object(x: torch.Tensor) -> Any:
    d = defaultdict(list)
    key = _sign(x)
    found = d[key]
    found.append(1)
    return d, found is d[key], key in d, "pos" in d


def a_key_that_is_there(x: torch.Tensor) -> Any:
    d = defaultdict(list, pos=[x])
    if x.sum() > 0:
        key: Any = "pos"
    elif x.sum() < -4:
        key = None
    else:
        key = 3
    d[key].append(x * 2)
    d[key].append(x)
    return d


def in_a_loop(x: torch.Tensor) -> Any:
    d = defaultdict(list)
    i = 0
    while x.sum() < 10:
        d[_sign(x)].append(i)
        x = x + 1
        i += 1
    return d


def counts_in_a_loop(x: torch.Tensor) -> Any:
    d: Any = defaultdict(int)
    for i in range(int(x.abs().sum())):
        d[_sign(x - i)] += i
    return d


def a_factory_that_counts(x: torch.Tensor) -> Any:
    made = [0]

    def make() -> int:
        made[0] += 1
        return made[0]

    d = defaultdict(make)
    return d[_sign(x)], d["pos"], d, made


def a_factory_of_tensors(x: torch.Tensor) -> Any:
    d: Any = defaultdict(lambda: x * 0)
    for row in x:
        d[_sign(row)] = d[_sign(row)] + row
    return d["pos"], d["neg"]


def no_factory(x: torch.Tensor) -> Any:
    d: Any = defaultdict(None, pos=1)
    return d[_sign(x)]


CASES: list[Callable[[torch.Tensor], Any]] = [
    numbers_of_rows, rows, counts, dicts, one_object, a_key_that_is_there, in_a_loop, counts_in_a_loop,
    a_factory_that_counts, a_factory_of_tensors, no_factory,
]  # fmt: skip
ROWS = ([[1.0, 1.0], [1.0, 2.0]], [[-1.0, -1.0], [-2.0, -1.0]], [[1.0, 1.0], [-1.0, -1.0]], [[-1.0, 0.0], [2.0, 1.0]])


@pytest.mark.parametrize("needs_gradient", [False, True])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_as_eager(case: Callable[[torch.Tensor], Any], needs_gradient: bool) -> None:
    oracle.check(case, *((torch.tensor(one, requires_grad=needs_gradient),) for one in ROWS))
