"""Calls of code that is not converted, watched for what they change: attributes and containers go to the journal.

    object.__setattr__(cfg, "n", 2)     before and after the call, what ``cfg`` holds is compared: the store is one like
    heapq.heappush(items, 3)            any other, repeated at each run and joined where paths meet
    numpy.copyto(array, 0.0)            no journal can keep this: the Program is for this call alone (D2S277 on a path)
"""

from __future__ import annotations

import contextlib
import decimal
import functools
import operator
import sys
import types
from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy
import torch

from dy2static.operators.provenance import tensor_attributes
from dy2static.operators.provenance.library_reads import HEAP_TYPE
from dy2static.operators.provenance.provenance import (
    CONTAINERS,
    adopt,
    holds_traced,
    is_external,
    memo,
    namespace_owner,
    written,
)
from dy2static.operators.provenance.undoing import Undo, undos
from dy2static.operators.shared.handler import OURS
from dy2static.operators.shared.policy import is_librarys
from dy2static.operators.shared.staging import Choice, Session, Staged, Undefined
from runtime import torch_internals
from runtime.errors import Dy2StaticError
from runtime.kinds import is_a
from runtime.ops import host_numpy
from runtime.tracer.ambient import contents, objects, one_call
from runtime.tracer.ambient.unasked import module_name, unasked
from runtime.tracer.memory import host_memory, hung
from runtime.tracer.python_state.guards import is_plain
from runtime.tracer.python_state.journal import MISSING, Place, cell_value, python_kind
from runtime.tracer.values import structure
from runtime.tracer.values.numpy_arrays import NumpyArray
from runtime.tracer.values.unjournaled import NOTHING

_OBJECTS = 2_000
_BARE = frozenset({dict, list, set, deque, tuple})
"""Classes of which no object has attributes."""
_DEPTH = 3
_LONG = 4_096
_PARTS = ("__defaults__", "__kwdefaults__", "__code__", "__doc__", "__name__", "__qualname__", "__module__")
_OURS = ("runtime", "dy2static")
_READERS = frozenset({
    "get", "keys", "values", "items", "index", "count", "copy", "__getitem__", "__len__", "__contains__", "__iter__",
    "__eq__", "__repr__", "__str__", "__hash__", "most_common", "elements", "issubset", "union", "intersection",
})  # fmt: skip
_DOERS = ("_thread", "threading", "queue", "_queue", "socket", "subprocess", "shutil", "sqlite3", "pathlib", "gc",
          "multiprocessing", "signal", "_signal", "atexit", "decimal")  # fmt: skip
_ASKERS = ("is_set", "locked", "current_thread", "get_ident", "main_thread", "isenabled", "getrefcount", "ref", "proxy",
           "getweakrefcount", "joinpath", "with_suffix", "with_name", "as_posix", "relative_to")  # fmt: skip
_REGISTERING = ("singledispatch.<locals>.register", "singledispatchmethod.register")
_SYSTEM_CHANGES = frozenset({
    "putenv", "unsetenv", "mkdir", "makedirs", "rmdir", "removedirs", "remove", "unlink", "rename", "replace", "link",
    "symlink", "chmod", "chdir", "truncate", "write", "kill", "system", "umask", "utime", "setrecursionlimit",
    "settrace", "setprofile", "setswitchinterval", "addaudithook",
})  # fmt: skip

Seen = list[tuple[Any, str, Any]]
"""Objects, whether their attributes, items or state are held (of tensors, what hangs on them), and what they held."""


@contextmanager
def observed(session: Session, *roots: Any) -> Iterator[None]:
    """While the block runs code that keeps no journal: what it changes of these values, and inside them, is noted.

    So is what it changed before it raised an exception, which the user's code may catch.

    Raises:
        TraceError: D2S277, if what changed cannot be put back, on a path that only some inputs take; D2S278, where
            a Program for this call alone is of no use.
    """
    before = _picture(session, roots)
    for one in roots if not session.call.may_be_for_one_call else ():
        if module_name(type(one)).partition(".")[0] in _DOERS:
            session.once(f"code that is not converted is given a {type(one).__name__}")
    back = undos(session, (value for value, kind, _ in before if kind == "state" and not _made_inside(session, value)))
    try:
        yield
    except Exception as error:
        if is_a(error, (*OURS, *torch_internals.shape_errors())):
            if not session.call.may_be_for_one_call:  # plain Python will do it again
                for undo in back.values():
                    undo()
                with contextlib.suppress(Dy2StaticError):
                    _note_changes(session, before, back)
            raise
        if any(_differs_by_path(held) for _, _, held in before):
            raise _unsettled(session) from error
        _note_changes(session, before, back)
        raise
    _note_changes(session, before, back)


