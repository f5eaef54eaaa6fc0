"""Values inside of many others: frozen dataclasses, lists and tuples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch

from tests.oracle import check


@dataclass(frozen=True)
class Frozen:
    held: Any


@dataclass
class Changing:
    held: Any


KINDS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "frozen": (Frozen, lambda one: one.held), "changing": (Changing, lambda one: one.held),
    "tuple": (lambda one: (one,), lambda one: one[0]), "list": (lambda one: [one], lambda one: one[0]),
    "dict": (lambda one: {"k": one}, lambda one: one["k"]),
}  # fmt: skip


def inside(value: Any, make: Callable[[Any], Any], depth: int) -> Any:
    for _ in range(depth):
        value = make(value)
    return value


@pytest.mark.parametrize("depth", [9, 10, 24])
@pytest.mark.parametrize("kind", KINDS)
def test_what_leaves_a_path(kind: str, depth: int) -> None:
    make, take = KINDS[kind]

    def left(x: Any) -> Any:
        value = inside(x, make, depth)
        if x.sum() > 0:
            value = inside(x * 2, make, depth)
        return inside(value, take, depth), value

    def of_an_iteration(x: Any) -> Any:
        value = inside(x, make, depth)
        while x.sum().abs() < 20:
            x = x * 2
            value = inside(x, make, depth)
        return inside(value, take, depth)

    for function in (left, of_an_iteration):
        check(function, [(torch.tensor([1.0, 2.0]),), (torch.tensor([-1.0, -2.0]),)])


@pytest.mark.parametrize("kind", ["tuple", "list", "dict"])
def test_what_is_compared(kind: str) -> None:
    make, _ = KINDS[kind]

    def function(x: Any) -> Any:
        number, plain = inside(int(x.sum()), make, 14), inside(3, make, 14)
        several = inside(1 if x.sum() > 0 else 2, make, 14)
        return x * (1 + (number == plain) + 2 * (several == inside(1, make, 14)) + 4 * (number in [plain]))

    check(function, [(torch.tensor([1.0, 2.0]),), (torch.tensor([-1.0, -2.0]),)])
