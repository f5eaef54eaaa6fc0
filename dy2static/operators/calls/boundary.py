"""What may leave converted code: which callees that are not converted get a list whose length only the run knows.

While tracing, such a list or deque holds a stand-in for its items (``runtime.tracer.values.structure.Growing``). Code
that is not converted would take it for one item. So a call gets such a list, or what holds one, only if the callee is
in the table below; every other call is a located error.

    setattr(obj, "items", xs)     in the table: it only hands the list on
    json.dumps({"items": xs})     refused: it reads the items
"""

from __future__ import annotations

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
import operator
import types
import typing
import weakref
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

import torch

from dy2static.operators.calls import growing
from dy2static.operators.provenance.provenance import global_names
from dy2static.operators.shared import policy
from dy2static.operators.shared.staging import Choice, Session, Staged
from runtime.tracer.ambient import contents, objects
from runtime.tracer.ambient.unasked import unasked
from runtime.tracer.python_state.guards import is_plain
from runtime.tracer.python_state.held import RowField, RowKey
from runtime.tracer.values.containers import Several, several
from runtime.tracer.values.structure import Growing


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
    "filterfalse", "islice", "pairwise", "permutations", "product", "starmap", "takewhile", "zip_longest",
) if hasattr(itertools, name))  # fmt: skip
"""Where there is more to see than Python's own would, ours run."""
COMPARING = tuple(getattr(module, name) for module, names in (
    (heapq, ("heappush", "heappop", "heapify", "heapreplace", "heappushpop", "_heapify_max", "_heapreplace_max",
             "_heappop_max", "heapify_max", "heappush_max", "heappop_max", "heapreplace_max", "heappushpop_max")),
    (bisect, ("bisect_left", "bisect_right", "insort_left", "insort_right")),
) for name in names if isinstance(getattr(module, name, None), types.BuiltinFunctionType))  # fmt: skip
"""C functions that compare items: Python's own Python versions of them run where only the run can."""

_IN_PLACE = (
    "iadd", "isub", "imul", "imatmul", "itruediv", "ifloordiv", "imod", "ipow", "ilshift", "irshift", "iand", "ixor",
    "ior", "call",
)
"""Functions of ``operator`` that do what a statement, or a call, does."""

