"""NumPy's functions and constant arrays, given numbers that a tensor decides: right, or refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from dy2static import to_static
from dy2static.errors import TraceError
from tests.oracle import check, same

INPUTS = [torch.tensor(values) for values in ([1.0, 2.0, 3.0], [-1.0, -2.0, 0.5], [-1.0, -1.0, -1.0])]
TABLE = np.array([0.1, 0.2, 0.3, 0.4])


def chosen(x: Any, n: int) -> Any:
    factor = 0.0
    if n > 1:
        factor = TABLE[n]
    y = x + 0
    y *= factor
    y += TABLE[n]
    return y, x * factor, TABLE[1] * n


def summed(x: Any, n: int) -> Any:
    total = 0.0
    for i in range(n):
        total = total + TABLE[i]
    return x * total, total


USES: list[Callable[[Any, int], Any]] = [
    lambda x, n: x * TABLE[n],
    lambda x, n: x * np.array([1, 2, 3, 4])[-n],
    lambda x, n: (np.arange(6)[n], np.arange(6).__getitem__(n), np.ndarray.__getitem__(np.arange(6), n)),
    lambda x, n: list(map(np.arange(6).__getitem__, [n, 0])),
    lambda x, n: (TABLE[n] + 1, TABLE[n] > 0.2, float(TABLE[n]), type(TABLE[n])),
    lambda x, n: np.array([1, 2, 3, 4], dtype=np.int32)[n],
    lambda x, n: x if np.array([True, False, True, False])[n] else -x,
    lambda x, n: [5, 6, 7, 8, 9][np.array([1, 2, 3, 4])[n]],
    lambda x, n: TABLE[:2][n],  # there are not so many
    lambda x, n: x * TABLE[2 if n > 1 else 1],
    chosen, summed,
    lambda x, n: (x * TABLE[x.argmax()], TABLE[(x > 0).sum()]),
    lambda x, n: (torch.tensor([TABLE[n], 1.0]), torch.tensor([[np.arange(4)[n]], [n]]), torch.as_tensor([TABLE[n]])),
    lambda x, n: (torch.tensor((np.float32([1, 2, 3, 4])[n], 2)), torch.tensor([np.array([True, False] * 2)[n]])),
    lambda x, n: (torch.tensor([np.int32([1, 2, 3, 4])[n], 2]), torch.tensor([np.int32([1, 2, 3, 4])[n]])),
    lambda x, n: (torch.tensor([x.detach().numpy()[0], 1]), torch.tensor([x.detach().double().numpy()[0]])),
    lambda x, n: (np.isscalar(n), np.isscalar(x.sum().item()), np.isscalar(n > 1), np.isscalar(str(n))),
    lambda x, n: (np.isscalar(x), np.isscalar(n if n > 1 else 2.0), np.isscalar(element=n)),
    lambda x, n: np.iterable(n),
    lambda x, n: np.issubdtype(type(n), np.integer),
    lambda x, n: np.arange(6)[n:], lambda x, n: (np.eye(4)[n], np.eye(4)[n, 0], np.eye(4)[n, ::-1]),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(USES)))
@pytest.mark.parametrize("grad", [False, True])
def test_uses(number: int, grad: bool) -> None:
    use = USES[number]

    def function(x: torch.Tensor) -> Any:
        return use(x, int((x > 0).sum()))

    check(function, *((x.clone().requires_grad_(grad),) for x in INPUTS))


def test_a_table_that_changes() -> None:
    table = np.array([1.0, 2.0, 3.0, 4.0])

    def function(x: torch.Tensor) -> Any:
        return x * table[int((x > 0).sum())]

    static = to_static(function)
    check(function, (INPUTS[0],), static=static)
    table[3] = 7
    check(function, (INPUTS[0],), static=static)


REFUSED: list[Callable[[Any, int], Any]] = [
    lambda x, n: np.full(2, n), lambda x, n: np.full(2, float(x.detach().sum())), lambda x, n: np.full((2,), [n, 1]),
    lambda x, n: np.full(2, fill_value=n), lambda x, n: np.full_like(np.ones(2), n),
    lambda x, n: np.meshgrid(range(n)), lambda x, n: np.array(range(n)), lambda x, n: np.matrix([n]),
    lambda x, n: np.add.reduce([n, 1]), lambda x, n: np.add.outer([n], [1]), lambda x, n: np.ma.array([n]),
    lambda x, n: np.poly1d([1, 2])(n), lambda x, n: np.ones(n, order="F"), lambda x, n: np.arange(0, 6, n),
    lambda x, n: np.zeros(n, dtype=np.str_), lambda x, n: np.empty(n),
    lambda x, n: np.zeros(3)[n > 1], lambda x, n: np.array(["a", "b", "c", "d"])[n],
    lambda x, n: np.zeros(4).__setitem__(n, 1),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_refused(number: int) -> None:
    use = REFUSED[number]

    def function(x: torch.Tensor) -> Any:
        return use(x, int((x > 0).sum()))

    with pytest.raises(TraceError, match="D2S21[03]"):
        to_static(function)(INPUTS[0])


def test_a_write_at_a_place_of_the_run() -> None:
    def function(x: torch.Tensor) -> Any:
        made = np.zeros(4)
        made[int((x > 0).sum())] = 1
        return made

    static = to_static(function)
    for x in INPUTS:
        same(static(x), function(x))


def test_a_write_to_an_array_from_outside_is_refused() -> None:
    outside = np.zeros(4)

    def function(x: torch.Tensor) -> Any:
        outside[int((x > 0).sum())] = 1
        return x

    with pytest.raises(TraceError, match="D2S213"):
        to_static(function)(INPUTS[0])


PLACES = {
    "numbers": lambda i, j: [i, j], "with known ones": lambda i, j: [i, 1, -1], "one": lambda i, j: [i],
    "nested": lambda i, j: [[i, 0], [1, j]], "of a sum": lambda i, j: [i + j - 1],
    "bools as numbers": lambda i, j: [i, True],
}  # fmt: skip
SOURCES = {
    "vector": lambda x: x.detach().numpy(), "matrix": lambda x: (x[:, None] * x).detach().numpy(),
    "outside": lambda x: np.arange(3.0), "outside matrix": lambda x: np.arange(12).reshape(3, 4),
}  # fmt: skip
KEYS = {
    "alone": lambda p: p, "with a slice": lambda p: (p, slice(1, None)), "with all": lambda p: (..., p),
    "with a number": lambda p: (p, 0), "with others": lambda p: (p, [1]),
}  # fmt: skip


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("places", PLACES)
@pytest.mark.sample(6)
def test_lists_of_places(places, source, key):
    """``a[[i, 1]]`` where only the run knows ``i``."""
    of, make, as_key = PLACES[places], SOURCES[source], KEYS[key]

    def function(x, index):
        i, j = index.tolist()
        return make(x)[as_key(of(i, j))], x * 2

    calls = [(torch.tensor([1.0, -2.0, 3.0], requires_grad=True), torch.tensor(index)) for index in (
        [0, 1], [2, 2], [-1, 1], [1, 5])]  # fmt: skip
    check(function, *calls)


def test_flags_of_the_run_are_refused():
    def function(x):
        return x.numpy()[[bool(x[0] > 0), True, bool(x[1] > 0)]]

    with pytest.raises(TraceError, match="D2S213"):
        to_static(function)(torch.tensor([1.0, -2.0, 3.0]))
