"""Objects that a function makes and raises in an exception: each raise has other ones, that hold the same.

    raise Told(Info(1))    ->    raise("<Info object>") attrs {objects: {"0": ["object 3 m.Info", "<Info object>"]}}

and by that name a `Made`, of which each run takes a copy.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any


class NoCopy(Exception):
    """An object of which no copy can be made without running its class's code."""


class Made:
    """What a function made, with what it held at the ``raise``."""

    def __init__(self, value: Any, is_made: Callable[[Any], bool]) -> None:
        """``is_made``: whether an object is one that the function made. Errors raised: NoCopy."""
        copies: dict[int, Any] = {}
        self._value = copied(value, is_made, copies)
        self._own = {id(one) for one in copies.values()}

    @property
    def is_new(self) -> bool:
        """Whether something in it was made by the function."""
        return bool(self._own)

    def again(self) -> Any:
        """Another one that holds the same; objects from before are the same ones."""
        return copied(self._value, lambda one: id(one) in self._own, {})


def copied(value: Any, is_made: Callable[[Any], bool], copies: dict[int, Any]) -> Any:
    """A copy of lists, dicts, tuples and objects that were made, at any depth; everything else is what it is.
    ``copies``: of the objects that were met, by identity. Errors raised: NoCopy."""
    if id(value) in copies:
        return copies[id(value)]
    kind = type(value)
    if kind is tuple:
        items = tuple(copied(item, is_made, copies) for item in value)
        return value if all(a is b for a, b in zip(items, value)) else items
    state = _state(value)
    if (kind not in (list, dict) and state is None) or not is_made(value):
        return value
    if kind is list:
        copy: Any = []
        copies[id(value)] = copy
        copy.extend(copied(item, is_made, copies) for item in value)
        return copy
    if kind is dict:
        copy = copies[id(value)] = dict[Any, Any]()
        copy.update((key, copied(item, is_made, copies)) for key, item in value.items())
        return copy
    assert state is not None
    try:
        copy = copies[id(value)] = object.__new__(kind)
    except TypeError:  # a class of C's makes its own
        raise NoCopy from None
    for name, item in state.items():
        object.__setattr__(copy, name, copied(item, is_made, copies))
    return copy


def _state(value: Any) -> dict[str, Any] | None:
    """The attributes of an object of a class written in Python, those in slots too; None for anything else."""
    if isinstance(value, (type, types.FunctionType, types.MethodType, types.ModuleType, BaseException)):
        return None
    kind = type(value)
    slots = [name for one in kind.__mro__ for name, slot in vars(one).items()
             if isinstance(slot, types.MemberDescriptorType) and one.__flags__ & _HEAP]  # fmt: skip
    try:
        space = object.__getattribute__(value, "__dict__")
    except AttributeError:
        space = None
    if not slots and type(space) is not dict:
        return None
    found = dict(space or {})
    for name in slots:
        try:
            found[name] = object.__getattribute__(value, name)
        except AttributeError:
            continue
    return found


_HEAP = 1 << 9
"""Of a class's flags: it was made by Python code."""


__all__ = ["Made", "NoCopy", "copied"]