def with_users_methods(session: Session, values: Iterable[Any]) -> AbstractContextManager[None]:
    """``observed`` for C code that is given values, as far as methods that a user wrote may run there."""
    acting = [value for value in values if _acts(type(value))]
    return observed(session, *acting) if acting else contextlib.nullcontext()


def _acts(cls: type) -> bool:
    """Whether a user's class has special methods in Python, which C code may call of its objects."""
    if not cls.__flags__ & HEAP_TYPE or issubclass(cls, (torch.Tensor, torch.nn.Module)):
        return False
    if is_librarys(module_name(cls)):
        return False
    return any(type(found) is types.FunctionType and name[:2] == name[-2:] == "__" and name not in _CONSTRUCTORS
               for base in cls.__mro__ for name, found in base.__dict__.items())  # fmt: skip


_CONSTRUCTORS = ("__init__", "__new__", "__init_subclass__", "__class_getitem__", "__post_init__", "__set_name__")


def _note_changes(session: Session, before: Seen, back: dict[int, Undo]) -> None:
    changed: list[str] = []
    for value, kind, held in before:
        if kind == "hung":
            _note_hung(session, value, held)
        elif kind == "state":
            if contents.state_of(value) != held and not _made_inside(session, value):  # unjournaled.py looks at paths
                undo = back.get(id(value), _nothing)
                if session.call.may_be_for_one_call:
                    one_call.note_written(undo)
                else:
                    undo()
                host_memory.require_of_program(session, value)
                changed.append(type(value).__name__)
        elif kind == "items":
            if not held and not value and type(value) in NOTHING:
                continue
            now = Place("content", value).get()
            if not _same_items(held, now):
                if _differs_by_path(held):
                    raise _unsettled(session)
                _note(session, Place("content", value), held)
        else:
            now = _attributes(value)
            if len(now) == len(held) and all(map(operator.is_, now.values(), held.values())) and [*now] == [*held]:
                continue
            session.journal.note_late_order(_place(session, value, "").owner, tuple(held))
            moved = [name for name, old in zip(now, held) if name != old][:1]
            for name in dict.fromkeys([*held, *now]):
                if held.get(name, MISSING) is not now.get(name, MISSING) or name in moved:
                    _note(session, _place(session, value, name), held.get(name, MISSING))
    for name in changed:  # last, as it may end the trace: the journal has the rest by now
        done(session, f"a {name} is changed")


def _nothing() -> None:
    """Nobody could put that back."""


@contextmanager
def watched_tensors(session: Session, values: Iterable[Any]) -> Iterator[None]:
    """While the block runs: what is hung on tensors among ``values`` (``t.note = 3``) is a store like any other."""
    before = [(value, dict(value.__dict__)) for value in values if is_a(value, torch.Tensor)]
    try:
        yield
    except Exception as error:
        if is_a(error, (*OURS, *torch_internals.shape_errors())):
            raise
        _note_all_hung(session, before)
        raise
    _note_all_hung(session, before)


def _note_all_hung(session: Session, before: list[tuple[torch.Tensor, dict[str, Any]]]) -> None:
    for tensor, held in before:
        _note_hung(session, tensor, held)


def _note_hung(session: Session, tensor: torch.Tensor, held: dict[str, Any]) -> None:
    """Do again, as converted code would, what code that is not converted has hung on a tensor or taken off.

    Raises:
        TraceError: D2S245.
    """
    now = tensor.__dict__
    if now.keys() == held.keys() and not session.objects.hung:
        return
    users = hung.names(session, tensor) if torch_internals.is_fake(tensor) else held  # others are the fake tensor's own
    new = {name: now[name] for name in now if name not in held or (name in users and now[name] is not held[name])}
    new = {name: value for name, value in new.items() if not torch_internals.is_kept_by_torch(name)}
    gone = [name for name in held if name not in now and not torch_internals.is_kept_by_torch(name)]
    for name in (*new, *gone):
        if name in held:
            now[name] = held[name]
        else:
            del now[name]
    for name, value in new.items():
        tensor_attributes.write(session, tensor, name, value)
    for name in gone:
        tensor_attributes.delete(session, tensor, name)


def done(session: Session, what: str) -> None:
    """Something happened that no run can repeat: each call is traced, so that it happens once for each.

    Raises:
        TraceError: D2S277, on a path that only some inputs take.
    """
    session.journal.outside += 1
    if session.scope.parent is not None or len(session.journal.frames) > 1:
        raise session.error(
            f"{what} on a path that only some inputs take, by code that is not converted", code="D2S277",
            hint="Do it before the branch or loop, or after it.")
    session.once(what)


