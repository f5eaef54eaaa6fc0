"""What an object leads to, however it holds it: an item, a default, what a method is bound to, a slot of C's."""

from __future__ import annotations

import gc
import types
import weakref
from collections.abc import Collection, Iterable, Iterator
from typing import Any

import numpy
import torch

from runtime.tracer.ambient.contents import cells_of, inner
from runtime.tracer.ambient.unasked import module_name
from runtime.tracer.ambient.walks import walk

_NOT_ENTERED = (types.CodeType, types.FrameType, types.TracebackType, torch.Tensor)
_NAMESPACES = (type, types.ModuleType)
_OURS = ("runtime", "dy2static")
_USERS_VALUES = "runtime.tracer.values"
"""One of several, lists that grow: they hold values of the user's."""


def led_to(values: Iterable[Any], known: Collection[int], made: Collection[int]) -> Iterator[Any]:
    """The values and all that they lead to.

    ``known``: identities of objects that are not entered, ``made``: of the classes and modules that are.

    >>> items = [1]
    >>> any(one is items for one in led_to([lambda more={"k": items}.values(): more], (), ()))
    True
    """
    def parts(value: Any) -> list[Any]:
        kind = type(value)  # isinstance() would ask the object for its __class__
        if id(value) in known or issubclass(kind, _NOT_ENTERED):
            return []
        if issubclass(kind, _NAMESPACES):
            return list(vars(value).values()) if id(value) in made else []
        module = module_name(kind)
        if module.partition(".")[0] in _OURS and not module.startswith(_USERS_VALUES):
            return []
        return referents(value)

    return walk(values, parts, 1 << 30)


def referents(value: Any) -> list[Any]:
    """What ``value`` refers to itself: of a function no module, though its names lead there."""
    kind = type(value)
    if kind is types.FunctionType:
        return [*cells_of(value), value.__defaults__, value.__kwdefaults__, value.__dict__]
    if kind is types.GeneratorType or issubclass(kind, (numpy.ndarray, weakref.ref)):
        return inner(value)  # Python tells the collector nothing of these
    return gc.get_referents(value)


__all__ = ["led_to", "referents"]
