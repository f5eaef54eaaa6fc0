"""Whether two values are the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch

from dy2static.testing.sameness import difference


@dataclass
class Box:
    value: Any


def shared(apart: bool) -> list[Any]:
    one = torch.ones(1)
    return [one, torch.ones(1) if apart else one]


def holding_itself() -> list[Any]:
    result: list[Any] = []
    result.append(result)
    return result


class Odd(tuple):  # type: ignore[type-arg]
    def __len__(self) -> int:
        raise NotImplementedError


SAME = [
    (Odd([1, 2]), Odd([1, 2])),
    (1.0, 1.0), (float("nan"), float("nan")), (torch.tensor([1.0, float("nan")]), torch.tensor([1.0, float("nan")])),
    (Box({"a": [1]}), Box({"a": [1]})), (shared(False), shared(False)), (holding_itself(), holding_itself()),
    (torch.ones(3).to_sparse(), torch.ones(3).to_sparse()), (np.arange(3), np.arange(3)),
    (torch.tensor([1.0 + 1e-7]), torch.tensor([1.0])), (torch.empty(0), torch.empty(0)),
    (ValueError("a"), ValueError("a")), (torch.tensor([1 + 2j]), torch.tensor([1 + 2j])),
]  # fmt: skip
DIFFERENT = [
    (Odd([1, 2]), Odd([1, 3]), "result[1] is 2"),
    (1, True, "is an int, and in eager a bool"), (2.0, 2.1, "is 2.0, and in eager 2.1"),
    (torch.ones(2), torch.ones(3), "has shape"), (torch.ones(2), torch.ones(2).double(), "has dtype"),
    (torch.ones(2), torch.ones(2, requires_grad=True), "has requires_grad False"),
    (Box(1), Box(2), "result.value is 1, and in eager 2"), (shared(False), shared(True), "another object"),
    ({"a": 1, "b": 2}, {"b": 2, "a": 1}, "has the keys"), ([1], [1, 2], "has 1 items, and in eager 2"),
    (torch.tensor([1, 2]), torch.tensor([1, 3]), "differs in value (1 of 2 elements)"),
    (torch.tensor([1.0, float("nan")]), torch.tensor([1.0, 2.0]), "differs by nan"),
    (torch.tensor([float("inf")]), torch.tensor([1.0]), "differs by inf"),
    (torch.tensor([1.0001]), torch.tensor([1.0]), "differs by 0.0001"),
    (np.arange(3), np.arange(3).astype(float), "result is array"), (ValueError("a"), ValueError("b"), "result.args[0]"),
]  # fmt: skip


@pytest.mark.parametrize(("got", "expected"), SAME)
def test_the_same(got: Any, expected: Any) -> None:
    assert difference(got, expected) == ""


@pytest.mark.parametrize(("got", "expected", "said"), DIFFERENT)
def test_different(got: Any, expected: Any, said: str) -> None:
    assert said in difference(got, expected)
    assert difference(expected, got) != ""


def test_tolerance() -> None:
    one, other = torch.tensor([1.0 + 1e-6]), torch.tensor([1.0])
    assert difference(one, other) == "" and difference(one, other, tolerance=0.0) != ""
    assert difference(torch.tensor([2.0]), other, tolerance=1.0) == ""


def test_gradients_of_leaves_count() -> None:
    one, other = (torch.ones(1, requires_grad=True) for _ in range(2))
    one.sum().backward()
    assert difference(one, other) == "result.grad is a Tensor, and in eager a NoneType"
