"""Everyday uses of NumPy's functions on arrays and numbers of the run: questions, lists of tensors, scalars made of
Python's numbers, arrays that differ between paths, methods that write, texts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from dy2static import to_static
from runtime.errors import TraceError
from tests.oracle import check

CALLS = [(torch.tensor(one),) for one in ([1.0, 2.0, 3.0], [-1.5, 0.25, 1.0], [3.0, 1.0, 2.0], [0.0, -0.0, -2.0])]


def questions(x: torch.Tensor) -> Any:
    a = x.numpy()
    if np.allclose(a, np.sort(a)):
        return x, np.array_equal(a, a)
    return x * 2, np.array_equal(a, a * 2), np.allclose(a, a + 1e-9), np.array_equiv(a, a[:1])


def contained(x: torch.Tensor) -> Any:
    a = x.numpy()
    return 1.0 in a, a[0] in (1, 2), 2 not in a, 0.25 in a.tolist(), x


def scalars(x: torch.Tensor) -> Any:
    s, n = x.sum().item(), int(x.sum())
    return np.float32(s), np.float64(n), np.int64(n), np.int64(s), np.float32(n) * 2, np.bool_(n), np.float64(s) + 1, x


def lists_of_tensors(x: torch.Tensor) -> Any:
    rows = [x * 1, x + 1]
    return np.stack(rows), np.concatenate([x, x])[1:], np.array([x.numpy(), x.numpy() * 2]).max(0), np.array(rows), x


def lists_of_both(x: torch.Tensor) -> Any:
    a, n = x.numpy(), x.sum().item()
    return np.array([a[0], 1.0, n]), np.array([[a[0], 2], [n, a[1]]]), np.asarray([a, a]), np.vstack((x, a)), x


def one_of_two_dtypes(x: torch.Tensor) -> Any:
    a = x.numpy() * 1
    if x.sum() > 2:
        a = a.astype(np.float64)
    b = a * 2 if x[0] > 0 else x.argsort().numpy()
    c = np.zeros(3)
    c[0] = b.tolist()[0]
    c[1] = min(a[0], 1)
    return a + b, c, b.sum(), np.tanh(a), b > a, 1 - b, np.stack([a, b]), np.maximum(a, 0.5), x


def a_number_of_two_types(x: torch.Tensor) -> Any:
    a, s = x.numpy(), np.float64(0.5)
    if x.sum() > 2:
        s = 2
    return a * s, s - a, np.minimum(a, s), a > s, torch.as_tensor(s) + x, torch.tensor(s) + x, x


def methods_that_write(x: torch.Tensor) -> Any:
    a, b = x.numpy() * 1, np.zeros(3, np.float32)
    a.sort()
    c = a
    c[0] = np.int64(7)
    b.fill(2)
    b[1:].fill(a[1])
    d = np.empty(3, np.float32)
    e = np.add(a, b, out=d)
    np.multiply(d, 2, d)
    np.copyto(b[:1], a[:1])
    return a, b, d, e is d, x


def filled_on_a_path(x: torch.Tensor) -> Any:
    a, b = np.zeros(3), np.ones(70000)
    if x.sum() > 2:
        a.fill(1)
        b.fill(2)
    return a, b[-1], x


def places(x: torch.Tensor) -> Any:
    a = x.numpy() * 1
    a[[0, -1]] = 5
    a[[1]] += 1
    a[1] = min(a[1], 1)
    a[0] = 2 if x.sum() > 2 else a[2]
    return a, a.view() * 2, x


def texts(x: torch.Tensor) -> Any:
    a = x.numpy()
    wide = a.astype(np.float64)
    return f"{a[0]:.2f} {a[1]:>8.3f}", f"{wide.sum()}", str(wide[1]), repr(wide[2]), f"{a.argmax()}", str(a.any()), x


def in_a_loop(x: torch.Tensor) -> Any:
    a, found = x.numpy() * 1, []
    for _ in range(int((x > 0).sum())):
        a = a * 0.5
        a.sort()
        if np.array_equal(a, np.abs(a)):
            found.append(a.max())
    return a, found, x


FUNCTIONS: list[Callable[..., Any]] = [
    questions, contained, scalars, lists_of_tensors, lists_of_both, one_of_two_dtypes, a_number_of_two_types,
    methods_that_write, filled_on_a_path, places, texts, in_a_loop,
]  # fmt: skip


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_uses(function: Callable[..., Any]) -> None:
    check(function, *CALLS, paths=("program",))


def test_a_list_of_tensors_that_need_gradients_raises_as_in_eager() -> None:
    def stacked(x: torch.Tensor) -> Any:
        return np.stack([x, x * 2])

    check(stacked, (torch.ones(2, requires_grad=True),), paths=("program",))


OUTSIDE = np.zeros(3, np.float32)


def written_outside(x: torch.Tensor) -> torch.Tensor:
    OUTSIDE[:] = x.numpy()
    return x


def text_of_a_float32(x: torch.Tensor) -> str:
    return str(x.numpy()[0])


def written_where_it_does_not_fit(x: torch.Tensor) -> Any:
    return np.add(x.numpy(), 1, out=np.zeros((2, 3), np.float32))


@pytest.mark.parametrize("function", [
    written_outside, text_of_a_float32, written_where_it_does_not_fit])  # fmt: skip
def test_refused(function: Callable[..., Any]) -> None:
    with pytest.raises(TraceError) as caught:
        to_static(function)(torch.ones(3))
    assert caught.value.code == "D2S213" and caught.value.location is not None
