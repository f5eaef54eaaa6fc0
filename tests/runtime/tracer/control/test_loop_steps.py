"""Which sizes and numbers of a loop become one group, as its Program shows."""

from __future__ import annotations

import pytest
import torch

from tests.oracle import check


def in_step(x, bound):
    a, b, i = x, x[1:], 0
    while a.sum() < bound:
        a, b, i = torch.cat([a, x[:1]]), torch.cat([b, x[:1]]), i + 1
    return a, b, i


def twice_as_much(x, bound):
    a, b = x, x
    while a.sum() < bound:
        a, b = torch.cat([a, x[:1]]), torch.cat([b, x[:2]])
    return a, b


def not_in_step(x, bound):
    a, b = x, x
    while a.sum() < bound:
        a, b = torch.cat([a, x[:1]]), torch.cat([b, a])
    return a, b


def by_data(x, bound):
    a, b = x, x
    while a.sum() < bound:
        new = x[x > 0]
        a, b = torch.cat([a, new]), torch.cat([b, new])
    return a, b


def shorter(x, bound):
    a, b = x[1:], x
    while a.shape[0] > 0 and a.sum() < bound:
        a, b = a[1:], b[:-1]
    return a, b


def one_of_several(x, bound):
    a, b = x, x if x.sum() > 0 else None
    while a.sum() < bound:
        a = torch.cat([a, x[:1]])
        if b is not None:
            b = torch.cat([b, x[:1]])
    return a, b


@pytest.mark.parametrize(
    ("function", "sizes"),
    [
        (in_step, {"n": "n - 1"}), (twice_as_much, {"n": "2*n - 3"}), (not_in_step, None),
        (by_data, {"n": "n"}), (one_of_several, {"n": "n"}),
    ],
    ids=lambda one: getattr(one, "__name__", ""),
)  # fmt: skip
def test_groups(function, sizes) -> None:
    x = torch.tensor([0.5, 1.0, 0.25])
    static = check(function, *([x, torch.tensor(bound)] for bound in (0.0, 5.0, 9.0)))
    (loop,) = [op for op in static.programs[0].block.walk() if op.name == "while_loop"]
    dims = [str(out.type.shape[0]) for out in loop.outputs if getattr(out.type, "shape", ())]
    first, second = dims
    name = next(iter(set("".join(c if c.isalnum() else " " for c in first).split())))
    if sizes is None:
        assert name not in second.split()
    else:
        assert second.replace(name, "n") == sizes[first.replace(name, "n")]


def test_sizes_that_become_less() -> None:
    check(shorter, *([torch.arange(6.0), torch.tensor(bound)] for bound in (-1.0, 12.0, 99.0)))
