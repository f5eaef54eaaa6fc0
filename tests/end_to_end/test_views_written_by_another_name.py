"""Views without a history that get one where a tensor is written which is the view itself on some paths only."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from tests.oracle import check


def or_detached(y: torch.Tensor) -> torch.Tensor:
    p = torch.zeros(3).view(3)
    t = p
    if y.sum() > 0:
        t = p.detach()
    t += y * 2
    p += 1
    return p * 1


def or_another_view(y: torch.Tensor) -> torch.Tensor:
    r = torch.zeros(3)
    p = r.view(3)
    t = p if y.sum() > 0 else r[:3]
    t += y
    p += 1
    return p * 1


def or_other_memory(y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    p, o = torch.zeros(3).view(3), torch.ones(3)
    t = p if y.sum() > 0 else o
    t += y
    p += 1
    return p * 1, o * 1


def on_a_path(y: torch.Tensor) -> torch.Tensor:
    p = torch.zeros(3).view(1, 3)[0]
    if y.sum() < 1.5:
        t = p
        if y.sum() > 0:
            t = p.detach()
        t += y * 2
    p += 1
    return p * 1


def twice(y: torch.Tensor) -> torch.Tensor:
    p, q = torch.zeros(3).view(3), torch.zeros(3).view(3)
    a, b = (p, q) if y.sum() > 0 else (q, p)
    a += y
    p += 1
    b += y * 3
    q += 2
    return p * q


def read_before(y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    p = torch.zeros(3).view(3)
    t = p if y.sum() > 0 else p.detach()
    t += y
    z = p * 2
    p += 1
    return p * 1, z


def in_a_loop(y: torch.Tensor) -> torch.Tensor:
    p = torch.zeros(3).view(3)
    for i in range(int(y.abs().sum())):
        t = p if y.sum() > i else p.detach()
        t += y
        p += 1
    return p * 1


def without_a_history(y: torch.Tensor) -> torch.Tensor:
    p = torch.zeros(3).view(3)
    t = p if y.sum() > 0 else torch.ones(3)
    t += y.detach()
    p += y
    return p * 1


@pytest.mark.parametrize("needs", [False, True])
@pytest.mark.parametrize("function", [
    or_detached, or_another_view, or_other_memory, on_a_path, twice, read_before, in_a_loop, without_a_history,
], ids=lambda one: one.__name__)  # fmt: skip
def test_like_eager(function: Callable[..., object], needs: bool) -> None:
    values = ([0.1, 0.2, 0.3], [-1.0, -2.0, -3.0], [-1.0, -2.0, 3.0], [1.0, 2.0, 3.0])
    check(function, *[(torch.tensor(one, requires_grad=needs),) for one in values])