def check_text(session: Session, reason: str) -> None:
    """Note that a function runs text, which may read and change anything. ``reason``: why it is not converted.

    Raises:
        TraceError: D2S277, on a path that only some inputs take.
    """
    if reason.startswith(("it calls exec()", "it calls eval()")):
        done(session, f"{reason[9:13]}() is called")


def check_doing(session: Session, f: Any, args: tuple[Any, ...]) -> None:
    """Note what a call does to the process or the system: locks, files, settings.

    Raises:
        TraceError: D2S277, on a path that only some inputs take.
    """
    owner, name = unasked(f, "__self__"), unasked(f, "__name__", "")
    home = str(unasked(f, "__module__") or type(owner).__module__).partition(".")[0]
    if is_a(f, types.FunctionType) and args and name not in _ASKERS and not name.startswith("__"):
        home = module_name(type(args[0])).partition(".")[0] if home in _DOERS else home
    if name in _ASKERS:
        return
    if home == "functools" and unasked(f, "__qualname__", "") in _REGISTERING and not _made_inside(session, f):
        done(session, "an implementation of a singledispatch function is registered")  # which empties a hidden cache
    elif home in ("os", "posix", "sys") and name in _SYSTEM_CHANGES:
        done(session, f"{name}() is called")
    elif home in _DOERS and (not is_a(f, type)) and not (name.startswith("__") and name.endswith("__")):
        if not (owner is None and args and id(args[0]) in memo(session).created):
            done(session, f"{name}() of {home.lstrip('_')} is called")


def needs_observing(f: Any) -> bool:
    """Whether a builtin may change what it is given."""
    return unasked(f, "__name__", "") not in _READERS and unasked(f, "__module__", "") != "math"


def made(session: Session, result: Any) -> Any:
    """What a call or an operator gave: a new array of NumPy's is noted with its place; it is one of the Program's where
    an earlier attempt found that a tensor shows its memory, and that this is written or leaves."""
    if type(result) is not numpy.ndarray or result.base is not None or id(result) in session.objects.externals:
        return result
    if not host_numpy.kind_of(result):  # of objects, say, which no tensor holds
        return result
    where = session.location()
    if where is not None and where in session.call.known.arrays:
        return NumpyArray(torch.from_numpy(result.copy("K")))
    session.host.made.setdefault(id(result), (result, where))
    return result


def note_fresh(session: Session, f: Any, result: Any, given: tuple[Any, ...]) -> None:
    """Note an object that code which is not converted has made: changing it changes nothing from before the trace.

    It has if only its caller refers to the object. Of others, which a debugger or the code that made them may keep,
    nobody says here how old they are: what asks later does what is right for both (``ages.existed_before``). An array
    of NumPy's own functions is new though they may keep it.
    """
    if f is decimal.getcontext:
        adopt(session, result)  # no object that Python shows refers to it
    if f is functools.singledispatch:
        memo(session).created[id(result.register)] = result.register
    if is_plain(result) or is_a(result, _NEVER_FRESH) or contents.is_iterator(result):
        return
    if id(result) in session.objects.externals:
        return
    home = str(unasked(f, "__module__") or "").partition(".")[0]
    numpys = type(result) is numpy.ndarray and home == "numpy" and not any(result is one for one in given)
    if (numpys and result.base is None) or sys.getrefcount(result) <= _CALLERS:
        memo(session).created[id(result)] = result


_CALLERS = 3
"""References to a result that its caller's variable and the question itself are."""
_NEVER_FRESH = (torch.Tensor, Staged, Choice, Undefined, *CONTAINERS, tuple, type, types.ModuleType, types.FunctionType,
                types.BuiltinFunctionType)  # fmt: skip


def _made_inside(session: Session, value: Any) -> bool:
    """Whether an object, or the memory that it shows, was made while tracing."""
    value = host_memory.owner_of(value)
    known = memo(session)
    if is_a(value, types.GeneratorType):
        return value in known.generators
    return id(value) in known.created or known.iterators.get(id(value), (None,))[0] is value


def _differs_by_path(held: Any) -> bool:
    """Whether what was held is only known while the Program runs: code that is not converted cannot tell."""
    values = held.values() if is_a(held, dict) else held if is_a(held, list) else ()
    return any(is_a(value, (Choice, Undefined, structure.Growing)) or value is MISSING for value in values)


def _unsettled(session: Session) -> Exception:
    return session.error(
        "code that is not converted changes an object whose content depends on the path taken before", code="D2S277",
        hint="Change it in the function itself, or before the branch or loop.")


