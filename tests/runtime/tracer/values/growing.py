"""Lists whose length only a run knows, beside Python's own: one function tells of both."""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable
from typing import Any

import torch

from runtime.tracer.ambient.calls import Findings
from runtime.tracer.recording.session import Session
from runtime.tracer.values import array, array_methods
from tests.runtime.tracer.control.staging import Call, Plain, Staging, agree_or_raise

PYTHONS: dict[str, Callable[..., Any]] = {
    "length": len,
    "append": lambda target, value: target.append(value),
    "extend": lambda target, values: target.extend(values),
    "insert": lambda target, index, value: target.insert(index, value),
    "concat": operator.add,
    "parts": operator.add,
    "get": operator.getitem,
    "set_": operator.setitem,
    "pop": lambda target, *index: target.pop(*index),
    "slice_": operator.getitem,
    "replace": lambda target, values: operator.setitem(target, slice(None), values),
    "splice": operator.setitem,
    "repeat": operator.imul,
    "reverse": lambda target: target.reverse(),
    "clear": lambda target: target.clear(),
}
"""What the functions of ``array`` do, by name, of ordinary lists."""
COUNTS: list[Call] = [{"x": [1.0, -2.0, 3.0], "i": number} for number in range(4)]
"""Calls in which lists have from none to three items."""


def items_up_to(do: Plain, items: list[Any], count: Any) -> Any:
    """The first ``count`` of some items, as a list whose length only a run knows."""
    if not isinstance(do, Staging):
        return items[:count]
    return array.slice_(do.session, array.of_items(do.session, items), slice(count))


def act(do: Plain, name: str, *args: Any) -> Any:
    """A function of ``array``, or what Python does in its place."""
    if isinstance(do, Staging):
        return getattr(array, name)(do.session, *args)
    return PYTHONS[name](*args)


def call(do: Plain, method: str, target: Any, *args: Any) -> Any:
    """A method of a list or deque that has grown."""
    if not isinstance(do, Staging):
        return getattr(target, method)(*args)
    methods = array_methods.LIST if type(target) is list else array_methods.DEQUE
    return methods[method](do.session, target, *args)


def by_reference(session: Session, *classes: type) -> None:
    """Let lists that grow hold objects of some classes by reference, as in a trace that began again."""
    names = frozenset(f"{cls.__module__}.{cls.__qualname__}" for cls in classes)
    session.call.known = Findings(by_reference=names)


def agree_on_counts(
    staging: Staging, told: Callable[[Any, torch.Tensor, Any], Any], *calls: Call, copies: bool = False
) -> None:
    """``told(do, x, n)`` gives, or raises, what plain Python does, where ``n`` is from none to three.

    ``copies``: which objects are one is not asked: lists that grow have copies until a trace begins again.
    """
    agree_or_raise(staging, lambda do, x, i: told(do, x, do.number(i)), *(calls or COUNTS),
                   seen=_apart if copies else lambda one: one)  # fmt: skip


def _apart(value: Any) -> Any:
    """The same value, in which no list, dict or object stands twice."""
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
        return type(value)(map(_apart, value))
    return copy.deepcopy(value)


__all__ = ["COUNTS", "act", "agree_on_counts", "by_reference", "call", "items_up_to"]
