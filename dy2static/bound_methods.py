"""Where the converted methods of an object are kept: with the object, so that they go when it goes."""

from __future__ import annotations

import copy
from types import MethodType
from typing import Any

_BOUND = "_dy2static_bound"


class _Bound(dict[Any, Any]):
    """The converted methods of one object, kept in its ``__dict__``: they go when it goes, and are not copied."""

    def __copy__(self) -> _Bound:
        return _Bound()

    def __deepcopy__(self, memo: dict[int, Any]) -> _Bound:
        return _Bound()

    def __reduce__(self) -> Any:
        return (_Bound, ())

    def __repr__(self) -> str:
        return f"<{len(self)} converted methods>"


_without_dict: dict[int, tuple[Any, _Bound]] = {}
"""Objects that have no ``__dict__``, and classes: kept alive, with their methods."""


def bound_methods(instance: Any) -> dict[Any, Any]:
    """The converted methods of an object, by the function in the class that they bind."""
    namespace = None if isinstance(instance, type) else getattr(instance, "__dict__", None)
    if isinstance(namespace, dict):
        holder = namespace.get(_BOUND)
        return holder if isinstance(holder, _Bound) else namespace.setdefault(_BOUND, _Bound())
    return _without_dict.setdefault(id(instance), (instance, _Bound()))[1]


def method_of(instance: Any, name: str) -> Any:
    """The object's own method, not converted: what a pickle of a converted one loads as."""
    return MethodType(getattr(type(instance), name), instance)


class Replicate:
    """What stands for ``_replicate_for_data_parallel`` in a converted module: replicas live for one call, so they are
    not converted, and run their own forward on their own parameters.
    """

    def __init__(self, module: Any, before: Any = None) -> None:
        self._module = module
        self._before = before

    def __call__(self) -> Any:
        replica = type(self._module)._replicate_for_data_parallel(self._module)
        replica.__dict__.pop("forward", None)
        replica.__dict__.pop(REPLICATE, None)
        if self._before is not None:
            replica.__dict__["forward"] = self._before
        return replica

    def __deepcopy__(self, memo: dict[int, Any]) -> Replicate:
        return Replicate(copy.deepcopy(self._module, memo), copy.deepcopy(self._before, memo))

    def __reduce__(self) -> Any:
        return (method_of, (self._module, REPLICATE))


REPLICATE = "_replicate_for_data_parallel"


__all__ = ["REPLICATE", "Replicate", "bound_methods", "method_of"]
