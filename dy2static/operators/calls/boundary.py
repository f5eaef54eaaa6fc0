"""What may leave converted code: which callees that are not converted get a list whose length only the run knows.

While tracing, such a list or deque holds a stand-in for its items (``runtime.tracer.values.structure.Growing``). Code
that is not converted would take it for one item. So a call gets such a list, or what holds one, only if the callee is
in the table below; every other call is a located error.

    setattr(obj, "items", xs)     in the table: it only hands the list on
    json.dumps({"items": xs})     refused: it reads the items
"""

from __future__ import annotations

import abc
import bisect
import builtins
import collections
import contextlib
import copy
import dataclasses
import enum
import functools
import heapq
import inspect
import itertools
import json
import math
import operator
import statistics
import types
import typing
import weakref
from collections import deque
from collections.abc import Iterable
from typing import Any

import torch

from dy2static.operators.calls import growing
from dy2static.operators.shared import asked_methods, module_parts, namespaces, policy
from dy2static.operators.shared.asked_methods import SHOWN
from dy2static.operators.shared.reachable import (
    TOO_MUCH,
    Code,
    has_grown,
    is_several,
    is_stand_in,
    names_in,
    reached,
)
from dy2static.operators.shared.staging import Session
from runtime.kinds import is_a
from runtime.ops.exact import exact
from runtime.tracer.ambient import objects
from runtime.tracer.ambient.unasked import unasked


class Takes(enum.Flag):
    """What a callee may be given."""

    NOTHING = 0
    GROWN = enum.auto()
    """The list itself: it is handed on as it is, or the callee is one of ours and knows such lists."""
    HOLDERS = enum.auto()
    """What holds the list: the callee reads no further than the items of what it is given."""
    BOTH = GROWN | HOLDERS


_ITERTOOLS = tuple(getattr(itertools, name) for name in (
    "accumulate", "batched", "chain", "combinations", "combinations_with_replacement", "compress", "dropwhile",
    "filterfalse", "groupby", "islice", "pairwise", "permutations", "product", "starmap", "takewhile", "zip_longest",
) if hasattr(itertools, name))  # fmt: skip
"""Where there is more to see than Python's own would, ours run."""
COMPARING = tuple(getattr(module, name) for module, names in (
    (heapq, ("heappush", "heappop", "heapify", "heapreplace", "heappushpop", "_heapify_max", "_heapreplace_max",
             "_heappop_max", "heapify_max", "heappush_max", "heappop_max", "heapreplace_max", "heappushpop_max")),
    (bisect, ("bisect_left", "bisect_right", "insort_left", "insort_right")),
) for name in names if is_a(getattr(module, name, None), types.BuiltinFunctionType))  # fmt: skip
"""C functions that compare items: Python's own Python versions of them run where only the run can."""

_OF_STATISTICS = ("mean", "fmean", "harmonic_mean", "geometric_mean", "median", "median_low", "median_high", "mode",
                  "multimode", "quantiles", "variance", "pvariance", "stdev", "pstdev")  # fmt: skip
"""Functions of ``statistics`` that are written in Python of ours for what only the run knows."""

_IN_PLACE = (
    "iadd", "isub", "imul", "imatmul", "itruediv", "ifloordiv", "imod", "ipow", "ilshift", "irshift", "iand", "ixor",
    "ior", "call",
)
"""Functions of ``operator`` that do what a statement, or a call, does."""

