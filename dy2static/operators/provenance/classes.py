"""Guards about classes: which methods and properties objects have, what is behind a ``super()``, what is absent."""

from __future__ import annotations

import types
import weakref
from collections import deque
from collections.abc import Iterable
from typing import Any

import torch

from dy2static.operators.provenance.library_reads import HEAP_TYPE, note_parts
from dy2static.operators.provenance.provenance import (
    PATCHED,
    adopt,
    defined,
    is_class_from_outside,
    is_external,
    memo,
    note_attribute_read,
    written,
)
from dy2static.operators.shared.policy import is_librarys
from dy2static.operators.shared.staging import METHOD_WATCHERS, Choice, Session, Staged, python_method
from runtime.kinds import is_a
from runtime.tracer.ambient.objects import own_items, own_length
from runtime.tracer.ambient.unasked import has_unasked, unasked
from runtime.tracer.ambient.walks import walk
from runtime.tracer.python_state.guard_code import CheckWriter
from runtime.tracer.python_state.guards import is_like, is_plain
from runtime.tracer.python_state.journal import Place

LOOKUPS = ("__getattribute__", "__getattr__", "__setattr__", "__delattr__")
"""Methods that a class may get, and that change what every attribute of its objects is."""


def note_definition(session: Session, obj: Any, name: str) -> None:
    """Guard what a method or property of an object is: its class, or the object itself, may get another one."""
    if not is_external(session, obj) and not is_a(obj, type):
        note_of_class(session, type(obj), name)
        return
    key = (id(obj), name)
    if key in session.guards or not is_external(session, obj) or written(session, Place("attribute", obj, name)):
        return
    adopt(session, obj)
    if is_a(obj, type):  # a class method: on the class, its bases, or its metaclass
        _add(session, key, obj, name)
        return
    cls = type(obj)
    own, shared = unasked(obj, "__dict__", {}).get(name), defined(cls, name)

    def holds() -> bool:
        space = unasked(obj, "__dict__", {})
        return type(obj) is cls and space.get(name) is own and defined(cls, name) is shared

    def write(check: CheckWriter) -> None:
        _write_own(check, obj, cls, name, own)
        _write(check, cls, name)

    session.guards.add_test(key, f"'{name}' of {cls.__name__}", holds, write=write)


def note_of_class(session: Session, cls: type, name: str) -> None:
    """The same of an object that is made inside: its class has the method or property."""
    if not cls.__flags__ & HEAP_TYPE or not is_class_from_outside(session, cls):
        return
    if not written(session, Place("attribute", cls, name)):
        adopt(session, cls)
        _add(session, (id(cls), name, "of its objects"), cls, name)


def note_construction(session: Session, cls: type) -> None:
    """Guard how a class makes its objects, and how their attributes are found: of one that is made inside, each read
    would have to."""
    for name in ("__new__", "__init__", *LOOKUPS):
        note_of_class(session, cls, name)


_OTHERWISE = {
    "__bool__": ("__len__",), "__iter__": ("__getitem__",), "__contains__": ("__iter__", "__getitem__"),
    "__reversed__": ("__len__", "__getitem__"), "__int__": ("__index__", "__trunc__"), "__float__": ("__index__",),
    "__complex__": ("__float__", "__index__"), "__format__": ("__str__", "__repr__"), "__str__": ("__repr__",),
    "__ne__": ("__eq__",), "__floor__": ("__float__", "__index__"), "__ceil__": ("__float__", "__index__"),
    "__length_hint__": ("__len__",), "__next__": (), "__copy__": ("__reduce_ex__",), "__deepcopy__": ("__reduce_ex__",),
}  # fmt: skip
"""What Python asks an object for in place of a special method that its class lacks, or inherits from ``object``."""


def note_method(session: Session, value: object, name: str) -> None:
    """Guard a special method of an object of a user's class, which syntax and builtins look up on the class; and those
    that Python asks in its place, as long as the class has none."""
    for one in (name, *_OTHERWISE.get(name, ())):
        _note_method(session, value, one)
        if any(one in cls.__dict__ for cls in type(value).__mro__ if cls is not object):
            return


