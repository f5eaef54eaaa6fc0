"""What objects refer to that are neither containers nor taken apart by structures, as their classes say."""

from __future__ import annotations

import contextvars
import functools
import gc
import types
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy

from runtime.kinds import is_a
from runtime.tracer.ambient import contents, objects
from runtime.tracer.ambient.unasked import has_unasked, module_name, unasked

Reader = Callable[[Any], Iterable[Any]]

_HOLDERS = (types.MappingProxyType, type(functools.lru_cache(id)))
"""Classes of C's whose objects refer to containers of users, and to nothing that leads elsewhere."""
_PYTHONS_OWN = ("builtins", "types", "operator", "functools", "itertools", "collections")
"""Where the classes of C are from whose objects hold what was given to them, and nothing else."""
_OF_CODE = (type, types.ModuleType, types.CodeType, types.FrameType, types.TracebackType)
"""What leads to half the process."""
_MAKING_LISTS: tuple[type, ...] = (type(iter({})), type(iter({}.values())), type(iter({}.items())), type(iter(set())))
"""Iterators that would give what they have left in a list made for it, which is nobody's."""


def opaque_parts(value: Any) -> Iterable[Any]:
    """What an object refers to that is neither a container nor taken apart by structures."""
    return reader_of(type(value))(value)  # isinstance() would ask the object for its __class__


def reader_of(kind: type, namespaces: bool = False) -> Reader:
    """`opaque_parts` of the objects of a class: who goes over many objects asks this once for each of their classes
    (`Readers`).

    ``namespaces``: with what is in the ``__dict__`` of those whose parts are something else, as functions.
    """
    read, whole = _reader(kind)
    if whole or not namespaces:
        return read
    names = _namespace_of(kind)
    return read if names is _no_namespace else lambda value: (*read(value), *_values_of(names(value)))


def _reader(kind: type) -> tuple[Reader, bool]:
    """And whether what is in the ``__dict__`` is among it."""
    for cls, read in _READERS:
        if kind is cls:
            return read, False
    if issubclass(kind, functools.partial):
        return _of_partial, False
    return (_of_iterator, False) if contents.may_be_iterator(kind) else _reader_of_others(kind)


def _reader_of_others(kind: type) -> tuple[Reader, bool]:
    for cls, read in _READERS_OF_BASES:
        if issubclass(kind, cls):
            return read, False
    names = _namespace_of(kind)
    if names is _asked_namespace:
        return _of_object, False
    if names is _no_namespace and not objects.is_simple(kind):
        return _of_pythons(kind), True
    if module_name(kind).partition(".")[0] in ("runtime", "dy2static"):
        return _nothing, False
    if issubclass(kind, BaseException) or any(map(objects.slots_of, kind.__mro__)):
        return _of_attributes, True
    return (_nothing if names is _no_namespace else lambda value: _values_of(names(value))), True


def _namespace_of(kind: type) -> Callable[[Any], Any]:
    """How the ``__dict__`` of objects of a class is read; of those that have none that is None."""
    spaces = [base.__dict__ for base in kind.__mro__]
    looks = (space.get("__getattribute__") for space in spaces)
    if next(one for one in looks if type(one) is types.WrapperDescriptorType) is not object.__getattribute__:
        return _asked_namespace  # a class of C's with a way of its own
    found = next((space["__dict__"] for space in spaces if "__dict__" in space), None)
    if found is None:
        return _no_namespace
    return found.__get__ if type(found) is types.GetSetDescriptorType else _asked_namespace


def _asked_namespace(value: Any) -> Any:
    return unasked(value, "__dict__")


def _no_namespace(value: Any) -> Any:
    return None


def _values_of(namespace: Any) -> Iterable[Any]:
    """The values in what a ``__dict__`` is; some classes give that name another meaning."""
    if type(namespace) is dict:
        return namespace.values()
    return dict(namespace).values() if is_a(namespace, (dict, types.MappingProxyType)) else ()


def _of_object(value: Any) -> Iterable[Any]:
    """Of one that may have attributes: the class does not tell."""
    kind = type(value)
    if not (has_unasked(value, "__dict__") or objects.is_simple(kind)):
        return _of_pythons(kind)(value)
    return () if module_name(kind).partition(".")[0] in ("runtime", "dy2static") else _of_attributes(value)


def _of_attributes(value: Any) -> Iterator[Any]:
    yield from objects.attributes(value).values()
    if issubclass(type(value), BaseException):
        yield from value.args


def _of_pythons(kind: type) -> Reader:
    """Of objects without attributes: a slice, a view of a dict, ..."""
    return gc.get_referents if module_name(kind) in _PYTHONS_OWN and not issubclass(kind, _OF_CODE) else _nothing


def _nothing(value: Any) -> Iterable[Any]:
    return ()


def _of_function(value: Any) -> Iterator[Any]:
    yield from value.__closure__ or ()
    yield from value.__defaults__ or ()
    yield from (value.__kwdefaults__ or {}).values()


def _of_cell(value: Any) -> Iterable[Any]:
    try:
        return (value.cell_contents,)
    except ValueError:
        return ()


def _of_partial(value: Any) -> Iterable[Any]:
    return (value.func, *value.args, *value.keywords.values())


def _of_iterator(value: Any) -> Iterator[Any]:
    kind = type(value)
    if not contents.is_iterator(value):
        yield from _reader_of_others(kind)[0](value)
        return
    yield from contents.inner(value)
    if kind not in _MAKING_LISTS and kind is not types.GeneratorType:
        yield from contents.parts(value)


def _of_variable(value: Any) -> Iterator[Any]:
    yield value.get(None)
    yield from gc.get_referents(value)  # its default


_READERS: tuple[tuple[type, Reader], ...] = (
    (types.FunctionType, _of_function), (types.MethodType, lambda value: (value.__self__, value.__func__)),
    (types.BuiltinFunctionType, lambda value: (value.__self__,)), (types.CellType, _of_cell),
)  # fmt: skip
_READERS_OF_BASES: tuple[tuple[Any, Reader], ...] = (
    (frozenset, frozenset.__iter__), (_HOLDERS, gc.get_referents),
    (weakref.ref, lambda value: (weakref.ref.__call__(value),)), (contextvars.ContextVar, _of_variable),
    (numpy.ndarray, contents.inner),
)  # fmt: skip


class Readers:
    """How the objects of each class are read, asked once for each in a trace."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, bool], tuple[type, Reader]] = {}

    def of(self, kind: type, namespaces: bool = False) -> Reader:
        """`reader_of`."""
        known = self._known.get((id(kind), namespaces))  # the class of a class may answer ``hash`` as it likes
        if known is None:
            known = self._known[id(kind), namespaces] = kind, reader_of(kind, namespaces)
        return known[1]

    def parts(self, value: Any) -> Iterable[Any]:
        """`opaque_parts`."""
        return self.of(type(value))(value)


__all__ = ["Reader", "Readers", "opaque_parts", "reader_of"]
