"""Lists and dicts that hold themselves: made inside, returned, and from outside."""

from __future__ import annotations

import functools
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


WIDE = 30


def _list_many_times(x: Any) -> Any:
    root: list[Any] = [x]
    root[:] = [root] * WIDE
    return root


def _list_with_a_tensor(x: Any) -> Any:
    root: list[Any] = [x]
    root[:] = [*([root] * WIDE), x]
    return root


def _tuples_of_one(x: Any) -> Any:
    root: tuple[Any, ...] = (x,)
    for _ in range(40):
        root = (root, root)
    return root


def _dict_many_times(x: Any) -> Any:
    root: dict[Any, Any] = {WIDE: x}
    for number in range(WIDE):
        root[number] = root
    return root


USES: dict[str, Any] = {
    "len": lambda root, x: len(root),
    "item": lambda root, x: root[0] is root[1],
    "sum": lambda root, x: len([*root, *root]),
    "call": lambda root, x: _length(root, last=root),
    "partial": lambda root, x: functools.partial(_length, root)(),
    "iterators": lambda root, x: (len(list(zip(root, root))), len(list(reversed(list(root))))),
    "branch": lambda root, x: x + len(root) if x.sum() > 0 else x - 1,
    "carried": lambda root, x: len(root if x.sum() > 0 else [root]),
    "equal": lambda root, x: root == [1] or root in [1, None],
    "numbers": lambda root, x: root[int(x.sum()) - 3] is root[0] and "%d" % len(root),
    "raised": lambda root, x: len(_raised(root).args),
}


def _length(root: Any, last: Any = None) -> int:
    return len(root)


def _raised(root: Any) -> Any:
    try:
        raise ValueError(root)
    except ValueError as error:
        return error


def checks(root: Any, x: Any) -> Any:
    assert x.sum() > 0, root
    return x


@pytest.mark.parametrize("use", [*USES, "checks"])
@pytest.mark.parametrize("make", [_list_many_times, _list_with_a_tensor, _tuples_of_one, _dict_many_times])
def test_what_holds_one_object_very_many_times_is_walked_once(make: Any, use: str) -> None:
    what = USES.get(use, checks)

    def function(x: Any) -> Any:
        return what(make(x), x)

    if use not in ("carried", "checks"):
        check(function, (torch.ones(3),), (torch.ones(5),), (torch.ones(3),), paths=("program",))
    elif make is not _tuples_of_one:  # what paths hand over is taken apart, each tuple as often as it is there
        with pytest.raises(Dy2StaticError) as caught:
            to_static(function)(torch.ones(3))
        assert caught.value.code == "D2S228" and caught.value.location is not None