def _note_method(session: Session, value: object, name: str) -> None:
    cls = type(value)
    if not cls.__flags__ & HEAP_TYPE or is_a(value, (torch.Tensor, Staged, Choice)):
        return
    if is_librarys(str(cls.__module__)):
        if id(value) in session.objects.externals:  # what a library makes for a moment is no matter
            note_parts(session, value)
        return
    if id(value) in session.objects.externals and not is_a(value, type):
        session.guards.add_test(
            (id(value), "class"), f"the class of a {cls.__name__}", lambda: type(value) is cls,
            write=lambda check: check.require(f"type({check.bind(value)}) is {check.bind(cls)}"))
    if (id(cls), name) in memo(session).methods:
        return
    memo(session).methods[id(cls), name] = cls
    note_of_class(session, cls, name)


METHOD_WATCHERS.append(note_method)


def _add(session: Session, key: Any, cls: type, name: str) -> None:
    found, there = defined(cls, name), _has(cls, name)
    session.guards.add_test(
        key, f"'{name}' of {cls.__name__}", lambda: defined(cls, name) is found and _has(cls, name) is there,
        write=lambda check: _write(check, cls, name))


def _has(cls: type, name: str) -> bool:
    """Whether the class has something under a name: ``__hash__ = None`` is something."""
    return any(name in base.__dict__ for base in cls.__mro__)


def _write(check: CheckWriter, cls: type, name: str) -> None:
    """``defined(cls, name)`` is what it is now. Where the class has it, its metaclass is not asked."""
    check.require(f"{check.bind(cls)}.__mro__ is {check.bind(cls.__mro__)}")
    meta: type = type(cls)
    for base in (*cls.__mro__, *meta.__mro__):  # a class's ``__dict__`` is a live view
        if name in base.__dict__:
            if base not in PATCHED:
                check.require(f"{check.namespace(base)}[{name!r}] is {check.bind(base.__dict__[name])}")
            return
        if base.__flags__ & HEAP_TYPE:
            check.absent(base, name)


def _write_own(check: CheckWriter, obj: Any, cls: type, name: str, own: Any) -> None:
    """The object is of its class, and has itself what it has now under a name; None: nothing."""
    check.require(f"type({check.bind(obj)}) is {check.bind(cls)}")
    if has_unasked(obj, "__dict__"):
        here = check.local(f"{check.bind(obj)}.__dict__")
        if own is None:
            check.lacks(here, name)
        else:
            check.require(f"{here}[{name!r}] is {check.bind(own)}")


def note_super(session: Session, obj: Any, name: str) -> None:
    """Guard what the classes behind a ``super()`` have under a name."""
    after, cls = obj.__thisclass__, obj.__self_class__
    if cls is None or not is_external(session, cls) or after not in cls.__mro__:
        return

    def found() -> Any:
        classes = cls.__mro__
        return next((vars(one)[name] for one in classes[classes.index(after) + 1:] if name in vars(one)), None)

    value = found()
    adopt(session, value)
    test = is_like(value)

    def write(check: CheckWriter) -> None:
        check.require(f"{check.bind(cls)}.__mro__ is {check.bind(cls.__mro__)}")
        for base in cls.__mro__[cls.__mro__.index(after) + 1:]:
            if name in base.__dict__:
                check.like(f"{check.namespace(base)}[{name!r}]", value, test)
                return
            if base.__flags__ & HEAP_TYPE:
                check.absent(base, name)

    session.guards.add_test(
        (id(cls), id(after), name, "super"), f"'{name}' of what {after.__name__} is derived from",
        lambda: test(found()), write=write)


def note_lack(session: Session, obj: Any, name: str) -> None:
    """Guard that an object has no attribute of a name: its ``__getattr__`` is asked."""
    if not is_external(session, obj) or written(session, Place("attribute", obj, name)):
        return
    adopt(session, obj)
    cls = type(obj)

    def write(check: CheckWriter) -> None:
        _write_own(check, obj, cls, name, None)
        _write(check, cls, name)

    lookup: Any = cls.__getattribute__
    simple = lookup is object.__getattribute__ and not any(name in base.__dict__ for base in cls.__mro__)
    session.guards.add_test(
        (id(obj), name, "lack"), f"the absence of '{name}' of {cls.__name__}", lambda: _lacks(obj, name),
        write=write if simple else None)


def _lacks(obj: Any, name: str) -> bool:
    try:
        object.__getattribute__(obj, name)
    except AttributeError:
        return True
    return False


