"""Lists and dicts that hold themselves: made inside, returned, and from outside."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from dy2static import to_static
from runtime.errors import Dy2StaticError
from tests.oracle import check

LIST: list[Any] = [2, 2.5]
LIST.append(LIST)
DICT: dict[str, Any] = {"a": 3}
DICT["self"] = DICT


def test_from_outside() -> None:
    def reads(x: torch.Tensor) -> Any:
        return x * LIST[0] + len(LIST), x * LIST[2][2][1], x * DICT["self"]["self"]["a"], DICT["self"] is DICT

    def on_a_path(x: torch.Tensor) -> Any:
        if x.sum() > 0:
            return x * LIST[2][1]
        return x + DICT["self"]["a"]

    for grad in (True, False):
        for f in (reads, on_a_path):
            check(f, (torch.ones(3, requires_grad=grad),), (torch.full((3,), -1.0, requires_grad=grad),))


def test_used_inside() -> None:
    def f(x: torch.Tensor) -> Any:
        root: list[Any] = [x * 2]
        root.append(root)
        table = {"x": x + 1}
        table["self"] = table  # type: ignore[assignment]
        return root[1][1][0] * table["self"]["x"], len(root), root[1] is root

    for grad in (True, False):
        check(f, (torch.ones(3, requires_grad=grad),))


def returned_whole(x: torch.Tensor) -> Any:
    root: list[Any] = []
    root[:] = [root, root]
    return root


def returned_with_tensors(x: torch.Tensor) -> Any:
    root = [x * 2]
    root.append(root)  # type: ignore[arg-type]
    return root


def returned_in_a_tuple(x: torch.Tensor) -> Any:
    table: dict[str, Any] = {"x": x * 2}
    table["self"] = [table]
    return x, table


@pytest.mark.parametrize("f", [returned_whole, returned_with_tensors, returned_in_a_tuple])
def test_returned(f: Any) -> None:
    static = to_static(f)
    for _ in range(2):
        with pytest.raises(Dy2StaticError, match="that holds itself is returned") as caught:
            static(torch.ones(3))
        assert caught.value.code == "D2S228"
