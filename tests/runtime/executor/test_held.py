"""Tensors that an autograd.Function only holds: which writes they see, in which memory and in which thread."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.autograd import Function

from dy2static import to_static
from runtime.executor import held
from runtime.executor.held import hold, note_write
from tests.oracle import check


class HoldsEmpty(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.e = x.new_zeros(0)
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * (ctx.e.sum() + 3)


class HoldsNoRows(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.e = x[:0]
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * (ctx.e.sum() + 3)


class HoldsWeight(Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.w = w
        return x * w

    @staticmethod
    def backward(ctx, g):
        return g * ctx.w, None


def empty(x, e):
    r = HoldsEmpty.apply(x)
    e.add_(1)
    return r.sum()


def empty_of_a_written_one(x, e):
    h = x * 1
    r = HoldsNoRows.apply(h)
    if e.numel() == 0:
        h.add_(1)
    return r.sum() + h.sum()


def weight(x, w):
    r = HoldsWeight.apply(x, w)
    if x.sum() > 0:
        w.mul_(2)
    return r.sum()


@pytest.mark.parametrize("function", [empty, empty_of_a_written_one])
def test_empty_tensors_share_no_memory(function: Callable[..., Any]) -> None:
    check(function, *((torch.tensor(values).requires_grad_(), torch.zeros(0)) for values in ([1.0, 2.0], [-1.0, -2.0])))


@pytest.mark.parametrize("make", [
    torch.Tensor.to_sparse, lambda one: one.to("meta"),
], ids=["sparse", "meta"])  # fmt: skip
def test_tensors_without_a_storage_are_their_own_memory(make: Callable[[torch.Tensor], torch.Tensor]) -> None:
    other = make(torch.zeros(2))
    one, plain, copy = hold(other), hold(torch.zeros(2)), torch.ones(2)
    note_write(torch.zeros(2), copy)
    note_write(make(torch.zeros(2)), copy)
    assert one.tensor is other and plain.tensor.sum() == 0
    note_write(other, copy)
    assert one.tensor is copy


def test_a_cell_follows_what_is_written() -> None:
    first, second, third = torch.zeros(2), torch.zeros(2), torch.zeros(2)
    one, part = hold(first), hold(first[1:])
    assert hold(first) is one
    note_write(first, second)
    note_write(first, torch.zeros(2))  # the cell is not there any more
    note_write(second, third)
    assert one.tensor is third
    with pytest.raises(RuntimeError, match="written in place"):
        _ = part.tensor


def test_freed_cells_leave_nothing() -> None:
    gc.collect()
    before = len(held._cells)
    tensor = torch.zeros(2)
    cells = [hold(tensor), hold(tensor), hold(tensor[:1]), hold(torch.zeros(3))]
    note_write(tensor, torch.zeros(2))
    assert len(held._cells) > before
    del cells
    gc.collect()
    assert len(held._cells) == before


def test_threads() -> None:
    road = to_static(weight)
    errors: list[BaseException] = []
    leaves: list[torch.Tensor] = []

    def calls() -> None:
        try:
            for _ in range(60):
                leaves.append(torch.ones(3, requires_grad=True))
                road(leaves[-1], torch.ones(3)).backward()
        except BaseException as error:
            errors.append(error)

    def cells() -> None:
        try:
            for _ in range(3000):
                base = torch.zeros(1)
                one, two = hold(base), hold(base)
                note_write(base, torch.ones(1))
                if not one.tensor.item() == two.tensor.item() == 1:
                    raise ValueError("an old content")
        except BaseException as error:
            errors.append(error)

    calls()
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=target) for target in (calls, cells, cells, cells)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
    finally:
        sys.setswitchinterval(before)
    assert not errors
    assert all(one.grad is not None and torch.equal(one.grad, torch.full((3,), 2.0)) for one in leaves)
