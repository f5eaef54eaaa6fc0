"""Guards on what a library's Python reads of objects: it is not converted, so that nobody sees it read them.

    CONFIG["k"]                 of a class derived from UserDict: its method reads what ``CONFIG`` holds
    json.dumps([point])         so does json of what it is given, and of what that refers to
    Color.RED.value             a property of the standard library's, which reads the member's attributes
"""

from __future__ import annotations

import functools
import sys
import types
import weakref
from collections import deque
from collections.abc import Iterable
from typing import Any

import torch

from dy2static.operators.provenance.provenance import (
    ADOPTION_WATCHERS,
    CONTAINERS,
    adopt,
    defined,
    is_external,
    note_attribute_read,
    written,
)
from dy2static.operators.shared.policy import home_of, is_optimizers
from dy2static.operators.shared.staging import Choice, Session, Staged, Undefined
from runtime.kinds import is_a
from runtime.tracer.ambient import objects
from runtime.tracer.ambient.unasked import has_unasked, module_name, unasked
from runtime.tracer.python_state.facts import can_be_fact
from runtime.tracer.python_state.guards import is_plain
from runtime.tracer.python_state.journal import Place

HEAP_TYPE = 1 << 9
"""The flag of classes that are written in Python."""
_WITHOUT_METHODS = ("abc", "typing", "builtins")
NO_OBJECTS = (torch.Tensor, Staged, Choice, Undefined, torch.nn.Module, type, types.ModuleType, types.FunctionType)
_OBJECTS = 256
_DEPTH = 4
_LONG = 256


def is_of_library(cls: type) -> bool:
    """Whether methods of a class's objects may be Python of the standard library or torch: the class is theirs, or
    derived from one of theirs."""
    return any(
        one.__flags__ & HEAP_TYPE and _is_librarys(module_name(one)) and one.__module__ not in _WITHOUT_METHODS
        and not is_optimizers(module_name(one)) for one in cls.__mro__
    )


def _is_ours(value: Any) -> bool:
    """Whether an object stands for one of the user's in a trace."""
    return str(type(value).__module__).partition(".")[0] in ("dy2static", "runtime")


def _is_librarys(module: str) -> bool:
    home = str(module).partition(".")[0]
    return home == "torch" or home in sys.stdlib_module_names


def note_parts(session: Session, obj: Any) -> None:
    """Guard the attributes of an object that has methods of a library's (``UserDict``, an object of a user's class
    derived from one)."""
    if not is_a(obj, NO_OBJECTS) and is_of_library(type(obj)) and is_external(session, obj):
        _note_attributes(session, obj)


def _note_met(session: Session, obj: Any) -> None:
    """Guard the attributes of an object whose items, length or number are asked for by C code, in ways of many kinds
    (``{**config}``, ``a, b = items``, ``float(ratio)``), where Python of the standard library answers."""
    cls = type(obj)
    if cls.__flags__ & HEAP_TYPE and not is_a(obj, NO_OBJECTS) and _answers_in_python(cls):
        _note_attributes(session, obj)


ADOPTION_WATCHERS.append(_note_met)
_ASKED = ("__iter__", "__getitem__", "__len__", "__bool__", "__float__", "__int__", "__index__", "keys")
_answers: weakref.WeakKeyDictionary[type, bool] = weakref.WeakKeyDictionary()


def _answers_in_python(cls: type) -> bool:
    """Whether a class has such a method from one of the standard library's that is written in Python."""
    found = _answers.get(cls)
    if found is None:
        bases = [base for base in cls.__mro__ if base.__flags__ & HEAP_TYPE and _is_librarys(module_name(base))
                 and not module_name(base).startswith("torch") and base.__module__ not in _WITHOUT_METHODS]  # fmt: skip
        found = _answers[cls] = any(
            is_a(vars(base).get(name), types.FunctionType) for base in bases for name in _ASKED)
    return found


def note_given(session: Session, values: Iterable[Any]) -> list[Any]:
    """Guard what a library's function may read of what it is given, and of the users' objects in that; these."""
    todo: deque[tuple[Any, int]] = deque((value, 0) for value in values)
    seen: set[int] = set()
    users: list[Any] = []
    while todo and len(seen) < _OBJECTS:
        one, depth = todo.popleft()
        if is_plain(one) or id(one) in seen or is_a(one, NO_OBJECTS) or _is_ours(one):
            continue
        seen.add(id(one))
        inner: Iterable[Any] = ()
        if is_a(one, (*CONTAINERS, tuple, frozenset)) and len(one) <= _LONG:
            inner = [*one, *one.values()] if is_a(one, dict) else list(one)
        if not _is_librarys(module_name(type(one))) and is_external(session, one):
            users.append(one)
            inner = [*inner, *objects.attributes(one).values()]
            _note_attributes(session, one)
        else:
            note_parts(session, one)
        if depth < _DEPTH:
            todo.extend((item, depth + 1) for item in inner)
    return users


def note_property(session: Session, obj: Any, name: str, found: Any, value: Any) -> None:
    """Guard what an attribute gives that Python of a library's computes."""
    getter = unasked(found, "fget") or unasked(found, "func") or getattr(type(found), "__get__", None)
    if not is_a(getter, types.FunctionType) or is_a(value, (torch.Tensor, types.MethodType)):
        return
    if is_plain(value):
        note_attribute_read(session, obj, name, value)
    else:
        note_parts(session, obj)


def inherited(value: object, name: str) -> types.FunctionType | None:
    """The special method of a user's class, if it is Python of a library's."""
    cls = type(value)
    if not cls.__flags__ & HEAP_TYPE or _is_librarys(module_name(cls)) or is_a(value, NO_OBJECTS):
        return None
    method = defined(cls, name)
    return method if is_a(method, types.FunctionType) and home_of(method.__code__.co_filename) else None


def _note_attributes(session: Session, obj: Any) -> None:
    """Guard all attributes of an object, and which there are."""
    adopt(session, obj)
    if not is_external(session, obj):  # it holds what only this trace can have given it
        return
    held = objects.attributes(obj)
    if not held and not has_unasked(obj, "__dict__"):
        return
    if not any(written(session, Place("attribute", obj, name)) for name in held):
        names = list(held)
        session.guards.add_test((id(obj), "names"), f"the attributes of a {type(obj).__name__}",
                                functools.partial(_has_names, obj, names))  # fmt: skip
    for name, value in held.items():
        place = Place("attribute", obj, name)
        if place in session.call.varying and can_be_fact(value):  # code that is not converted takes no staged number
            session.guards.add((id(obj), name), place.describe(), functools.partial(getattr, obj, name), value)
        else:
            note_attribute_read(session, obj, name, value)


def _has_names(obj: Any, names: list[str]) -> bool:
    return list(objects.attributes(obj)) == names


__all__ = ["HEAP_TYPE", "NO_OBJECTS", "inherited", "is_of_library", "note_given", "note_parts", "note_property"]
