"""Attributes of values that may be anything, read without running a user's ``__getattr__`` or ``__getattribute__``.

A user's object may answer an unknown name with any exception, with something for every name, or count who asks.
"""

from __future__ import annotations

import types
from typing import Any


def unasked(value: Any, name: str, default: Any = None) -> Any:
    """``getattr(value, name, default)`` of what Python itself keeps: nothing that a user wrote is asked."""
    if type(value) in _PYTHONS_OWN:
        return getattr(value, name, default)
    for cls in type(value).__mro__:
        look = cls.__dict__.get("__getattribute__")
        if type(look) is types.WrapperDescriptorType:  # written in C
            try:
                return look(value, name)
            except AttributeError:
                return default
    return default


def has_unasked(value: Any, name: str) -> bool:
    """``hasattr(value, name)`` in the same way."""
    return unasked(value, name, _NOTHING) is not _NOTHING


def module_name(cls: Any) -> str:
    """The name of the module that a class is from; an empty text where a user put something else in its place."""
    found = unasked(cls, "__module__")
    return found if isinstance(found, str) else ""


_NOTHING = object()
_PYTHONS_OWN = frozenset({
    types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.MethodDescriptorType, types.ModuleType,
    types.WrapperDescriptorType, types.MethodWrapperType, types.CodeType, type,
})  # fmt: skip

__all__ = ["has_unasked", "module_name", "unasked"]
