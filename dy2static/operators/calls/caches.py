"""Functions under ``functools.cache`` and ``lru_cache`` inside a trace.

    mask(5)     a hit gives the cached object; a miss runs the function once, outside the trace, and caches the result.
                Runs of the Program rest on the cache holding that very object, and use it as eager does.
    mask(n)     with a value of the trace, or on a path that only some inputs take, the function is traced: nothing is
                cached, so it must do nothing but compute.
"""

from __future__ import annotations

import functools
import gc
import logging
import sys
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from dy2static.operators.calls.call import traced
from dy2static.operators.provenance.host_random import watched_draws
from dy2static.operators.provenance.provenance import adopt, holds_traced, is_external, memo
from dy2static.operators.shared.reached import reaches
from dy2static.operators.shared.staging import Choice, Session, Staged
from dy2static.origin import is_generated_file
from runtime import torch_internals
from runtime.ir import Operator
from runtime.ops.registry import definition
from runtime.tracer.ambient import one_call, state
from runtime.tracer.ambient.unasked import module_name, unasked
from runtime.tracer.ambient.walks import walk
from runtime.tracer.memory import cached_results
from runtime.tracer.memory.storage_table import Snapshot
from runtime.tracer.numbers.staged_size import StagedSize
from runtime.tracer.python_state.guards import is_plain
from runtime.tracer.python_state.journal import Place
from runtime.tracer.recording.interceptor import Interceptor
from runtime.tracer.recording.session import Scope

CACHED: Any = type(functools.lru_cache(lambda: None))
"""The class of what ``functools.lru_cache`` makes."""

_NOTHING = object()
_RAISING = ("assert", "raise")
_SYMBOLS = (torch.SymInt, torch.SymFloat, torch.SymBool)
_OURS = ("dy2static", "runtime")
_DEPTH = 8


