"""Objects of ordinary Python classes: what they hold, and whether that is all they are."""

from __future__ import annotations

import dataclasses
from typing import Any

import torch

_OURS = ("runtime", "dy2static", "torch")


def is_simple(cls: type) -> bool:
    """Whether objects of a class are their attributes and nothing more: it derives from no built-in class."""
    if issubclass(cls, (torch.nn.Module, type)):
        return False
    try:
        object.__new__(cls)
    except TypeError:  # Python refuses where a built-in class has memory of its own
        return False
    return True


def is_record(value: Any) -> bool:
    """Whether this is an instance of a dataclass that can be changed: others that know it see what is stored to it."""
    cls: Any = type(value)
    params = getattr(cls, "__dataclass_params__", None)
    if params is None or issubclass(cls, (dict, tuple)):
        return False
    return not params.frozen and cls.__module__.partition(".")[0] not in _OURS


def can_be_rebuilt(value: Any) -> bool:
    """Whether an object of a user's class can be made again from its attributes, so that nobody sees a difference."""
    cls = type(value)
    if dataclasses.is_dataclass(cls) and not is_record(value):
        return False  # structures carry it field by field
    if cls is object or cls.__module__.partition(".")[0] in _OURS or hasattr(cls, "__del__"):
        return False
    if any("__reduce__" in base.__dict__ or "__reduce_ex__" in base.__dict__ for base in cls.__mro__[:-1]):
        return False  # it has its own idea of what it is made of
    namespace = getattr(value, "__dict__", None)
    if type(namespace) is not dict and not (namespace is None and _has_slots(cls)):
        return False
    return is_simple(cls)


def _has_slots(cls: type) -> bool:
    return any("__slots__" in base.__dict__ for base in cls.__mro__)


def attributes(value: Any) -> dict[str, Any]:
    """The attributes in an object's ``__dict__`` and ``__slots__``."""
    found = dict(getattr(value, "__dict__", {}))
    for cls in type(value).__mro__:
        slots = cls.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in ("__dict__", "__weakref__") and hasattr(value, name):
                found[name] = getattr(value, name)
    return found


__all__ = ["attributes", "can_be_rebuilt", "is_record", "is_simple"]
