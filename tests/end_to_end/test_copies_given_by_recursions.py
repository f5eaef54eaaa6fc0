"""What a recursive function gives of a tensor from before its call: the same object, or a view of its memory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.oracle import check, check_saved

Tensor = torch.Tensor


def down(t: Tensor, d: Tensor, k: int = 0) -> tuple[Tensor, int]:
    if d.abs().sum() < 1:
        return t, k
    return down(t, d / 2, k + 1)


def chosen(a: Tensor, b: Tensor, d: Tensor) -> Tensor:
    if d.abs().sum() < 1:
        return a if d[0] > 0 else b
    return chosen(a, b, d / 2)


def with_view(t: Tensor, d: Tensor) -> tuple[Tensor, Tensor]:
    if d.abs().sum() < 1:
        return t, t[1:]
    return with_view(t, d / 2)


def turned(a: Tensor, b: Tensor, d: Tensor) -> tuple[Tensor, Tensor]:
    if d.abs().sum() < 1:
        return a, b
    return turned(b, a, d / 2)


def in_a_loop(t: Tensor, d: Tensor) -> Tensor:
    if d.abs().sum() < 1:
        return t
    found = t
    for _ in range(2):
        found = in_a_loop(t, d / 4)
    return found


COPIES: dict[str, Callable[[Tensor], Tensor]] = {
    "clone": lambda x: x.clone(), "torch.clone": torch.clone, "clone of a value": lambda x: (x * 2).clone(),
    "contiguous": lambda x: x[:2].contiguous(), "view": lambda x: x.view(3, 1), "value": lambda x: x * 2,
    "reshape": lambda x: x.reshape(3, 1), "exp": torch.exp,
}  # fmt: skip


def as_it_is(copy: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Any]:
    def f(x: Tensor) -> Any:
        z = copy(x)
        a, k = down(z, x)
        return a, z, k, a is z

    return f


def one_of_two(x: Tensor) -> Any:
    z, y = x.clone(), x.clone()
    return chosen(z, y, x), z, y


def beside_a_view(x: Tensor) -> Any:
    z = x.clone()
    return with_view(z, x), z


def swapped(x: Tensor) -> Any:
    z, y = x.clone(), (x * 2).clone()
    return turned(z, y, x), z, y


def of_the_function_around(x: Tensor) -> Any:
    z = x.clone()

    def go(d: Tensor) -> tuple[Tensor, Tensor]:
        return (z, z[1:]) if d.abs().sum() < 1 else go(d / 2)

    return go(x), z


def on_a_path(x: Tensor) -> Any:
    z = x.clone()
    a = z
    if x.sum() > 0:
        a, _ = down(z, x)
    return a, z


def called_in_loops(x: Tensor) -> Any:
    z = x.clone()
    return in_a_loop(z, x), z


def of_a_list(x: Tensor) -> Any:
    held = [x.clone()]
    a, _ = down(held[0], x)
    return a, held


def view_of_a_path(x: Tensor) -> Any:
    z = x.clone()
    a = z[1:] if x[0] > 0 else x[1:] * 2
    return a, z


def view_of_a_loop(x: Tensor) -> Any:
    z, a, n = x.clone(), x * 2, 0
    while n < 2 and x.sum() > n:
        a, n = z[:], n + 1
    return a, z


def written_afterwards(x: Tensor) -> Any:
    z = x * 2
    a, k = down(z, x)
    z.add_(1)
    return a, z, k


FUNCTIONS = {
    **{f"of a {name}": as_it_is(copy) for name, copy in COPIES.items()},
    **{f.__name__: f for f in (one_of_two, beside_a_view, swapped, of_the_function_around, on_a_path, called_in_loops,
                               of_a_list, view_of_a_path, view_of_a_loop)},
}  # fmt: skip


@pytest.mark.parametrize("needs", [False, True], ids=["without gradients", "with gradients"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_objects_and_memory(name: str, needs: bool, tmp_path: Path) -> None:
    rows = ([3.0, 4.0, 5.0], [-3.0, 4.0, 5.0], [0.1, 0.2, 0.3])
    calls = [(torch.tensor(row, requires_grad=needs),) for row in rows]
    converted = check(FUNCTIONS[name], *calls)
    check_saved(FUNCTIONS[name], converted, tmp_path / "f", *calls)


def test_writes_to_what_comes_back_as_it_is() -> None:
    check(written_afterwards, (torch.tensor([3.0, 4.0, 5.0]),), (torch.tensor([0.1, 0.2, 0.3]),))
