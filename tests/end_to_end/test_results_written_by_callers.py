"""What a call gives, written in place by its caller: results that are views on the path taken."""

from __future__ import annotations

import pytest
import torch

from dy2static import to_static


def part(x):
    y = x * 2
    return y[:2] if x.sum() > 0 else y[1:]


def part_of_what_backward_keeps(x):
    y = x.exp()
    return (y[:2] if x.sum() > 0 else y[1:]) * 1


def two_parts_of_one(x):
    y = x * 2
    return (y[:2] if x.sum() > 0 else y[1:]), x * 3


def turned(x):
    y = x * 2
    return y.t() if x.sum() > 0 else y.view(3, 1)


def straight(x):
    return (x * 2)[:2]


@pytest.mark.parametrize("f", [part, part_of_what_backward_keeps, two_parts_of_one, turned, straight])
@pytest.mark.parametrize("leaf", [True, False])
def test_written(f, leaf):
    converted = to_static(f)
    for values in ((1.0, 2.0, 3.0), (-1.0, -2.0, -3.0), (1.0, 2.0, -0.5)):
        found = []
        for call in (f, converted):
            x = torch.tensor(values, requires_grad=True)
            given = x if leaf else x * 1
            result = call(given)
            first = result[0] if isinstance(result, tuple) else result
            first += 1
            first.mul_(2)
            rest = result[1].sum() if isinstance(result, tuple) else 0
            (first.sum() + rest).backward()
            found.append((first.detach(), first.stride(), given.detach(), x.grad))
        torch.testing.assert_close(found[1], found[0])
