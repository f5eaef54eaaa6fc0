"""Guards on what code that runs as it is can read: by the names in it, of the objects that these names lead to."""

from __future__ import annotations

import types
from collections import deque
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import torch

from dy2static.operators.provenance.classes import note_definition, note_method
from dy2static.operators.provenance.library_reads import (
    HEAP_TYPE,
    NO_OBJECTS,
    inherited,
    is_of_library,
    note_given,
    note_parts,
)
from dy2static.operators.provenance.provenance import (
    CONTAINERS,
    PATCHED,
    Noted,
    defined,
    enter_function,
    global_names,
    is_external,
    memo,
    note_attribute_read,
)
from dy2static.operators.shared.policy import home_of, is_librarys
from dy2static.operators.shared.staging import METHOD_WATCHERS, Choice, Session, Staged, Undefined
from runtime.kinds import is_a
from runtime.tracer.ambient import contents
from runtime.tracer.ambient.objects import own_length
from runtime.tracer.ambient.unasked import unasked
from runtime.tracer.ambient.walks import walk
from runtime.tracer.python_state.guards import is_plain
from runtime.tracer.python_state.journal import times_bound

_CHAIN = 4
"""Attributes of attributes, so deep."""
_FUNCTIONS = 64
"""Functions that call each other, so many."""
_NOT_FOLLOWED = (torch.Tensor, Staged, Choice, Undefined, *CONTAINERS, tuple)


def note_reads(session: Session, function: types.FunctionType, args: tuple[Any, ...]) -> None:
    """Guard what a function that runs as it is can read by the names in its code: globals, closure values, attributes.

    Which objects it asks for an attribute is not known; all are, that its arguments and these names lead to. So are
    the functions and methods of users' that it may call by these names, and what they read.
    """
    functions, seen = deque([function]), {id(function)}
    given = args
    while functions and len(seen) < _FUNCTIONS:
        one = functions.popleft()
        enter_function(session, one)
        for called in _by_names(session, one, given):
            if id(called) not in seen:
                seen.add(id(called))
                functions.append(called)


def note_answers(session: Session, *values: Any) -> None:
    """Guard what users' special methods read that C code may call of some values, and of what containers among them
    hold: ``f(**config)``, ``dict(config)``, ``dict([pair])``."""
    for one in walk(values, _held, _DEEPEST):
        if id(one) in session.objects.externals and type(one).__flags__ & HEAP_TYPE and not is_a(one, NO_OBJECTS):
            note_parts(session, one)
            for name in ("keys", "__iter__"):
                note_method(session, one, name)
            _note_methods(session, frozenset(("keys",)), one)


_DEEPEST = 3
_MANY = 64


def _held(value: Any) -> Any:
    """What C code may go through: not a container of many items."""
    return value if type(value) in (list, tuple) and own_length(value) <= _MANY else ()


def note_methods(session: Session, function: types.FunctionType, given: list[Any]) -> None:
    """Guard what users' methods read that a library's function may call of the objects that it is given: by the names
    in its code, or as special methods; of a class derived from a library's, all.

        config.get("k")     of a class derived from Mapping: Mapping's ``get`` calls the user's ``__getitem__``
    """
    for one in given:
        _note_methods(session, frozenset(_names(function.__code__)), one)


def _note_methods(session: Session, names: frozenset[str], one: Any) -> None:
    """Guard what methods of an object's class read; once, until the trace binds something anew."""
    noted, now = memo(session).noted, times_bound()
    before = noted.get((id(one), names))
    if before is not None and before.bound == now and not session.guards.is_apart:
        return
    all_of_them = is_of_library(type(one))
    for cls in type(one).__mro__:
        for name, found in list(vars(cls).items()):
            method = _function_of(found)
            if method is None or not _is_users(method) or name in _CONSTRUCTORS:
                continue
            if all_of_them or name in names or (name[:2] == "__" and name[-2:] == "__"):
                note_definition(session, one, name)
                note_reads(session, method, (one,))
    noted[id(one), names] = Noted(one, now)


def note_inherited(session: Session, value: object, name: str) -> None:
    """Guard what a special method of a library's reads that a user's class has: syntax and builtins call it."""
    method = inherited(value, name)
    if method is not None:
        note_methods(session, method, note_given(session, (value,)))


METHOD_WATCHERS.append(note_inherited)
_CONSTRUCTORS = ("__new__", "__init__", "__init_subclass__", "__class_getitem__", "__set_name__", "__post_init__")


def _by_names(session: Session, function: types.FunctionType, args: tuple[Any, ...]) -> Iterator[types.FunctionType]:
    """Guard the attributes that one function may read; the functions that it may call."""
    code, namespace = function.__code__, function.__globals__
    names = _names(code)
    todo: deque[tuple[Any, int]] = deque((one, 0) for one in (
        *args, *contents.cells_of(function), *(namespace.get(name) for name in global_names(code))))
    seen: set[int] = set()
    while todo:
        one, depth = todo.popleft()
        if id(one) in seen or is_plain(one) or depth > _CHAIN or is_a(one, _NOT_FOLLOWED):
            continue
        seen.add(id(one))
        if is_a(one, types.MethodType):
            todo.append((one.__self__, depth))
            one = one.__func__
        if is_a(one, types.FunctionType):
            if _is_users(one):
                yield one
            continue
        held: Any = unasked(one, "__dict__")
        if not is_external(session, one) or (is_a(one, (type, types.ModuleType)) and not _is_of_users(one)):
            continue
        for name in names:
            if type(held) is dict and name in held:
                note_attribute_read(session, one, name, held[name])
                todo.append((held[name], depth + 1))
            elif is_a(one, types.ModuleType):
                continue
            elif (found := defined(one if is_a(one, type) else type(one), name)) is not None:
                yield from _of_class(session, one, name, found)


def _of_class(session: Session, one: Any, name: str, found: Any) -> Iterator[types.FunctionType]:
    """Guard what an object has from its class; the function that it is, or that it calls."""
    function = _function_of(found)
    if function is not None:
        if _is_users(function):
            note_definition(session, one, name)
            yield function
    elif found not in PATCHED and not hasattr(type(found), "__get__"):
        note_attribute_read(session, one, name, found)


def _function_of(found: Any) -> types.FunctionType | None:
    """The Python function that a class holds, or that a property or another descriptor of its calls."""
    function = unasked(found, "fget") or unasked(found, "func") or unasked(found, "__func__", found)
    return function if is_a(function, types.FunctionType) else None


def _is_users(function: types.FunctionType) -> bool:
    return not home_of(function.__code__.co_filename)


def _is_of_users(one: Any) -> bool:
    """Whether a class or Python module is not of a library."""
    return not is_librarys(str(one.__module__ if is_a(one, type) else one.__name__))


@lru_cache(maxsize=4096)
def _names(code: types.CodeType) -> tuple[str, ...]:
    """The names of attributes and globals in a code object, and in those that are nested in it."""
    inner = (name for constant in code.co_consts if is_a(constant, types.CodeType) for name in _names(constant))
    return tuple(dict.fromkeys((*code.co_names, *inner)))


__all__ = ["note_answers", "note_methods", "note_reads"]