_ASKED = ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__hash__")
"""Methods that Python's builtins and containers call unseen."""
_ASKING = frozenset({
    "sorted", "max", "min", "set", "frozenset", "hash", "index", "count", "remove", "sort", "get", "pop", "setdefault",
    "add", "discard", "update", "union", "intersection", "difference", "symmetric_difference", "issubset", "issuperset",
    "isdisjoint", "fromkeys", "heappush", "heappop", "heapify", "nlargest", "nsmallest", "insort", "insort_left",
    "insort_right", "bisect", "bisect_left", "bisect_right", "__contains__", "__eq__", "__ne__", "__lt__", "__gt__",
})  # fmt: skip
"""Builtins, methods and functions of the standard library's that compare or hash what they are given."""
_MOST = 64
_TAKE_ITEMS = (
    "list", "tuple", "set", "frozenset", "dict", "deque", "sum", "max", "min", "sorted", "iter", "enumerate", "zip",
    "map", "filter", "any", "all", "extend", "update", "fromkeys", "join",
)  # fmt: skip
_ASKED_BY = {
    **dict.fromkeys(_TAKE_ITEMS, ("__iter__",)),
    **dict.fromkeys(("range", "index", "hex", "oct", "bin", "chr"), ("__index__",)),
    **dict.fromkeys(("bool", "truth", "not_"), ("__bool__",)),
    **{name: (f"__{name}__",) for name in (
        "int", "float", "complex", "len", "round", "abs", "hash", "dir", "floor", "ceil", "trunc", "reversed", "next",
        "length_hint", "copy", "deepcopy")},
    "callable": ("__call__",), "repr": ("__repr__",), "ascii": ("__repr__",),
    "str": ("__str__", "__repr__"), "print": ("__str__", "__repr__"), "format": ("__format__", "__repr__"),
}  # fmt: skip
"""The special methods that a builtin, or a function of the standard library's, asks what it is given for."""
_SHOWING = frozenset({"str", "repr", "format", "ascii", "print"})
"""These ask what is inside of lists and their like for ``__repr__``."""


def note_asked_by(session: Session, function: Any, values: Iterable[Any]) -> None:
    """Guard what a builtin asks of what it is called with: special methods, whether the classes have them or not; of
    one that compares also what users' objects hold."""
    name = unasked(function, "__name__", "")
    if name in _ASKING:
        note_asked(session, values)
    for cls in values if name == "__subclasses__" else ():
        if is_a(cls, type) and is_class_from_outside(session, cls):
            _note_subclasses(session, cls)
    for asked in _ASKED_BY.get(name, ()):
        for value in walk(values, _items, 2) if name in _SHOWING else values:
            if type(value).__flags__ & HEAP_TYPE:
                note_method(session, value, asked)


def _note_subclasses(session: Session, cls: type) -> None:
    """Guard which classes are derived from one; the guard keeps none of them alive."""
    derived: list[type] = type.__subclasses__(cls)
    known = [weakref.ref(one) for one in derived]
    session.guards.add_test((id(cls), "subclasses"), f"the classes that are derived from {cls.__name__}",
                            lambda: type.__subclasses__(cls) == [one() for one in known])


_HOLDING = (list, tuple, dict, set, frozenset, deque)


def _items(value: Any) -> Any:
    if not is_a(value, _HOLDING) or own_length(value) > _MOST:
        return ()
    return (*dict.__iter__(value), *dict.values(value)) if is_a(value, dict) else own_items(value)


def note_asked(session: Session, values: Iterable[Any]) -> None:
    """Guard what objects of users' classes hold whose methods builtins or containers may call: ``x in items`` asks
    ``__eq__`` of each."""
    for value in walk(values, _items, 2):
        if is_plain(value) or is_a(value, (torch.Tensor, Staged, Choice, type, types.FunctionType, *_HOLDING)):
            continue
        if has_unasked(value, "__dict__") and not is_a(value, torch.nn.Module) and is_external(session, value):
            names = [name for name in _ASKED if python_method(value, name) is not None]
            if names and id(value) not in memo(session).asked:
                memo(session).asked[id(value)] = value
                for name in names:
                    note_of_class(session, type(value), name)
                for name, held in list(unasked(value, "__dict__").items()):
                    note_attribute_read(session, value, name, held)
                for name in {name for cls in type(value).__mro__[:-1] for name in vars(cls)}:
                    if name not in unasked(value, "__dict__") and is_plain(defined(type(value), name)):
                        note_attribute_read(session, value, name, defined(type(value), name))


__all__ = [
    "LOOKUPS", "note_asked", "note_asked_by", "note_definition", "note_lack", "note_construction", "note_method",
    "note_of_class", "note_super",
]