def call_cached(session: Session, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``f(*args, **kwargs)`` of a cached function."""
    inside = is_generated_file(getattr(getattr(f.__wrapped__, "__code__", None), "co_filename", ""))
    args = tuple(map(_as_called, args))
    kwargs = {name: _as_called(arg) for name, arg in kwargs.items()}
    if any(map(_of_trace(session), (*args, *kwargs.values()))):
        return _traced(session, f, args, kwargs, inside)
    if not on_main_path(session):
        found = peek(f, args, kwargs)
        if found is _NOTHING:
            return _traced(session, f, args, kwargs, inside)
        if inside:
            return _of_own_cache(session, f, f(*args, **kwargs))
        _note_uncounted(session, f)
        return _rest_on(session, f, args, kwargs, found)
    if inside:  # the cache lives as long as the call
        return _of_own_cache(session, f, f(*args, **kwargs))
    found = peek(f, args, kwargs)
    if found is _NOTHING and _sees_values(session, (f.__wrapped__, *args, *kwargs.values())):
        return _traced(session, f, args, kwargs, inside)
    what = id(f), _identity(session, args), tuple((name, _identity(session, arg)) for name, arg in kwargs.items())
    value = _once(session, what, lambda: _really(session, f, args, kwargs, found is _NOTHING))
    session.call.uses.append(functools.partial(f, *args, **kwargs))
    return _rest_on(session, f, args, kwargs, value)


def is_users_cache(f: Any) -> bool:
    """Whether somebody put a function into a cache that has a name where it was written: ``cache(torch.zeros)``."""
    if not isinstance(f, CACHED):
        return False
    found: Any = sys.modules.get(f.__module__)
    for name in f.__qualname__.split("."):
        found = unasked(found, name)
    return found is not f


def on_main_path(session: Session) -> bool:
    """Whether each run of the Program comes to this point, once."""
    return session.scope.parent is None and len(session.journal.frames) == 1


def ask(session: Session, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``cached.cache_info()`` or ``cache_clear()``: another answer, or something to do, at each call.

    Raises:
        TraceError: D2S276, on a path that only some inputs take.
    """
    if not on_main_path(session):
        raise session.error(
            f"{f.__name__}() of a cached function on a path that only some inputs take", code="D2S276",
            hint="Call it before the branch or loop, or outside the converted function.")
    memo(session).asked_caches.add(id(f.__self__))
    _require_counted(session, f.__self__)
    session.once(f"{f.__name__}() of a cached function is called")
    return _once(session, (id(f.__self__), f.__name__), lambda: f(*args, **kwargs))


def _once(session: Session, what: Any, act: Callable[[], Any]) -> Any:
    """What a cache counts, once for a call however often that is traced."""
    known = memo(session)
    known.caches_asked += 1
    return one_call.once(known.caches_asked - 1, what, act)


def _require_counted(session: Session, f: Any) -> None:
    """Refuse a question to a cache some of whose uses it does not count: those of one path, or with traced values."""
    if id(f) in memo(session).asked_caches and id(f) in memo(session).uncounted_caches:
        raise session.error(
            f"a cache is asked what it holds, and {f.__qualname__} is also called with values "
            "of the Program, or where only some inputs come: its cache does not count that", code="D2S276",
            hint="Ask outside the converted function.")


# -- what a cache holds


def peek(f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What the cache holds for a call, without a hit being counted; _NOTHING where the function would be run."""
    probe = functools.lru_cache(maxsize=None, typed=f.cache_parameters()["typed"])(_no_result)
    probe(*args, **kwargs)
    (key,) = next(part for part in gc.get_referents(probe) if type(part) is dict and part is not probe.__dict__)
    return _held(f, key)


def _no_result(*args: Any, **kwargs: Any) -> None:
    """Stands for a cached function while its key is made."""


def _held(f: Any, key: Any) -> Any:
    referents = gc.get_referents(f)
    where = next((i for i, part in enumerate(referents) if type(part) is dict and _is_table(f, referents, i)), None)
    if where is None or key not in referents[where]:
        return _NOTHING
    table = referents[where]
    if f.cache_parameters()["maxsize"] is None:
        return table[key]
    link = type(table[key])
    before = [part for part in referents[:where] if part is not link and part is not CACHED]
    for one, value in zip(before[::2], before[1::2]):  # the links of a bounded cache: keys and results in turns
        if one is key or one == key and type(one) is type(key):
            return value
    return _NOTHING


def _is_table(f: Any, referents: list[Any], place: int) -> bool:
    """Whether this one is the table of the cache: it stands before the function."""
    return referents[place] is not f.__dict__ and any(later is f.__wrapped__ for later in referents[place + 1:])


# -- calls


def _as_called(value: Any) -> Any:
    """An argument as eager has it: what stands for a ``torch.Size`` would stay in the cache, as a key."""
    if type(value) is tuple:
        return tuple(map(_as_called, value))
    if isinstance(value, StagedSize) and all(type(size) is int for size in value):
        return torch.Size(value)
    return value


def _of_trace(session: Session) -> Any:
    """Whether a value is one of the trace, is made by the converted function, or has such a part."""

    def is_of_trace(value: Any) -> bool:
        if is_plain(value):
            return False
        if id(value) in memo(session).created or holds_traced(value) or isinstance(value, _SYMBOLS):
            return True
        return module_name(type(value)).partition(".")[0] in _OURS

    return lambda value: any(map(is_of_trace, walk([value], _parts, _DEPTH)))


def _parts(value: Any) -> tuple[Any, ...]:
    """What calling or comparing a value may use."""
    if isinstance(value, (tuple, frozenset)):
        return tuple(value)
    if isinstance(value, functools.partial):
        return (value.func, *value.args, *value.keywords.values())
    if isinstance(value, (types.MethodType, types.BuiltinMethodType)):
        return (value.__self__,)
    if isinstance(value, types.FunctionType):
        cells = [cell.cell_contents for cell in value.__closure__ or () if cell != types.CellType()]
        return (*cells, *(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values())
    return ()


def _sees_values(session: Session, roots: tuple[Any, ...]) -> bool:
    """Whether code run outside the trace may come to values of it that the converted function stored."""
    frame = session.journal.frames[0]
    stored = [place for place, old in frame.items() if place.get() is not old and holds_traced(place.get())]
    return bool(stored) and reaches(roots, stored)


@contextmanager
def outside(session: Session) -> Iterator[None]:
    """Run code as the caller would, in the middle of a trace."""
    before = state.enter(None)
    try:
        with torch_internals.as_if_not_traced(Interceptor):
            yield
    finally:
        state.enter(before)


def really(session: Session, function: Any, *args: Any, **kwargs: Any) -> Any:
    """Call a function whose result is kept from one call to the next, outside the trace, for the first time.

    Raises:
        TraceError: D2S276, if it draws random numbers after the Program does.
    """
    frame = session.journal.frames[0]
    content = {place: place.get() for place in frame}
    drew = False
    try:
        with outside(session), watched_draws(session):
            random = torch_internals.rng_state()
            value = function(*args, **kwargs)
            drew = any(not torch.equal(a, b) for a, b in zip(random, torch_internals.rng_state()))
    except Exception:
        session.once("a function whose results are cached raised an exception")
        raise
    if drew and any(definition(op.name).random for op in session.program.block.walk()):
        raise session.error(
            "a function whose results are cached draws random numbers, after the function that calls it did",
            code="D2S276", hint="Call it once before, outside.")
    if any(_differs(place, old) for place, old in content.items()):
        session.once("a function whose results are cached changes what the converted function changes")
    return value


def _really(session: Session, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any], missing: bool) -> Any:
    if missing:
        value = really(session, f, *args, **kwargs)
        if _of_trace(session)(value):
            f.cache_clear()  # a value of the trace must not be found by the next one
            raise session.error(
                f"{f.__qualname__} is cached and gives a value that the converted function stored", code="D2S276",
                hint="Take the cache away, or give it the value as an argument.")
        return value
    with outside(session):
        return f(*args, **kwargs)


def _differs(place: Place, old: Any) -> bool:
    now = place.get()
    if place.kind != "content":
        return now is not old
    values = [list(one.items() if isinstance(one, dict) else one) for one in (now, old)]
    return len(values[0]) != len(values[1]) or any(a is not b for a, b in zip(*map(_flat, values)))


def _flat(values: list[Any]) -> list[Any]:
    return [part for value in values for part in (value if type(value) is tuple else (value,))]


def _rest_on(session: Session, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any], value: Any) -> Any:
    """Guard that the cache holds this very value."""
    key = ("cached", id(f), functools._make_key(args, kwargs, typed=True))
    name = unasked(f, "__qualname__", "a function")
    before = session.call.cached.setdefault(key, value)
    if before is not value:
        session.once(f"the cache of {name} did not keep a result for the length of a call")
    session.guards.add_test(key, f"what the cache of {name} holds", lambda: peek(f, args, kwargs) is value)
    if value is not None and is_external(session, value):
        adopt(session, value)
    if not isinstance(value, torch.Tensor):
        adopt(session, value)
        session.guards.add(("cached content", id(value)), f"what {name} gave", lambda: value, value)
    return value


def _traced(session: Session, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any], inside: bool) -> Any:
    """Trace the function; the same call on the same path gives the same object.

    ``inside``: whether the converted function made it, so that its cache lives as long as the call.

    Raises:
        TraceError: D2S276, if it does anything but compute: a cache would keep it from doing so again.
    """
    for one in walk((*args, *kwargs.values()), lambda value: value if type(value) is tuple else (), _DEPTH):
        if type(one).__hash__ is None:
            hash(one)  # raises what a cache raises
    _note_uncounted(session, f)
    known: dict[Any, _Traced] = memo(session).traced_caches
    named = tuple((name, _identity(session, value)) for name, value in kwargs.items())
    key = (id(f), tuple(_identity(session, value) for value in args), named)
    scopes = list(session.scope.chain())
    if key in known and known[key].scope in scopes:
        return known[key].value
    frame = dict(session.journal.frames[-1])
    held = {place: place.get() for place in frame}
    count, before = len(session.scope.block.ops), session.storages.snapshot().made
    value = traced(session, f.__wrapped__, args, kwargs)
    _require_pure(session, unasked(f, "__qualname__", "a function"), count, held)
    made = _Traced(f, scopes[0], value, (*args, *kwargs.values()), before, session.storages.snapshot())
    others = [one for one in known.values() if one.function is f]
    may_be_found = bool(others) or not inside or f.cache_info().currsize > 0
    if key in known or may_be_found and not _is_of_this_call(session, made.given):
        for one in (made, *others):
            _require_unseen(session, one)
    known[key] = made
    session.objects.kept[id(value)] = value
    return value


@dataclass(frozen=True)
class _Traced:
    """What a cached function gave that was traced."""

    function: Any
    scope: Scope
    value: Any
    given: tuple[Any, ...]
    before: int
    """How many pieces of memory there were before."""
    after: Snapshot
    """What all memory held then."""


def _of_own_cache(session: Session, f: Any, value: Any) -> Any:
    """What the cache of a function gave that the converted function made: the same call may have been traced."""
    others = [one for one in memo(session).traced_caches.values() if one.function is f]
    if others:
        for one in (*others, _Traced(f, session.scope, value, (), 0, session.storages.snapshot())):
            _require_unseen(session, one)
    return value


def _is_of_this_call(session: Session, given: tuple[Any, ...]) -> bool:
    """Whether among the arguments is a tensor that was made inside: no other call has the same key."""
    return any(isinstance(one, torch.Tensor) and session.knows(one) and session.inputs.own_variable(one) is None
               and session.info(one).storage.origin is None for one in given)


def _require_unseen(session: Session, made: _Traced) -> None:
    """Refuse a result that is another object at each run, where a cache gives one: it can be changed, and asked for.

    Numbers, texts and tuples of these can not. Tensors are refused where that is done (``cached_results``).

    Raises:
        TraceError: D2S276.
    """
    name = unasked(made.function, "__qualname__", "a function")
    todo, seen = [made.value], {id(one): one for one in made.given}
    while todo:
        one = todo.pop()
        if id(one) in seen or is_plain(one) or isinstance(one, (Staged, *_SYMBOLS)):
            continue
        seen[id(one)] = one
        if isinstance(one, torch.Tensor):
            if session.knows(one):
                cached_results.note(session, one, name, made.before, made.after)
        elif isinstance(one, Choice):
            todo += one.options
        elif isinstance(one, (tuple, frozenset)):
            todo += one
        elif isinstance(one, slice):
            todo += (one.start, one.stop, one.step)
        elif not is_external(session, one):
            raise cached_results.refusal(session, name, f"gives an object (a {type(one).__name__})")


def _note_uncounted(session: Session, f: Any) -> None:
    memo(session).uncounted_caches.add(id(f))
    _require_counted(session, f)


def _identity(session: Session, value: Any) -> Any:
    """What is the same for two arguments that a cache surely takes for one; no user's ``__eq__`` is asked."""
    if type(value) in (tuple, torch.Size):
        return type(value), *(_identity(session, one) for one in value)
    if isinstance(value, Staged):
        known = session.sizes.expression(value) if value.kind == "int" else None
        return id(value) if known is None else ("size", known)
    return (type(value), value) if isinstance(value, (int, float, complex, str, bytes, bool, type(None))) else id(value)


def _require_pure(session: Session, name: str, count: int, held: dict[Place, Any]) -> None:
    said = ""
    for op in session.scope.block.ops[count:]:
        for one in (op, *(inner for block in op.blocks for inner in block.walk())):
            known = definition(one.name)
            if known.random:
                said = "draws random numbers"
            elif known.effect and one.name not in _RAISING and not _is_silent(session, one):
                said = "reports or does something"
    for place in session.journal.frames[-1]:
        older = place.kind == "global" or id(place.owner) in session.objects.externals
        if older and (_differs(place, held[place]) if place in held else True):
            said = f"changes {place.describe()}"
    if said:
        raise session.error(
            f"{name} is cached, gets values of the Program or is called where only some inputs come, and {said}: a run "
            "cannot tell whether eager would run it again", code="D2S276",
            hint="Call it with plain values before the branch or loop, or take the cache away.")


def _is_silent(session: Session, op: Operator) -> bool:
    """Whether an Operator is a call of a logger that reports nothing at this level; guarded."""
    if op.name != "log" or op.attrs["configure"]:
        return False
    logger, severity = logging.getLogger(op.attrs["logger"]), op.attrs["severity"]

    def silent() -> bool:  # isEnabledFor keeps its answers in a dict, a change of state
        return logger.disabled or logger.manager.disable >= severity or severity < logger.getEffectiveLevel()

    if not silent():
        return False
    session.guards.add_test(("logger", id(logger), "silent", severity), f"the level of logger '{logger.name}'", silent)
    return True


__all__ = ["CACHED", "ask", "call_cached", "is_users_cache", "on_main_path", "outside", "really"]