_FUNCTIONS: dict[Takes, tuple[Any, ...]] = {
    Takes.BOTH: (
        abs, all, any, ascii, bool, callable, complex, deque, delattr, dir, divmod, enumerate, filter, float, format,
        frozenset, getattr, hasattr, hash, id, int, isinstance, issubclass, iter, len, list, map, max, min, next, pow,
        print, repr, reversed, round, set, setattr, slice, sorted, str, sum, super, tuple, type, vars, zip,
        builtins.range,
        *_ITERTOOLS, *COMPARING, collections.ChainMap, contextlib.nullcontext, copy.copy, dataclasses.asdict,
        dataclasses.astuple, json.dumps,
        dataclasses.fields, dataclasses.is_dataclass,
        dataclasses.replace, functools.partial, functools.reduce, operator.add, operator.concat, operator.is_,
        operator.is_not, operator.mul, operator.index, operator.sub, operator.matmul, operator.truediv,
        operator.floordiv, operator.mod, operator.pow, operator.lshift, operator.rshift, operator.and_, operator.or_,
        operator.xor, operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne, operator.contains,
        operator.getitem, operator.setitem, operator.delitem, operator.truth, operator.not_,
        *(getattr(operator, name) for name in _IN_PLACE if hasattr(operator, name)),
        inspect.isclass, inspect.isfunction, inspect.ismethod, inspect.ismodule, inspect.isbuiltin, inspect.isroutine,
        inspect.isgenerator, inspect.isgeneratorfunction, inspect.iscoroutine, inspect.isawaitable,
        list.__new__, dict.__new__, deque.__new__,
        set.__new__, types.MethodType, types.SimpleNamespace, typing.cast, torch.as_tensor, torch.asarray,
        torch.is_tensor, torch.tensor, torch.utils.checkpoint.checkpoint, weakref.ref,
    ),
    Takes.GROWN: (
        copy.deepcopy, heapq.nsmallest, heapq.nlargest, operator.length_hint, torch.split, torch.Tensor.split,
        torch.nn.utils.rnn.pad_sequence, math.fsum, math.dist, exact,
        *(getattr(statistics, name) for name in _OF_STATISTICS),
    ),
    Takes.HOLDERS: (
        dict, collections.OrderedDict, collections.defaultdict, collections.Counter,
        contextlib.ExitStack,
    ),
}  # fmt: skip

_METHODS: dict[type, dict[Takes, frozenset[str]]] = {
    list: {Takes.BOTH: frozenset({
        "append", "insert", "extend", "pop", "clear", "copy", "reverse", "__setitem__", "__getitem__", "__delitem__",
        "__iadd__", "__add__", "__len__", "__iter__", "__reversed__", "__init__",
    })},
    deque: {Takes.BOTH: frozenset({
        "append", "appendleft", "insert", "extend", "pop", "popleft", "clear", "copy", "reverse", "rotate",
        "__setitem__", "__getitem__", "__delitem__", "__len__", "__iter__", "__reversed__",
    }), Takes.HOLDERS: frozenset({"extendleft", "__init__"})},
    dict: {Takes.BOTH: frozenset({
        "get", "setdefault", "pop", "popitem", "clear", "copy", "keys", "values", "items", "__setitem__", "__getitem__",
        "__delitem__", "__len__", "__iter__", "__contains__", "move_to_end",
    }), Takes.HOLDERS: frozenset({"update", "__init__", "__or__", "__ior__", "fromkeys"})},
    set: {Takes.HOLDERS: frozenset({
        "add", "discard", "remove", "pop", "clear", "copy", "update", "union", "difference", "intersection",
        "__contains__", "__len__", "__iter__",
    })},
    tuple: {Takes.BOTH: frozenset({"__getitem__", "__len__", "__iter__", "__add__", "__new__"})},
    property: {Takes.BOTH: frozenset({"__get__", "__set__"})},
    type: {Takes.BOTH: frozenset({"__call__", "mro", "__subclasses__"})},
    object: {Takes.BOTH: frozenset({
        "__init__", "__new__", "__setattr__", "__getattribute__", "__delattr__", "__init_subclass__",
        "__class_getitem__",
    })},
}  # fmt: skip
"""Methods of containers, by the class that has them: those that compare or print items are not among them."""

_GENERATED = ("__init__", "__new__")
"""What ``dataclass`` and ``namedtuple`` write: constructors, which only keep what they are given."""

_BY_ID = {id(function): takes for takes, functions in _FUNCTIONS.items() for function in functions}

_KEEPERS = frozenset(map(id, (
    functools.wraps, functools.update_wrapper, functools.lru_cache, functools.cache, functools.cached_property,
    functools.partialmethod, functools.singledispatch, functools.singledispatchmethod, functools.total_ordering,
    functools.cmp_to_key, contextlib.contextmanager, contextlib.asynccontextmanager, staticmethod, classmethod,
    property, types.FunctionType, types.coroutine, dataclasses.dataclass, inspect.signature, inspect.unwrap,
    inspect.getsource, inspect.getdoc, weakref.finalize, weakref.WeakMethod, weakref.proxy, typing.final,
    typing.overload, abc.abstractmethod,
)))  # fmt: skip
"""Callees that keep a function or class, or ask for what is known of it, and call nothing."""
_SHOWING = (repr, str, ascii, format, print)


