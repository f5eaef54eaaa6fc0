"""``dict.__len__(items)`` of a list whose length a path decides: Python's own error, or a refusal, never an answer."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import pytest
import torch

from tests.oracle import check

METHODS: list[Any] = [
    getattr(kind, name)
    for kind, names in (
        (list, ("__len__", "append", "pop", "index", "__getitem__")), (tuple, ("__len__", "index", "__getitem__")),
        (dict, ("__len__", "get", "pop", "keys", "__getitem__")), (set, ("__len__", "add", "__contains__")),
        (deque, ("__len__", "append", "popleft", "__getitem__")), (str, ("__len__", "join")), (bytes, ("__len__",)),
    )
    for name in names
]  # fmt: skip
ARGUMENTS = {"append": (1,), "index": (1,), "__getitem__": (0,), "get": (0,), "add": (1,), "__contains__": (1,),
             "join": ("a",)}  # fmt: skip


def _list(x: torch.Tensor) -> Any:
    items = [x]
    if x.sum() > 0:
        items.append(x * 2)
    return items


def _deque(x: torch.Tensor) -> Any:
    items = deque([x])
    if x.sum() > 0:
        items.append(x * 2)
    return items


@pytest.mark.parametrize("make", [_list, _deque], ids=["list", "deque"])
@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.__qualname__)
def test_python_says_so(method: Any, make: Callable[[torch.Tensor], Any]) -> None:
    if issubclass(type(make(torch.ones(1))), method.__objclass__):
        pytest.skip("its own")
    given = ARGUMENTS.get(method.__name__, ())

    def function(x: torch.Tensor) -> Any:
        items = make(x)
        try:
            return method(items, *given), len(items)
        except TypeError as error:
            return str(error), len(items)

    check(function, (torch.ones(3),), (-torch.ones(3),))
