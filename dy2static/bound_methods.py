"""Where the converted methods of an object are kept: with the object, so that they go when it goes."""

from __future__ import annotations

import itertools
import threading
from collections import OrderedDict
from types import MethodType
from typing import Any

from runtime.kinds import is_a
from runtime.tracer.ambient.unasked import unasked

_BOUND = "_dy2static_bound"
_KEEP = 64


class _Bound(dict[Any, Any]):
    """The converted methods of one object, kept in its ``__dict__``: they go when it goes, and are not copied."""

    def __init__(self, owner: Any = None) -> None:
        super().__init__()
        self.owner = owner

    def __copy__(self) -> _Bound:
        return _Bound()

    def __deepcopy__(self, memo: dict[int, Any]) -> _Bound:
        return _Bound()

    def __reduce__(self) -> Any:
        return (_Bound, ())

    def __repr__(self) -> str:
        return f"<{len(self)} converted methods>"


_lock = threading.Lock()
_without_dict: OrderedDict[int, _Bound] = OrderedDict()
"""Objects that have no ``__dict__``, kept alive with their methods: only the last ones, as nothing tells their end."""


def bound_methods(instance: Any) -> dict[Any, Any]:
    """The converted methods of an object or class, by the function that they bind.

    A copy that got the ``__dict__`` of another object gets methods of its own here.
    """
    namespace = unasked(instance, "__dict__")
    holder = None if namespace is None else namespace.get(_BOUND)
    if is_a(holder, _Bound) and holder.owner is instance:
        return holder
    with _lock:
        made = _Bound(instance)
        if is_a(instance, type):
            try:
                type.__setattr__(instance, _BOUND, made)
            except TypeError:  # a class written in C
                return _kept(instance, made)
            return made
        if not is_a(namespace, dict):
            return _kept(instance, made)
        holder = namespace.get(_BOUND)
        if not is_a(holder, _Bound) or holder.owner is not instance:
            holder = namespace[_BOUND] = made
        return holder


def _kept(instance: Any, made: _Bound) -> _Bound:
    found = _without_dict.setdefault(id(instance), made)
    _without_dict.move_to_end(id(instance))
    for key in tuple(itertools.islice(_without_dict, max(0, len(_without_dict) - _KEEP))):
        del _without_dict[key]
    return found


def method_of(instance: Any, name: str) -> Any:
    """The object's own method, not converted: what a pickle of a converted one loads as."""
    return MethodType(getattr(type(instance), name), instance)


__all__ = ["bound_methods", "method_of"]
