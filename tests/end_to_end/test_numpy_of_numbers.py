"""NumPy's functions of Python's numbers and lists that only the run knows: ``np.log(n)``, ``np.mean(losses)``."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from dy2static import to_static
from dy2static.errors import TraceError
from tests.oracle import check

CALLS = [[torch.tensor([1.0, 2.0, 3.0])], [torch.tensor([-1.0, 2.0, -3.5])], [torch.ones(4)]]


def of_one(x):
    a, b = x.tolist()[:2]
    return (np.log(abs(a)), np.hypot(a, b), np.maximum(a, 0.5), np.power(abs(a), 2), np.isnan(a), np.sign(a),
            np.exp(a).item(), float(np.tanh(b)), np.add(a, b) > 0)  # fmt: skip


def of_zeros(x):
    zero = (x.sum() * 0).item()
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.log(zero)), float(np.divide(1.0, zero)), np.float64(-zero)


def of_whole_numbers(x):
    n = int(x.abs().sum()) + 1
    return np.sqrt(n), np.add(n, 1), np.multiply(n, 2.5), np.floor_divide(n, 2), np.sqrt(n * 2**62)


def as_a_condition(x):
    value = np.float64(x.sum().item())
    if np.abs(value) > 0.5 and value > 0:
        return x * value, isinstance(value, float), type(value)
    return x - value, None, type(value)


def of_lists(x):
    items = [one.item() for one in x[:3]]
    counts = [int(one * 3) for one in items]
    return (np.mean(items), np.sum(counts), np.max([items, items], axis=0), np.array(counts), np.array((items[0], 2)),
            np.std(x.tolist()), np.argsort(items), np.percentile(items, 30), np.sum([items[0], counts[0]]),
            np.linalg.norm(items))  # fmt: skip


def of_losses(x):
    losses = []
    for factor in range(3):
        losses.append((x * factor).sum().item())
    if np.mean(losses) > 0:
        return x
    return x * float(np.min(losses))


@pytest.mark.parametrize("function", [of_one, of_zeros, of_whole_numbers, as_a_condition, of_lists, of_losses])
def test_as_eager(function):
    check(function, *CALLS)


def test_other_lists_are_refused():
    with pytest.raises(TraceError, match="D2S213"):
        to_static(lambda x: np.where([x.sum().item() > 0, True], 1, 2))(*CALLS[0])
