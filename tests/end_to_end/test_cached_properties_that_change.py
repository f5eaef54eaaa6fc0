"""What a property gives, changed between calls: cached or not, made by the call or before it."""

from __future__ import annotations

import array
import collections
import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from dy2static import to_static
from dy2static.errors import Dy2StaticError


class Held:
    number = 1


CONTENTS: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "list": (lambda: [1, 1], lambda held: held.append(5)),
    "dict": (lambda: {"a": 1}, lambda held: held.update(b=2)),
    "set": (lambda: {1}, lambda held: held.add(3)),
    "deque": (lambda: collections.deque([1]), lambda held: held.append(4)),
    "bytearray": (lambda: bytearray(b"a"), lambda held: held.extend(b"b")),
    "array": (lambda: array.array("i", [1]), lambda held: held.append(3)),
    "NumPy": (lambda: np.ones(2), lambda held: held.fill(len(str(held)))),
    "tensor": (lambda: torch.ones(2), lambda held: held.add_(1)),
    "nested": (lambda: [[1]], lambda held: held[0].append(2)),
    "arrays": (lambda: [np.ones(2)], lambda held: held[0].fill(3)),
    "object": (Held, lambda held: setattr(held, "number", held.number + 1)),
}
READS: dict[str, Callable[[Any, Any], Any]] = {
    "text": lambda x, owner: str(owner.held),
    "getattr": lambda x, owner: str(getattr(owner, "held", None)),
    "length": lambda x, owner: len(owner.held),
    "items": lambda x, owner: [str(one) for one in owner.held],
    "namespace": lambda x, owner: str(vars(owner).get("held")),
    "attribute": lambda x, owner: owner.held.number,
    "on a path": lambda x, owner: len(owner.held) if x.sum() > 0 else 0,
}


class Shared:
    source: Any

    @functools.cached_property
    def held(self) -> Any:
        return self.source


class Own:
    source: Any

    def __init__(self) -> None:
        self.own = self.source

    @functools.cached_property
    def held(self) -> Any:
        return self.own


class Plain:
    source: Any

    @property
    def held(self) -> Any:
        return self.source


@pytest.mark.filterwarnings("ignore::dy2static.RetraceWarning")
@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("content", CONTENTS)
@pytest.mark.parametrize("cls, computed", [(Shared, False), (Shared, True), (Own, False), (Plain, False)],
                         ids=["cached", "cached before", "of the object", "not cached"])  # fmt: skip
def test_each_read_after_each_change(cls: Any, computed: bool, content: str, read: str) -> None:
    make, change = CONTENTS[content]
    owner = type(cls.__name__, (cls,), {"source": make()})()
    if computed:
        assert owner.held is not None
    converted: Any = to_static(lambda x: (x * 1, READS[read](x, owner)))
    for step in range(6):
        if step in (2, 3, 5):
            change(owner.held)
        try:
            expected = READS[read](torch.ones(2), owner)
        except (AttributeError, TypeError):
            return
        if content == "object" and read in ("text", "getattr", "namespace"):
            return  # an address
        try:
            got = converted(torch.ones(2))[1]
        except Dy2StaticError as error:
            assert error.code in ("D2S212", "D2S277", "D2S237"), str(error)
            return
        assert got == expected, step
