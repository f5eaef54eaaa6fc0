"""``torch.autograd.grad`` in a function under vmap, where a gradient passes a path that some rows do not take."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import dy2static
from tests.over_rows import judge

Tensor = torch.Tensor


def added(x: Tensor) -> Tensor:
    loss = (x * x).sum()
    if x.sum() > 0:
        loss = loss + (x * 5).sum()
    return torch.autograd.grad(loss, x)[0]


def constant(x: Tensor) -> Tensor:
    p = x * 2 if x.sum() > 0 else torch.ones(3)
    return torch.autograd.grad((p * x).sum(), x)[0]


def detached(x: Tensor) -> Tensor:
    p = x.detach() if x.sum() > 0 else x
    return torch.autograd.grad((p * x).sum(), x)[0]


def without_history(x: Tensor) -> Tensor:
    if x.sum() > 0:
        with torch.no_grad():
            p = x * 2
    else:
        p = x * 2
    return torch.autograd.grad((p * x).sum(), x)[0]


def written(x: Tensor) -> Tensor:
    p = torch.ones(3)
    if x.sum() > 0:
        p[1:] = x[:2]
    return torch.autograd.grad((p * x).sum(), x)[0]


def of_a_list(x: Tensor) -> Tensor:
    p = [torch.ones(3), x * 2][int(x.sum() > 0)]
    return torch.autograd.grad((p * x).sum(), x)[0]


def in_a_loop(x: Tensor) -> Tensor:
    loss = (x * 3).sum()
    for r in x:
        if r > 0:
            loss = loss + r * r
    return torch.autograd.grad(loss, x)[0]


def swapped(x: Tensor) -> Tensor:
    a, b = x * 2, torch.ones(3)
    if x.sum() > 0:
        a, b = b, a
    return torch.autograd.grad((a * x).sum() + b.sum() * 3, x)[0]


def item_of_a_list(x: Tensor) -> Tensor:
    found = [x.sum(), (x * x).sum()]
    if x.sum() > 0:
        found[0] = found[0] + (x * 5).sum()
    return torch.autograd.grad(found[0] * 2 + found[1], x)[0]


def penalty(x: Tensor) -> Tensor | float:
    return (x * 4).sum() if x.sum() > 0 else torch.zeros(())


def by_a_helper(x: Tensor) -> Tensor:
    return torch.autograd.grad((x * x).sum() + penalty(x), x)[0]


def unused(x: Tensor) -> Tensor:
    w, q = x * 1, x * 3
    p = w if x.sum() > 0 else q
    (g,) = torch.autograd.grad(p.sum(), w, allow_unused=True)
    return torch.zeros(3) if g is None else g * 2


def materialized(x: Tensor) -> Tensor:
    w, q = x * 1, x * 3
    p = w if x.sum() > 0 else q
    return torch.autograd.grad(p.sum(), w, allow_unused=True, materialize_grads=True)[0]


def infinite(x: Tensor) -> Tensor:
    p = (x - x).sqrt().sum() if x.sum() > 100 else (x * x).sum()
    return torch.autograd.grad(p + x.sum(), x)[0]


def list_of_items(x: Tensor) -> Tensor:
    found = []
    for row in range(3):
        found.append(x[row] * 2)
    loss = x.sum()
    if x.sum() > 0:
        loss = loss + torch.stack(found).square().sum()
    return torch.autograd.grad(loss, x)[0]


FUNCTIONS = [added, constant, detached, without_history, written, of_a_list, in_a_loop, swapped, item_of_a_list,
             by_a_helper, unused, materialized, infinite, list_of_items]  # fmt: skip
ROWS = {
    "mixed": [[2.0, 2, 2], [-1, -1, -1]], "the other way round": [[-1.0, -1, -1], [2, 2, 2]],
    "all": [[2.0, 2, 2], [3, 1, 2]], "none": [[-1.0, -1, -1], [-2, -3, -1]],
    "many": [[2.0, -1, 2], [-1, 0.5, -1], [3, 3, 3], [-4, 1, 2]],
}  # fmt: skip


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_each_row_has_its_own_gradient(function: Callable[[Tensor], Tensor], rows: str) -> None:
    calls = [[torch.tensor(row, dtype=torch.float32, requires_grad=True)] for row in ROWS[rows]]
    assert judge(lambda: function, calls) == "same"
    assert judge(lambda: function, calls, mapped=dy2static.to_static(function)) == "same"


def test_in_programs_of_files(tmp_path: Path) -> None:
    for function in (added, in_a_loop, materialized):
        calls = [[torch.tensor(row, dtype=torch.float32, requires_grad=True)] for row in ROWS["mixed"]]
        converted = dy2static.to_static(function)
        converted(calls[0][0])
        loaded = dy2static.load(dy2static.save(converted, tmp_path / function.__name__))
        assert judge(lambda f=function: f, calls, mapped=loaded) == "same"  # type: ignore[misc]


def test_a_step_of_weights_with_a_penalty_in_a_branch() -> None:
    def step(weight: Tensor, x: Tensor, y: Tensor) -> Tensor:
        loss = (weight @ x - y).square()
        if loss > 1:
            loss = loss + weight.abs().sum()
        (gradient,) = torch.autograd.grad(loss, weight)
        return gradient

    generator = torch.Generator().manual_seed(0)
    weight = torch.randn(3, generator=generator, requires_grad=True)
    x, y = torch.randn(8, 3, generator=generator), torch.randn(8, generator=generator)
    got = dy2static.vmap(step, (None, 0, 0))(weight, x, y)
    torch.testing.assert_close(got, torch.stack([step(weight, *row) for row in zip(x, y)]))
