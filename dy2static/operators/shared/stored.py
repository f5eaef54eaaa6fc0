"""What a container itself holds and does, whatever the methods of a user's class say.

    class Ring(list):
        def __getitem__(self, i): return super().__getitem__(i % len(self))

    ring[i]                           asks the user's method, as every operator does first
    super().__getitem__(i % ...)      asks for what is stored here
"""

from __future__ import annotations

import types
from typing import Any

import torch

from dy2static.operators.shared.staging import python_method
from runtime.kinds import is_a
from runtime.tracer.ambient.objects import KINDS, own_items
from runtime.tracer.numbers.staged_size import StagedSize

MODULES = (torch.nn.ModuleList, torch.nn.Sequential, torch.nn.ParameterList)
_SEQUENCES = (list, tuple, range, str)


def stored_items(value: Any) -> Any:
    """The items of a list, tuple, deque, string, range or list of modules, as it holds them."""
    if type(value) in _SEQUENCES:
        return value
    if is_a(value, MODULES):
        kind: Any = next(cls for cls in MODULES if is_a(value, cls))
        return [kind.__getitem__(value, index) for index in range(kind.__len__(value))]
    return str(str.__str__(value)) if is_a(value, str) else own_items(value)


def own_method(cls: type, name: str) -> Any:
    """The method of Python's own class that a class is derived from: what holds the items says."""
    kind = next((base for base in cls.__mro__ if base is str or base in KINDS), cls)
    return getattr(kind, name)


def bound(value: Any, name: str) -> Any:
    """``own_method`` of an object, bound to it."""
    found = own_method(type(value), name)
    return found.__get__(value, type(value)) if hasattr(found, "__get__") else found


def users_method(value: Any, name: str) -> types.FunctionType | None:
    """What an operator asks before all else: the method of the value's class, if it is written in Python."""
    return None if type(value) in _PLAIN else python_method(value, name)


_PLAIN = frozenset((list, tuple, dict, str, set, torch.Tensor, StagedSize))
"""Classes whose methods are no user's."""

__all__ = ["MODULES", "bound", "own_method", "stored_items", "users_method"]
