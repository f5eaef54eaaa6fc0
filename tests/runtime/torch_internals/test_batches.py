"""Batched tensors: what they hold, and what they look like."""

from __future__ import annotations

from typing import Any

import torch

from runtime.torch_internals import batches


def test_a_row_looks_as_the_function_sees_it() -> None:
    looks = []

    def f(x: torch.Tensor) -> torch.Tensor:
        row = batches.like_a_row(x)
        looks.append((row.shape, row.dtype, row.requires_grad, row.is_leaf, batches.levels_of(row)))
        return x

    torch.vmap(f, 1)(torch.ones(2, 5, requires_grad=True))
    torch.vmap(f)(torch.ones(0, 2, dtype=torch.int64))
    assert looks == [((2,), torch.float32, True, False, set()), ((2,), torch.int64, False, True, set())]


def test_the_rows_behind_the_wrappers() -> None:
    found: list[Any] = []

    def inner(x: torch.Tensor) -> torch.Tensor:
        with batches.without_transforms():
            plain, levels = batches.rows_of(x)
        found.append((plain, len(levels), batches.is_transformed(x), batches.needs_gradient(x)))
        return (batches.batched(plain, levels) - x).sum()

    x = torch.arange(24.0).reshape(2, 3, 4)
    assert torch.equal(torch.vmap(torch.vmap(inner, 1), 1)(x), torch.zeros(3, 4))
    assert torch.equal(found[0][0], x.permute(1, 2, 0)) and found[0][1:] == (2, False, False)
    torch.vmap(torch.func.grad(inner))(x[0])
    assert torch.equal(found[1][0], x[0]) and found[1][1:] == (1, True, True)


def test_levels_and_their_sizes() -> None:
    found: list[Any] = []

    def inner(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        levels = sorted(batches.levels_of(a + b))
        found.append((len(batches.levels_of(a)), batches.sizes_of_levels(levels), len(batches.drawing_levels())))
        return a + b

    torch.vmap(torch.vmap(inner, (None, 0), randomness="different"), (0, None))(torch.ones(2), torch.ones(3))
    assert found == [(1, (2, 3), 1)]
    assert not batches.transforms() and not batches.levels_of(torch.ones(2)) and not batches.levels_of(3)