def _note(session: Session, place: Place, held: Any) -> None:
    if is_external(session, place.owner) or place.kind == "global":
        adopt(session, place.owner)
        if place.kind != "content" and not written(session, place) and (held is MISSING or not holds_traced(held)):
            key = (id(place.owner), place.name, "before")  # what changed it may have read it
            session.guards.add(key, place.describe(), place.get, held)
    session.journal.note_late(place, held)


def _place(session: Session, value: Any, name: str) -> Place:
    owner = namespace_owner(session, value) if is_a(value, dict) else None
    if owner is value:
        return Place("global", value, name)
    return Place("attribute", value if owner is None else owner, name)


def _picture(session: Session, roots: tuple[Any, ...]) -> Seen:
    found: Seen = []
    seen: set[int] = set()
    todo: deque[tuple[Any, int]] = deque((root, 0) for root in roots)
    spaces = memo(session).spaces
    while todo and len(found) < _OBJECTS:
        value, depth = todo.popleft()
        kind = type(value)
        if kind in NOTHING and not value and id(value) not in spaces:  # as most containers of a module
            if id(value) not in seen:
                seen.add(id(value))
                found.append((value, "items", NOTHING[kind]))
                if kind is OrderedDict and value.__dict__:
                    found.append((value, "attributes", dict(value.__dict__)))
            continue
        if id(value) in seen or is_plain(value) or is_a(value, (Staged, Choice, Undefined)):
            continue
        seen.add(id(value))
        notes = contents.notes_of(value)
        seen.update(notes)
        if is_a(value, torch.Tensor):
            found.append((value, "hung", dict(value.__dict__)))
            continue
        inner: list[Any] = []
        older = False
        if is_a(value, dict) and namespace_owner(session, value) is not None:
            found.append((value, "attributes", dict(value)))
            continue
        if is_a(value, CONTAINERS):
            if python_kind(value).__len__(value) > _LONG:
                continue
            content = Place("content", value).get()
            found.append((value, "items", content))
            older = id(value) in session.objects.externals
            inner = [] if is_a(value, set) else list(content.values() if is_a(value, dict) else content)
        elif is_a(value, tuple):
            inner = objects.own_items(value) if objects.own_length(value) <= _LONG else []
        elif is_a(value, functools.partial):
            inner = [value.func, *value.args, *value.keywords.values()]
        elif is_a(value, (types.MethodType, types.BuiltinMethodType)):
            inner = [value.__self__]
        elif contents.state_of(value) is not None:
            found.append((value, "state", contents.state_of(value)))
            inner = contents.inner(value)
        if kind not in _BARE and (
                depth == 0 or not is_a(value, (type, types.ModuleType, types.FunctionType))):
            held = _attributes(value)
            if held:
                found.append((value, "attributes", held))
                if not is_a(value, (type, types.ModuleType)):
                    inner += held.values()
                    older = is_external(session, value)
                    for name, one in held.items() if older else ():
                        if not is_a(one, CONTAINERS) or id(one) in session.objects.externals or id(one) in notes:
                            continue
                        if not written(session, Place("attribute", value, name)):
                            adopt(session, one)
        if older and is_a(value, CONTAINERS):
            for one in inner:
                if is_a(one, CONTAINERS) and not written(session, Place("content", value)):
                    adopt(session, one)
        if depth < _DEPTH:
            todo.extend((item, depth + 1) for item in inner)
    return found


def _attributes(value: Any) -> dict[str, Any]:
    if is_a(value, dict) and type(value) is dict:
        return value
    if str(type(value).__module__).partition(".")[0] in _OURS or is_a(value, types.CodeType):
        return {}
    if is_a(value, type):
        return dict(value.__dict__)
    found = objects.attributes(value)
    if is_a(value, types.FunctionType):
        found.update({name: getattr(value, name) for name in _PARTS})
    if is_a(value, types.CellType):
        held = cell_value(value)
        if not is_a(held, Undefined):  # the cell of a class that is being made
            found["cell_contents"] = held
    if is_a(value, BaseException):
        found["args"] = value.args
    return found


def _same_items(before: Any, now: Any) -> bool:
    if is_a(before, frozenset):
        return before == now
    if is_a(before, dict):
        pairs = zip(before.items(), now.items())
        return len(before) == len(now) and all(a is b and x is y for (a, x), (b, y) in pairs)
    return len(before) == len(now) and all(a is b for a, b in zip(before, now))


__all__ = ["check_doing", "check_text", "done", "made", "needs_observing", "note_fresh", "observed", "watched_tensors"]
