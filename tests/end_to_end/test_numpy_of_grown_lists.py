"""Arrays of NumPy's whose sizes only a run knows: of lists that grew, of tensors whose sizes are open.

Every kind of item goes through every use, for lists without items, with one and with several.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from dy2static import InputSpec, to_static
from runtime.errors import ProgramError, TraceError
from tests.oracle import check, check_saved

CALLS = [(torch.tensor(one),) for one in ([1.0, 2.0], [9.0, 9.5], [4.0, 5.0], [-12.5, 0.25])]
"""Lists of four items, none, one and many."""


def floats(x: torch.Tensor) -> Any:
    out = []
    while x.sum() < 10:
        x = x + 1
        out.append(x.sum().item())
    return out


def whole_numbers(x: torch.Tensor) -> Any:
    out = []
    while x.sum() < 10:
        x = x + 1
        out.append(int(x.sum()))
    return out


def flags(x: torch.Tensor) -> Any:
    return [one > 5 for one in floats(x)]


def whole_or_not(x: torch.Tensor) -> Any:
    return [int(one) if one > 5 else one for one in floats(x)]


def scalars(x: torch.Tensor) -> Any:
    return [np.float32(one) for one in floats(x)]


def in_a_tuple(x: torch.Tensor) -> Any:
    return tuple(floats(x))


def pairs(x: torch.Tensor) -> Any:
    return [(one, one * 2) for one in floats(x)]


def rows(x: torch.Tensor) -> Any:
    out = []
    while x.sum() < 10:
        x = x + 1
        out.append(x.detach().numpy())
    return out


def made_arrays(items: Any) -> Any:
    a = np.array(items)
    return a, np.asarray(items), a.shape, a.size, a.ndim, a.itemsize, a.nbytes, len(a), isinstance(a, np.ndarray)


def of_a_dtype(items: Any) -> Any:
    return np.array(items, dtype=np.float32), np.asarray(items, dtype=float), np.array(items, np.float64) * 2


def summed_up(items: Any) -> Any:
    a = np.asarray(items)
    return np.sum(items), np.sum(a, axis=0), a.cumsum(), np.prod(a), np.count_nonzero(items), a.any(), np.all(items)


def largest(items: Any) -> Any:
    return np.max(items), np.argmax(items), np.min(items, axis=0)


def averages(items: Any) -> Any:
    return np.mean(items), np.std(items), np.median(items), float(np.mean(items))


def elementwise(items: Any) -> Any:
    a = np.array(items)
    b = a * 2 + 1
    return b, a / 3, b - a, a > 3, np.sqrt(np.abs(a)), np.where(a > 3, a, 0), -(a * 1.5), np.round(a / 3, 2), np.sort(b)


def parts(items: Any) -> Any:
    a = np.array(items)
    return a[1:], a[::2], a[:-1], a[:3], a[None], a[a.argsort()] if a.ndim == 1 and len(a) > 0 else None, a.T, a.ravel()


def first_and_last(items: Any) -> Any:
    a = np.array(items)
    return a[0], a[-1]


def joined(items: Any) -> Any:
    a = np.array(items)
    return np.concatenate([a, a]), np.stack([a, a]), np.repeat(a, 2), np.append(a, 3), np.outer(a, a), np.pad(a, 1)


def stacked(items: Any) -> Any:
    return np.stack(items), np.stack(items, axis=-1), np.vstack(items)


def in_a_row(items: Any) -> Any:
    return np.concatenate(items), np.hstack(items)


def gone_over(items: Any) -> Any:
    a, total, found = np.array(items), 0, []
    for place, one in enumerate(a):
        total = total + one * place
        found.append(one)
    return total, found, [one * 2 for one in a], a.tolist(), list(a), sum(a)


def as_tensors(items: Any) -> Any:
    a = np.array(items)
    shared = torch.from_numpy(a)
    copied = torch.tensor(a)
    shared += 1
    return a, shared, copied, torch.as_tensor(a).sum(), shared is shared


def written(items: Any) -> Any:
    a = np.array(items)
    a[a > 7] = 5
    a += 1
    b = a * 2
    b[:] = b - 1
    b[...] = a
    return a, b


def asked(items: Any) -> Any:
    a = np.array(items)
    if len(a) > 2 and a.sum() > 3:
        return "many", a.sum()
    return "few", f"{len(a)} {a.sum():.2f}", a.shape


MAKERS = [floats, whole_numbers, flags, whole_or_not, scalars, in_a_tuple, pairs, rows]
USES = [
    made_arrays, of_a_dtype, summed_up, largest, averages, elementwise, parts, first_and_last, joined, stacked,
    in_a_row, gone_over, as_tensors, written, asked,
]  # fmt: skip


def program(make: Callable[[Any], Any], use: Callable[[Any], Any]) -> Callable[[torch.Tensor], Any]:
    def run(x: torch.Tensor) -> Any:
        return use(make(x)), x * 2

    return run


REFUSED = {
    *(("whole_or_not", use.__name__) for use in USES),  # the dtype depends on which items there are
    *((make.__name__, "in_a_row") for make in MAKERS[:6]),  # NumPy joins no numbers, and says so in two ways
    *((make.__name__, "written") for make in (whole_numbers, flags, scalars)),  # a mask of one of two arrays
}


@pytest.mark.parametrize("use", USES, ids=lambda one: one.__name__)
@pytest.mark.parametrize("make", MAKERS, ids=lambda one: one.__name__)
@pytest.mark.sample(24)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_as_eager(make, use, tmp_path):
    function = program(make, use)
    if (make.__name__, use.__name__) in REFUSED:
        with pytest.raises(TraceError, match="D2S21[03]"):
            to_static(function)(*CALLS[0])
        return
    check_saved(function, check(function, *CALLS), tmp_path / "saved.d2s", *CALLS)


def of_sizes(x: torch.Tensor) -> Any:
    n = len(floats(x))
    a = np.zeros(n)
    a += 1
    return (a, np.ones((n, 2)), np.ones((2, n), dtype=np.float32), np.zeros(n, dtype=bool), np.arange(n),
            np.arange(2, n), (np.arange(n) * a).sum())  # fmt: skip


def of_negative_sizes(x: torch.Tensor) -> Any:
    n = len(floats(x)) - 2
    return np.arange(n), np.ones(n)


def scales(x: torch.Tensor) -> Any:
    losses = floats(x.detach())
    y = x
    for weight in np.array(losses) / np.sum(losses):
        y = y * float(weight) + x
    return y.sum() * len(losses), np.mean(losses) > 3 and y


def several_lists(x: torch.Tensor) -> Any:
    xs, ys = [], []
    while x.sum() < 10:
        x = x + 1
        xs.append(x[0].item())
        ys.append(x[1].item())
    a, b = np.array(xs), np.array(ys)
    return a + b, np.dot(a, b), np.array([xs, ys]), np.stack([a, b]).T, a[:, None] * b, np.stack((a, b))[1], a.dot(b)


@pytest.mark.parametrize("backend", ["interpreter", "c"])
@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("function", [of_sizes, of_negative_sizes, scales, several_lists])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_other_programs(function, grad, backend, tmp_path):
    calls = [(x.clone().requires_grad_(grad),) for (x,) in CALLS]
    static = to_static(function, backend=backend)
    check(function, *calls, static=static)
    check_saved(function, static, tmp_path / "saved.d2s", *calls)


def of_rows(x: torch.Tensor) -> Any:
    a = x.numpy()
    return (a.mean(0), a + 1, a[:2], np.sort(a, axis=0), a.T, a.T @ a, a.reshape(-1), a.shape, a[1:] - a[:-1],
            a[::-1].copy(), np.where(a > 0, a, -a), np.concatenate([a, a * 2], axis=1))  # fmt: skip


def test_open_sizes(tmp_path):
    static = to_static(of_rows, input_spec=[InputSpec([None, 3])])
    calls = [(torch.randn(rows, 3),) for rows in (5, 2, 1, 9)]
    check(of_rows, *calls, static=static)
    check_saved(of_rows, static, tmp_path / "saved.d2s", *calls)
    assert len(static.programs) == 1


def test_another_rank_for_one_size():
    """What was found for most sizes does not hold for one; the run says so."""
    static = to_static(lambda x: np.squeeze(np.array(floats(x))))
    assert static(*CALLS[0]).shape == (4,)
    with pytest.raises(ProgramError, match="D2S213"):
        static(torch.tensor([4.0, 5.0]))
