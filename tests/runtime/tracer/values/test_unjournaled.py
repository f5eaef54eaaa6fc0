"""What code that keeps no journal changes on a path is found, whatever holds it, and can be put back."""

from __future__ import annotations

import array
import copy
import types
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from typing import Any

import pytest
import torch

from runtime.errors import TraceError
from runtime.tracer.ambient import state
from runtime.tracer.boundary.tracing import trace
from runtime.tracer.values import unjournaled
from runtime.tracer.values.arguments import flatten


class Numbers(list):  # type: ignore[type-arg]
    def __len__(self) -> int:
        return 0


class Box:
    def __init__(self, held: Any = None) -> None:
        self.held = held


def _later(box: Any) -> None:
    box.later = 1


def _other(box: Any) -> None:
    box.held = 2


CHANGES: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "list": (lambda: [1], lambda v: v.append(2)),
    "empty list": (list, lambda v: v.append(2)),
    "emptied list": (lambda: [1], lambda v: v.clear()),
    "item of a list": (lambda: [1], lambda v: v.__setitem__(0, 2)),
    "order of a list": (lambda: [1, 2], lambda v: v.reverse()),
    "list of a user's class": (lambda: Numbers([1]), lambda v: v.append(2)),
    "empty list of a user's class": (Numbers, lambda v: v.append(2)),
    "dict": (lambda: {"a": 1}, lambda v: v.update(b=2)),
    "empty dict": (dict, lambda v: v.update(b=2)),
    "emptied dict": (lambda: {"a": 1}, lambda v: v.clear()),
    "value of a dict": (lambda: {"a": 1}, lambda v: v.update(a=2)),
    "empty OrderedDict": (OrderedDict, lambda v: v.update(b=2)),
    "emptied OrderedDict": (lambda: OrderedDict(a=1), lambda v: v.clear()),
    "defaultdict": (lambda: defaultdict(list), lambda v: v["a"]),
    "Counter": (Counter, lambda v: v.update("ab")),
    "set": (lambda: {1}, lambda v: v.add(2)),
    "empty set": (set, lambda v: v.add(2)),
    "emptied set": (lambda: {1}, lambda v: v.discard(1)),
    "deque": (lambda: deque([1]), lambda v: v.append(2)),
    "empty deque": (deque, lambda v: v.append(2)),
    "attribute": (lambda: Box(1), _other),
    "new attribute": (lambda: Box(1), _later),
    "list in a list": (lambda: [[]], lambda v: v[0].append(1)),
    "list in a dict in a tuple": (lambda: ({"a": []},), lambda v: v[0]["a"].append(1)),
    "list in an attribute": (lambda: Box([]), lambda v: v.held.append(1)),
    "list in a closure": (lambda: (lambda held: lambda: held)([]), lambda v: v().append(1)),
    "list of a method's object": (lambda: types.MethodType(len, [1]), lambda v: v.__self__.append(1)),
}
REFUSED: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "iterator": (lambda: iter([1, 2]), next),
    "generator": (lambda: (i for i in [1, 2]), next),
    "iterator in a list": (lambda: [iter([1, 2])], lambda v: next(v[0])),
    "bytearray": (lambda: bytearray(b"a"), lambda v: v.append(1)),
    "array": (lambda: array.array("d", [1.0]), lambda v: v.append(2.0)),
}


def _looked_at(value: Any, change: Callable[[Any], Any], ask: Callable[[Any, Any], None]) -> None:
    """``ask(session, picture)`` after a change, inside a trace in which the value is a local variable."""

    def f(x: torch.Tensor) -> torch.Tensor:
        local = value
        session = state.current()
        before = unjournaled.picture(session)
        unjournaled.require_unchanged(session, before, "here")
        change(local)
        ask(session, before)
        return x

    trace(f, flatten({"x": torch.ones(2)}), name="f")


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_found(name: str) -> None:
    make, change = CHANGES[name]

    def ask(session: Any, before: Any) -> None:
        with pytest.raises(TraceError, match="D2S227"):
            unjournaled.require_unchanged(session, before, "here")

    _looked_at(make(), change, ask)


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_put_back(name: str) -> None:
    make, change = CHANGES[name]
    value = make()
    again = make() if "closure" in name or "method" in name else copy.deepcopy(value)

    def ask(session: Any, before: Any) -> None:
        unjournaled.put_back(session, before)
        unjournaled.require_unchanged(session, before, "here")

    _looked_at(value, change, ask)
    change(value)  # from what it was
    change(again)
    if name == "list in a closure":
        assert value() == again()
    elif name == "list of a method's object":
        assert value.__self__ == again.__self__
    elif isinstance(value, Box):
        assert vars(value) == vars(again)
    else:
        assert value == again


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_put_back_is_refused(name: str) -> None:
    make, change = REFUSED[name]

    def ask(session: Any, before: Any) -> None:
        with pytest.raises(TraceError, match="D2S227|D2S266"):
            unjournaled.put_back(session, before)

    _looked_at(make(), change, ask)


def test_many_empty_containers_hide_nothing() -> None:
    value = [*([] for _ in range(3_000)), [1]]
    _looked_at(value, lambda v: v[-1].append(2), lambda session, before: _refused(session, before))
    _looked_at(value, lambda v: v[17].append(2), lambda session, before: _refused(session, before))


def _refused(session: Any, before: Any) -> None:
    with pytest.raises(TraceError, match="D2S227"):
        unjournaled.require_unchanged(session, before, "here")
