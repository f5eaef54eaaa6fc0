"""What a Python function can come to by the names in its code: whether it may read a place that a trace stored to."""

from __future__ import annotations

import functools
import sys
import types
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

from runtime.kinds import is_a
from runtime.tracer.ambient.unasked import unasked
from runtime.tracer.python_state.guards import is_plain
from runtime.tracer.python_state.journal import Place

_BUDGET = 20_000
_LIBRARY = frozenset(sys.stdlib_module_names) | {"torch", "numpy"}
"""Their functions come to users' objects by their arguments only."""
_CACHED: Any = type(functools.lru_cache(lambda: None))
_ALL_NAMES = frozenset({"__dict__", "vars", "eval", "exec", "globals", "locals", "dir"})


def reaches(roots: Iterable[Any], places: list[Place]) -> bool:
    """Whether code that starts from ``roots`` may read one of the places; True where that is hard to tell."""
    names: set[str] = set()
    while True:
        known = len(names)
        found = _walk(list(roots), places, names)
        if found is None or names & _ALL_NAMES:
            return True
        if found or len(names) == known:
            return found


def _walk(todo: list[Any], places: list[Place], names: set[str]) -> bool | None:
    """One walk with the names known so far, to which it adds; None if it is too long."""
    globals_of = {(id(place.owner), place.name) for place in places if place.kind == "global"}
    attributes = {(id(place.owner), place.name) for place in places if place.kind == "attribute"}
    wholes = {id(place.owner) for place in places if place.kind not in ("global", "attribute")}
    seen: dict[int, Any] = {}
    while todo:
        one = todo.pop()
        if id(one) in seen or is_plain(one):
            continue
        seen[id(one)] = one
        if len(seen) > _BUDGET:
            return None
        if id(one) in wholes or any((id(one), name) in attributes for name in names):
            return True
        if is_a(one, types.FunctionType):
            if _top(one) in _LIBRARY:
                continue
            names.update(_names(one.__code__))
            if any((id(one.__globals__), name) in globals_of for name in names):
                return True
            for cell in one.__closure__ or ():
                if id(cell) in wholes or any(owner == id(cell) for owner, _ in attributes):
                    return True
            todo.extend(_of_function(one, names))
        else:
            todo.extend(_of_object(one, names))
    return False


def _top(obj: Any) -> str:
    return str(unasked(obj, "__module__") or "").partition(".")[0]


def _names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for const in code.co_consts:
        if is_a(const, types.CodeType):
            yield from _names(const)
        elif is_a(const, str) and const.isidentifier():
            yield const


def _of_function(function: types.FunctionType, names: set[str]) -> Iterator[Any]:
    for name in _names(function.__code__):
        if name in function.__globals__:
            yield function.__globals__[name]
        if name in sys.modules and name.partition(".")[0] not in _LIBRARY:
            yield sys.modules[name]
    for cell in function.__closure__ or ():
        if cell != types.CellType():
            yield cell.cell_contents
    yield from function.__defaults__ or ()
    yield from (function.__kwdefaults__ or {}).values()


def _of_object(obj: Any, names: set[str]) -> Iterator[Any]:
    if is_a(obj, dict):
        yield from obj.values()
    if is_a(obj, (list, tuple, set, frozenset, deque, dict)):
        yield from obj
    if is_a(obj, functools.partial):
        yield from (obj.func, *obj.args, *obj.keywords.values())
    if is_a(obj, (types.MethodType, types.BuiltinMethodType)):
        yield obj.__self__
    if is_a(obj, types.MethodType):
        yield obj.__func__
    if is_a(obj, (staticmethod, classmethod)) or is_a(obj, _CACHED):
        yield obj.__wrapped__
    if is_a(obj, property):
        yield from (obj.fget, obj.fset)
    if is_a(obj, types.ModuleType):
        if obj.__name__.partition(".")[0] not in _LIBRARY:
            yield from (obj.__dict__[name] for name in names if name in obj.__dict__)
        return
    classes = obj.__mro__ if is_a(obj, type) else type(obj).__mro__
    if _top(classes[0]) in _LIBRARY | {"builtins"}:
        return
    namespaces: list[Any] = [vars(cls) for cls in classes if _top(cls) not in _LIBRARY | {"builtins"}]
    namespace = unasked(obj, "__dict__")
    if type(namespace) is dict:
        namespaces.append(namespace)
        namespaces += [part for slot in ("_parameters", "_buffers", "_modules") if (part := namespace.get(slot))]
    for space in namespaces:
        yield from (value for name, value in list(space.items()) if name in names or _is_special(name))


def _is_special(name: str) -> bool:
    """Whether Python itself calls a method by this name."""
    return name.startswith("__") and name.endswith("__") and name != "__dict__"


__all__ = ["reaches"]