def require(session: Session, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Refuse a call of code that is not converted with a list that grew, or with what holds one.

    Raises:
        TraceError: D2S253.
    """
    if not _is_needed(session):
        return
    takes = _takes(f)
    if takes is not Takes.NOTHING:
        _require_methods(session, f, args, kwargs)
    if takes is Takes.BOTH:
        return
    values = [*args, *kwargs.values()]
    owner = unasked(f, "__self__")
    if owner is not None and not is_a(owner, (type, types.ModuleType, torch.Tensor)):
        values.append(owner)
    if policy.is_torch(f):
        asked_methods.require_modules(session, f, values)
        values = [value for value in values if not is_a(value, torch.nn.Module)]  # see ``module_calls``
    if not is_a(f, (types.BuiltinFunctionType, types.MethodType, type)):
        values.append(f)
    if takes is Takes.GROWN:
        values = [value for value in values if not growing.is_growing(value)]
    elif takes is Takes.HOLDERS:
        values = [value for value in values if growing.is_growing(value) or _is_open(value)]
    if not policy.is_torch(f) and takes is Takes.NOTHING:
        namespaces.require_settled(session, _name(f), f, values, _code_of(f, takes))
    require_none(session, _name(f), values, policy.is_torch(f), _code_of(f, takes))


def _is_needed(session: Session) -> bool:
    known = session.containers
    return known.has_growing or known.has_contents or known.has_unset


def _is_open(value: Any) -> bool:
    return is_a(value, torch.nn.Module) and module_parts.is_open(value)


def _code_of(f: Any, takes: Takes) -> Code | None:
    """What code among the arguments may be called, and ask for; None where that is converted, or nobody calls it."""
    if takes is not Takes.NOTHING or id(f) in _KEEPERS or policy.is_torch(f):
        return None
    if not is_a(f, types.FunctionType):
        return Code(of_library=True)
    return Code(set(names_in(f.__code__)), bool(policy.home_of(f.__code__.co_filename)))


def _require_methods(session: Session, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Refuse a call of a function that reads no further than the items, but calls special methods of these which do."""
    if any(f is one for one in _SHOWING):
        own = ("__repr__",) if f in (repr, ascii) else SHOWN if f is format else ("__str__", "__repr__")
        asked_methods.require_shown(session, _name(f), args, own)
    elif f is isinstance or f is issubclass:
        asked_methods.require(session, _name(f), list(args[1:]), ("__instancecheck__", "__subclasscheck__"))
    elif f is copy.copy:
        asked_methods.require(session, _name(f), list(args), asked_methods.COPIED)
    elif f is dir:
        asked_methods.require(session, "dir()", list(args), ("__dir__",))
    elif f is hash:
        asked_methods.require_hashed(session, "hash()", args)
    elif any(f is one for one in _ITERATING) and not (f in (min, max) and len(args) > 1):
        asked_methods.require_items(session, _name(f), args[1:] if f in (map, filter, functools.reduce) else args)
    elif is_a(f, type):
        if issubclass(f, (dict, set, frozenset)):
            asked_methods.require_items(session, _name(f), args, f in (set, frozenset))
            asked_methods.require_hashed(session, _name(f), keys_of(f, args))
    else:
        owner = unasked(f, "__self__")
        given = args
        if owner is None and args and is_a(unasked(f, "__objclass__"), type):
            owner, given = args[0], args[1:]
        name = unasked(f, "__name__", "")
        if name in _TAKING_ITEMS:
            asked_methods.require_items(session, _name(f), given, is_converted=False)
        if is_a(owner, (dict, set, frozenset)):
            keys = given[:1] if name in _BY_KEY else keys_of(type(owner), given) if name in _BY_ITEMS else []
            if name in _BY_KEY or name in _BY_ITEMS:
                asked_methods.require_hashed(session, _name(f), [*keys, *asked_methods.keys_in(owner)])
        elif is_a(owner, type) and issubclass(owner, dict) and name == "fromkeys":
            asked_methods.require_hashed(session, _name(f), keys_of(set, given[:1]))


_ITERATING = (list, tuple, deque, sum, zip, enumerate, map, filter, any, all, min, max, sorted, iter, functools.reduce,
              *_ITERTOOLS)  # fmt: skip
_TAKING_ITEMS = frozenset({
    "extend", "extendleft", "__iadd__", "update", "union", "difference", "intersection", "fromkeys", "__init__",
})  # fmt: skip
_BY_KEY = frozenset({
    "get", "setdefault", "pop", "__getitem__", "__setitem__", "__delitem__", "__contains__", "move_to_end", "add",
    "discard", "remove",
})  # fmt: skip
_BY_ITEMS = frozenset({"update", "union", "difference", "intersection", "__init__", "__or__", "__ior__"})


def keys_of(cls: type, values: Iterable[Any]) -> list[Any]:
    """What becomes a key, or is looked up, where such values are given to a class of dicts or sets."""
    found: list[Any] = []
    for value in values:
        items = value
        if is_a(value, (list, tuple, deque)) and not growing.is_growing(value):
            items = objects.own_items(value)
        elif is_a(value, (set, frozenset, dict)):
            found.append(value)
            continue
        elif not is_a(value, type({}.items())):
            continue
        if issubclass(cls, dict) and not issubclass(cls, collections.Counter):
            items = [item[0] for item in items if is_a(item, (list, tuple)) and len(item) == 2]
        found.extend(items)
    return found


def require_none(
    session: Session, what: str, values: Iterable[Any], torchs: bool = False, code: Code | None = None
) -> None:
    """Refuse values of which one is, or holds, a list that grew. ``torchs``: modules' attributes do not count.
    ``code``: what functions among the values come to counts, too.

    Raises:
        TraceError: D2S253.
    """
    if not _is_needed(session):
        return
    values = list(values)
    is_certain = not session.containers.has_contents and not session.containers.has_unset
    found = None if is_certain else reached(values, is_several, not torchs, code)
    if is_a(found, dict):
        raise session.error(
            f"{what} is not converted, and is given an object or a module (or what holds one) of which only some paths "
            "set an attribute or registered a part", hint="Set and register the same on every path.", code="D2S254")
    if found is not None and found is not TOO_MUCH:
        found.refuse()
    if found is None:
        found = reached(values, has_grown, not torchs, code)
    if found is TOO_MUCH:
        raise session.error(
            f"{what} is given so much that nobody can tell whether a list whose length is only known while the "
            "Program runs is in it", hint="Give it less, or call it outside the converted function.", code="D2S253")
    if found is not None:
        raise session.error(
            f"{what} is given a {type(found).__name__} whose length is only known while the Program runs, or what "
            "holds one or reads one, and would not see its items",
            hint="Read the items in converted code: by index or slice, in a for loop, with len(), torch.stack or "
            "torch.cat.", code="D2S253")


def may_see(session: Session, f: Any, values: Iterable[Any]) -> bool:
    """Whether a function that is run as it is may come to a list that grew, or to what only some paths set."""
    return _is_needed(session) and reached([f, *values], is_stand_in, True, _code_of(f, Takes.NOTHING)) is not None


def holds_stand_in(value: Any) -> bool:
    """Whether a value is, or holds, what code that is not converted may not be given."""
    return reached((value,), is_stand_in) is not None


def _takes(f: Any) -> Takes:
    known = _BY_ID.get(id(f))
    if known is not None:
        return known
    name = unasked(f, "__name__", "")
    if is_a(f, types.FunctionType):
        generated = name in _GENERATED and f.__code__.co_filename.startswith("<")
        return Takes.BOTH if generated and "__post_init__" not in f.__code__.co_names else Takes.NOTHING
    if is_a(f, type):
        return Takes.BOTH if issubclass(f, (list, deque)) else Takes.HOLDERS if issubclass(f, (dict, set)) else (
            Takes.NOTHING)
    owner = unasked(f, "__self__")
    if owner is itertools.chain and name == "from_iterable":
        return Takes.BOTH
    cls = unasked(f, "__objclass__") or (owner if is_a(owner, type) else type(owner))
    for base, methods in _BY_NAME.items():
        if cls is base or base is not object and issubclass(cls, base):
            return methods.get(name, Takes.NOTHING)
    return Takes.NOTHING


_BY_NAME = {
    base: {name: takes for takes, names in reversed(methods.items()) for name in names}
    for base, methods in _METHODS.items()
}  # fmt: skip


def _name(f: Any) -> str:
    return f"{getattr(f, '__name__', type(f).__name__)}()"


__all__ = ["Takes", "has_grown", "holds_stand_in", "keys_of", "reached", "require", "require_none"]
