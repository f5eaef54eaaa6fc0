"""Generators that decide on tensors, given to what adds their items to a list, deque or dict that there is."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.oracle import check, check_saved


def chosen(x):
    for v in x:
        if v > 0:
            yield v * 2


def added(x):
    items = [x.sum()]
    items += chosen(x)
    return items, len(items)


def added_twice(x):
    items = [x.sum()]
    items += (v for v in x if v > 1)
    items += chosen(x)
    return items


def part(x):
    items = [x.sum(), x.mean()]
    items[1:] = chosen(x)
    return items, len(items)


def first_part(x):
    items = [x.sum(), x.mean()]
    items[:1] = (v * 3 for v in x if v > 0)
    return items


def extended(x):
    items = [x.sum()]
    items.extend(chosen(x))
    return items


def queued(x):
    items = deque([x.sum()])
    items += chosen(x)
    return items


def on_a_path(x):
    items = [x.sum()]
    if x[0] > 0:
        items += chosen(x)
    return torch.stack(items).sum(), len(items)


CALLS = [(torch.tensor([1.0, -2.0, 3.0]),), (torch.tensor([5.0, 6.0, 7.0]),), (torch.tensor([-1.0, -1.0, -1.0]),)]


@pytest.mark.parametrize("gradient", [False, True])
@pytest.mark.parametrize("function", [added, added_twice, part, first_part, extended, queued, on_a_path])
def test_as_eager(function: Callable[..., Any], gradient: bool, tmp_path: Path) -> None:
    calls = [tuple(x.clone().requires_grad_(gradient) for x in call) for call in CALLS]
    check_saved(function, check(function, *calls), tmp_path / "added.d2s", *calls)
