"""Objects of ordinary Python classes: what they hold, and whether that is all they are."""

from __future__ import annotations

import dataclasses
import types
from collections import OrderedDict, deque
from typing import Any

import torch

from runtime.kinds import is_a
from runtime.ops.keyed import Keyed, KeyedView
from runtime.tracer.ambient.poison import keys_answer
from runtime.tracer.ambient.unasked import module_name, unasked

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
    return not params.frozen and module_name(cls).partition(".")[0] not in _OURS


def is_users_tuple(value: Any) -> bool:
    """Whether this is a tuple of a user's class that is no namedtuple, and none of C's with fields (``struct_time``).
    """
    cls = type(value)
    if cls is tuple or not is_a(value, tuple) or module_name(cls).partition(".")[0] in _OURS:
        return False
    return not hasattr(cls, "_fields") and not hasattr(cls, "n_fields")


def can_be_rebuilt(value: Any) -> bool:
    """Whether an object of a user's class can be made again from its attributes, so that nobody sees a difference."""
    cls = type(value)
    if issubclass(cls, Keyed):
        return not issubclass(cls, KeyedView)
    if dataclasses.is_dataclass(cls) and not is_record(value):
        return False  # structures carry it field by field
    if cls is object or module_name(cls).partition(".")[0] in _OURS or hasattr(cls, "__del__"):
        return False
    if any("__reduce__" in base.__dict__ or "__reduce_ex__" in base.__dict__ for base in cls.__mro__[:-1]):
        return False  # it has its own idea of what it is made of
    namespace = unasked(value, "__dict__")
    if type(namespace) is not dict and not (namespace is None and _has_slots(cls)):
        return False
    return is_simple(cls)


def _has_slots(cls: type) -> bool:
    return any("__slots__" in base.__dict__ for base in cls.__mro__)


def attributes(value: Any) -> dict[str, Any]:
    """The attributes in an object's ``__dict__`` and ``__slots__``; of ``super()`` the object that it is about."""
    if type(value) is super:  # which answers for a class, ``__dict__`` included
        about = vars(super)["__self__"].__get__(value)
        return {} if about is None or issubclass(type(about), type) else {"__self__": about}
    found = dict(unasked(value, "__dict__", {}))
    for cls in type(value).__mro__:
        for name in slots_of(cls):
            held = unasked(value, name, found)
            if held is not found:
                found[name] = held
    return found


def slots_of(cls: type) -> list[str]:
    """The attributes that a class itself has in slots; names that begin with two underscores as Python keeps them."""
    if "__slots__" not in cls.__dict__:
        return []
    return [name for name, kind in cls.__dict__.items() if is_a(kind, types.MemberDescriptorType)]


KINDS = (list, dict, OrderedDict,  # which has an order of its own
         tuple, set, frozenset, deque)


def kind_of_items(cls: type) -> Any:
    """The class of Python's that holds the items of a container: a user's class may give others, or raise."""
    return cls if cls in KINDS else next(base for base in cls.__mro__ if base in KINDS)


def own_items(value: Any) -> list[Any]:
    """The items of a list, tuple, set or deque, the values of a dict, as Python's own class holds them."""
    kind = kind_of_items(type(value))
    if kind is OrderedDict:  # which looks each key up, and so asks for its hash
        with keys_answer():
            return list(kind.values(value))
    return list(kind.values(value) if issubclass(kind, dict) else kind.__iter__(value))


def own_length(value: Any) -> int:
    """How many there are."""
    length: int = kind_of_items(type(value)).__len__(value)
    return length


_OF_EXCEPTIONS = ("args", "__cause__", "__context__", "__suppress_context__")
"""What every exception holds beside its attributes."""


def is_exception(value: Any) -> bool:
    """Whether this is an exception that its attributes and what every exception holds are all of."""
    cls = type(value)
    return (
        issubclass(cls, BaseException) and module_name(cls).partition(".")[0] not in _OURS
        and not is_a(cls.__new__, types.FunctionType)
        and all(base.__basicsize__ <= Exception.__basicsize__ for base in cls.__mro__ if base.__module__ == "builtins")
        and cls.__reduce__ is Exception.__reduce__ and not hasattr(cls, "__del__") and not _has_slots(cls)
    )  # fmt: skip


def contents(value: Any) -> dict[str, Any]:
    """The attributes of an object; of an exception also what every exception holds."""
    found = attributes(value)
    if is_a(value, BaseException):
        found.update({name: getattr(value, name) for name in _OF_EXCEPTIONS})
    return found


__all__ = [
    "KINDS", "attributes", "can_be_rebuilt", "contents", "is_exception", "is_record", "is_simple", "is_users_tuple",
    "kind_of_items", "own_items", "own_length", "slots_of",
]  # fmt: skip
