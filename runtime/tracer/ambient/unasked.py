"""Attributes of values that may be anything, read without running a user's ``__getattr__`` or ``__getattribute__``.

A user's object may answer an unknown name with any exception, with something for every name, or count who asks.
"""

from __future__ import annotations

import types
import weakref
from collections.abc import Callable
from typing import Any

from runtime.kinds import is_a


def unasked(value: Any, name: str, default: Any = None) -> Any:
    """``getattr(value, name, default)`` of what Python itself keeps: nothing that a user wrote is asked."""
    kind = type(value)
    if id(kind) in _PYTHONS_OWN:
        return getattr(value, name, default)
    known = _looks.get(id(kind))
    look = known[1] if known is not None and known[0]() is kind else _look(kind)
    try:
        return look(value, name)
    except AttributeError:
        return default


def asks_users(value: Any) -> bool:
    """Whether Python code answers for an object's attributes: a ``__getattribute__`` of its class, or a property for
    its ``__class__``."""
    cls = type(value)
    if type(cls.__getattribute__) is types.FunctionType:
        return True
    return next(base.__dict__["__class__"] for base in cls.__mro__ if "__class__" in base.__dict__) is not _CLASS


_CLASS = object.__dict__["__class__"]


def reader(owner: Any) -> Callable[[Any, str], Any]:
    """What reads attributes of ``owner`` at each call: ``getattr``, or where its class has a ``__getattribute__`` in
    Python, that of a class in C. Both raise AttributeError."""
    return _look(type(owner)) if type(type(owner).__getattribute__) is types.FunctionType else getattr


def _look(kind: type) -> Callable[[Any, str], Any]:
    """The ``__getattribute__`` of a class that is written in C: what a user gives it later is none. By identity, as the
    class of a class may answer ``hash`` as it likes."""
    key = id(kind)
    found = (cls.__dict__.get("__getattribute__") for cls in kind.__mro__)
    look: Any = next(one for one in found if type(one) is types.WrapperDescriptorType)
    _looks[key] = weakref.ref(kind, lambda _: _looks.pop(key, None)), look
    return look


_looks: dict[int, tuple[weakref.ref[type], Callable[[Any, str], Any]]] = {}


def has_unasked(value: Any, name: str) -> bool:
    """``hasattr(value, name)`` in the same way."""
    return unasked(value, name, _NOTHING) is not _NOTHING


def module_name(cls: Any) -> str:
    """The name of the module that a class is from; an empty text where a user put something else in its place."""
    found = unasked(cls, "__module__")
    return found if is_a(found, str) else ""


_NOTHING = object()
_PYTHONS_OWN = frozenset(id(kind) for kind in (
    types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.MethodDescriptorType, types.ModuleType,
    types.WrapperDescriptorType, types.MethodWrapperType, types.CodeType, type,
))  # fmt: skip
"""By identity: the class of a user's class may answer ``hash`` as it likes."""

__all__ = ["asks_users", "has_unasked", "module_name", "reader", "unasked"]