_FUNCTIONS: dict[Takes, tuple[Any, ...]] = {
    Takes.BOTH: (
        abs, all, any, ascii, bool, callable, complex, deque, delattr, dir, divmod, enumerate, filter, float, format,
        frozenset, getattr, hasattr, hash, id, int, isinstance, issubclass, iter, len, list, map, max, min, next, pow,
        print, repr, reversed, round, set, setattr, slice, str, sum, super, tuple, type, vars, zip, builtins.range,
        *_ITERTOOLS, *COMPARING, collections.ChainMap, contextlib.nullcontext, copy.copy, dataclasses.asdict,
        dataclasses.astuple,
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
    Takes.GROWN: (sorted, heapq.nsmallest, heapq.nlargest, operator.length_hint),
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
_OBJECTS = 2_000
_DEPTH = 6


def require(session: Session, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Refuse a call of code that is not converted with a list that grew, or with what holds one.

    Raises:
        TraceError: D2S253.
    """
    if not session.containers.has_growing and not session.containers.has_contents:
        return
    takes = _takes(f)
    if takes is Takes.BOTH:
        return
    values = [*args, *kwargs.values()]
    owner = unasked(f, "__self__")
    if owner is not None and not isinstance(owner, (type, types.ModuleType, torch.Tensor)):
        values.append(owner)
    if not isinstance(f, (types.BuiltinFunctionType, types.MethodType, type)):
        values.append(f)
    if isinstance(f, types.FunctionType):
        values += _read_by(f)
    if takes is Takes.GROWN:
        values = [value for value in values if not growing.is_growing(value)]
    elif takes is Takes.HOLDERS:
        values = [value for value in values if growing.is_growing(value)]
    require_none(session, _name(f), values, policy.is_torch(f))


def _read_by(f: types.FunctionType) -> list[Any]:
    """What a function finds in its closure, and a user's function in the globals that it names; likewise the functions
    among these, which it may call."""
    found: list[Any] = []
    todo, seen = [f], {id(f)}
    for one in todo:
        held = contents.cells_of(one)
        if not policy.home_of(one.__code__.co_filename):
            held += [one.__globals__.get(name) for name in global_names(one.__code__)]
        found += held
        for value in held:
            if isinstance(value, types.FunctionType) and id(value) not in seen and len(seen) < _OBJECTS:
                seen.add(id(value))
                todo.append(value)
    return found


def require_none(session: Session, what: str, values: Iterable[Any], torchs: bool = False) -> None:
    """Refuse values of which one is, or holds, a list that grew. ``torchs``: modules' attributes do not count.

    Raises:
        TraceError: D2S253.
    """
    if not session.containers.has_growing and not session.containers.has_contents:
        return
    values = list(values)
    for one in (reached(values, _is_several, not torchs),) if session.containers.has_contents else ():
        if one is not None:
            one.refuse()
    found = reached(values, has_grown, not torchs)
    if found is not None:
        raise session.error(
            f"{what} is given a {type(found).__name__} whose length is only known while the Program runs, or what "
            "holds one, and would not see its items",
            hint="Read the items in converted code: by index or slice, in a for loop, with len(), torch.stack or "
            "torch.cat.", code="D2S253")


def reached(values: Iterable[Any], is_stand_in: Callable[[Any], bool], modules: bool = True) -> Any:
    """The first value for which ``is_stand_in`` holds, among these and what they hold; None without one."""
    seen: set[int] = set()
    todo: deque[tuple[Any, int]] = deque((value, 0) for value in values)
    while todo and len(seen) < _OBJECTS:
        value, depth = todo.popleft()
        if is_plain(value) or id(value) in seen or isinstance(value, (torch.Tensor, Staged)):
            continue
        seen.add(id(value))
        if is_stand_in(value):
            return value
        if depth < _DEPTH:
            todo.extend((item, depth + 1) for item in _inside(value, modules))
    return None


def has_grown(value: Any) -> bool:
    """Whether a value is a list that grew, or stands for its items (``f(*xs)``) or for what a row holds."""
    return growing.is_growing(value) or isinstance(value, (Growing, RowField, RowKey))


def holds_stand_in(value: Any) -> bool:
    """Whether a value is, or holds, what code that is not converted may not be given."""
    return reached((value,), lambda one: _is_several(one) or has_grown(one)) is not None


def _is_several(value: Any) -> bool:
    return type(value) in (Several, RowKey, RowField)


def _inside(value: Any, modules: bool) -> Iterable[Any]:
    if isinstance(value, Choice):  # what is done to it is done to each option, opened
        opened = [(option, several(option)) for option in value.options]
        return [one for option, held in opened for one in (held.options if held is not None else (option,))]
    found: list[Any] = []
    if isinstance(value, (list, tuple, set, frozenset, deque)):
        found.extend(value)  # += would ask the class of a user's list for __radd__
    elif isinstance(value, dict):
        found.extend((*value.values(), *(key for key in value if _is_several(key))))
    elif isinstance(value, functools.partial):
        found.extend((value.func, *value.args, *value.keywords.values()))
    elif isinstance(value, types.MethodType):
        found.append(value.__self__)
    elif isinstance(value, (type, types.ModuleType, types.FunctionType)):
        return found
    if modules or not isinstance(value, torch.nn.Module):
        found.extend(objects.attributes(value).values())
    return found


def _takes(f: Any) -> Takes:
    known = _BY_ID.get(id(f))
    if known is not None:
        return known
    name = unasked(f, "__name__", "")
    if isinstance(f, types.FunctionType):
        generated = name in _GENERATED and f.__code__.co_filename.startswith("<")
        return Takes.BOTH if generated and "__post_init__" not in f.__code__.co_names else Takes.NOTHING
    if isinstance(f, type):
        return Takes.BOTH if issubclass(f, (list, deque)) else Takes.HOLDERS if issubclass(f, (dict, set)) else (
            Takes.NOTHING)
    owner = unasked(f, "__self__")
    if owner is itertools.chain and name == "from_iterable":
        return Takes.BOTH
    cls = unasked(f, "__objclass__") or (owner if isinstance(owner, type) else type(owner))
    for base, methods in _METHODS.items():
        if cls is base or base is not object and issubclass(cls, base):
            return next((takes for takes, names in methods.items() if name in names), Takes.NOTHING)
    return Takes.NOTHING


def _name(f: Any) -> str:
    return f"{getattr(f, '__name__', type(f).__name__)}()"


__all__ = ["Takes", "has_grown", "holds_stand_in", "reached", "require", "require_none"]
