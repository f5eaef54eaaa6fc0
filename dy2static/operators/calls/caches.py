"""Functions under ``functools.cache`` and ``lru_cache`` inside a trace.

    mask(5)     a hit gives the cached object; a miss runs the function once, outside the trace, and caches the result.
                Runs of the Program rest on the cache holding that very object, and use it as eager does. A trace that
                may be given up runs nothing: another one, or plain Python, would find it done.
    mask(n)     with a value of the trace, or on a path that only some inputs take, the function is traced: nothing is
                cached, so it must do nothing but compute.
"""

from __future__ import annotations

import functools
import gc
import logging
import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from dy2static.operators.calls import boundary
from dy2static.operators.calls.call import traced
from dy2static.operators.provenance.host_random import watched_draws
from dy2static.operators.provenance.provenance import adopt, holds_traced, is_external, memo
from dy2static.operators.shared import asked_methods
from dy2static.operators.shared.reached import reaches
from dy2static.operators.shared.staging import Choice, Session, Staged
from dy2static.origin import is_generated_file
from runtime import torch_internals
from runtime.errors import TraceError
from runtime.ir import Location, Operator
from runtime.kinds import is_a
from runtime.ops.registry import definition
from runtime.tracer.ambient import objects, one_call, state
from runtime.tracer.ambient.unasked import module_name, unasked
from runtime.tracer.ambient.walks import walk
from runtime.tracer.memory import cached_results
from runtime.tracer.memory.storage_table import Snapshot
from runtime.tracer.numbers.staged_size import in_eager
from runtime.tracer.python_state.guards import is_plain
from runtime.tracer.python_state.journal import Place
from runtime.tracer.recording.interceptor import Interceptor
from runtime.tracer.recording.session import Scope

CACHED: Any = type(functools.lru_cache(lambda: None))
"""The class of what ``functools.lru_cache`` makes."""

_NOTHING = object()
_RAISED = "a function whose results are cached raised an exception"
_CHANGES = "a function whose results are cached changes what the converted function changes"
_RAISING = ("assert", "raise")
_SYMBOLS = (torch.SymInt, torch.SymFloat, torch.SymBool)
_OURS = ("dy2static", "runtime")
_DEPTH = 8
_CONTAINERS = (list, dict, set)


def call_cached(session: Session, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``f(*args, **kwargs)`` of a cached function.

    Raises:
        TraceError: D2S276, if it cannot be told what the cache would give and count.
    """
    inside = _is_made_inside(f)
    args = tuple(map(in_eager, args))
    kwargs = {name: in_eager(arg) for name, arg in kwargs.items()}
    if inside:
        boundary.require(session, f, args, kwargs)
    asked_methods.require_hashed(session, f"{_name(f)}()", (*args, *kwargs.values()))
    if any(map(_of_trace(session), (*args, *kwargs.values()))):
        return _traced(session, f, args, kwargs, inside)
    if not on_main_path(session):
        found = peek(f, args, kwargs)
        if found is _NOTHING:
            if not inside:  # what it comes to hold may be changed by who gets it, and is what eager gives
                key = ("not cached", id(f), functools._make_key(args, kwargs, typed=True))
                session.guards.add_test(key, f"what the cache of {_name(f)} does not hold",
                                        lambda: peek(f, args, kwargs) is _NOTHING)
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
    return _rest_on(session, f, args, kwargs, _used(session, f, args, kwargs, found))


def _used(session: Session, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any], found: Any) -> Any:
    """What the cache gives where each run comes; the first run counts a hit, unless the trace had to."""
    what = _identity(session, args), tuple((name, _identity(session, arg)) for name, arg in kwargs.items())
    use = one_call.Use(f, what, functools.partial(f, *args, **kwargs))
    deeds = memo(session).deeds
    done = one_call.find(deeds, f, what)
    if done is None and found is _NOTHING:
        _require_last(session, f"{_name(f)}() is called with arguments that its cache does not hold")
        _require_its_own(session, f, args, kwargs)
        boundary.require(session, f.__wrapped__, args, kwargs)
        _require_in_turn(session, f)
        _count(session)
        found = one_call.once(deeds, f, what, functools.partial(_missed, session, f, args, kwargs), use)
        use.done = True
    elif done is not None:
        if done.error is not None:
            session.once(_RAISED)
        found, use.done = done.give(), True
    session.call.uses.append(use)
    return found


def _count(session: Session, f: Any = None) -> None:
    """Have the caches (or one) count what they were asked so far."""
    for use in session.call.uses:
        if not use.done and (f is None or use.owner is f):
            _require_in_turn(session, use.owner)
            with outside(session):
                one_call.did(memo(session).deeds, use)


def _require_in_turn(session: Session, f: Any) -> None:
    """Refuse what an earlier trace for this call has passed over: a cache that drops results counts in turn."""
    if f.cache_parameters()["maxsize"] and one_call.has_more(memo(session).deeds, f):
        raise session.error(
            f"{_name(f)}, whose cache drops results, is called in another order than in "
            "an earlier attempt to trace this call", code="D2S276", hint="Call it once before, outside.")


def _require_last(session: Session, why: str) -> None:
    """End a trace for which another one, or plain Python, may stand in at this call: what is done now stays done.

    Raises:
        TraceError: D2S278.
    """
    if one_call.is_tried():
        one_call.postpone()
        error = session.error(f"{why}, and the trace may be given up: what is done now would be done again",
                              code="D2S278", hint="Call it once before, outside.")
        error.for_now = True
        raise error


def is_users_cache(f: Any) -> bool:
    """Whether somebody put a function into a cache that has a name where it was written: ``cache(torch.zeros)``."""
    if not is_a(f, CACHED):
        return False
    found: Any = sys.modules.get(f.__module__)
    for name in f.__qualname__.split("."):
        found = unasked(found, name)
    return found is not f


def on_main_path(session: Session) -> bool:
    """Whether each run of the Program comes to this point, once."""
    return session.scope.parent is None and len(session.journal.frames) == 1


def ask(session: Session, cached: Any, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``cached.cache_info()`` or ``cache_clear()``: another answer, or something to do, at each call.

    Raises:
        TraceError: D2S276, on a path that only some inputs take.
    """
    if not on_main_path(session):
        raise session.error(
            f"{f.__name__}() of a cached function on a path that only some inputs take", code="D2S276",
            hint="Call it before the branch or loop, or outside the converted function.")
    memo(session).asked_caches.add(id(cached))
    _require_counted(session, cached)
    session.once(f"{f.__name__}() of a cached function is called")
    act = functools.partial(f, *args, **kwargs)
    if _is_made_inside(cached):
        return act()
    _require_last(session, f"{f.__name__}() of a cached function is called")
    _count(session, cached)
    return one_call.once(memo(session).deeds, cached, f.__name__, act, is_question=True)


def _is_made_inside(f: Any) -> bool:
    """Whether the converted function made it, so that its cache lives as long as the call."""
    return is_generated_file(getattr(getattr(f.__wrapped__, "__code__", None), "co_filename", ""))


def _require_counted(session: Session, f: Any) -> None:
    """Refuse a question to a cache some of whose uses it does not count: those of one path, or with traced values."""
    if id(f) in memo(session).asked_caches and id(f) in memo(session).uncounted_caches:
        raise session.error(
            f"a cache is asked what it holds, and {_name(f)} is also called with values "
            "of the Program, or where only some inputs come: its cache does not count that", code="D2S276",
            hint="Ask outside the converted function.")


def _name(f: Any) -> str:
    return str(unasked(f, "__qualname__", "a function"))


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


def _of_trace(session: Session) -> Any:
    """Whether a value is one of the trace, is made by the converted function, or has such a part."""

    def is_of_trace(value: Any) -> bool:
        if is_plain(value):
            return False
        if id(value) in memo(session).created or holds_traced(value) or is_a(value, _SYMBOLS):
            return True
        return module_name(type(value)).partition(".")[0] in _OURS

    return lambda value: any(map(is_of_trace, walk([value], _parts, _DEPTH)))


def _parts(value: Any) -> tuple[Any, ...]:
    """What calling or comparing a value may use."""
    if is_a(value, (tuple, frozenset)):
        return tuple(value)
    if is_a(value, functools.partial):
        return (value.func, *value.args, *value.keywords.values())
    if is_a(value, (types.MethodType, types.BuiltinMethodType)):
        return (value.__self__,)
    if is_a(value, types.FunctionType):
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
        session.once(_RAISED)
        raise
    if drew and any(definition(op.name).random for op in session.program.block.walk()):
        raise session.error(
            "a function whose results are cached draws random numbers, after the function that calls it did",
            code="D2S276", hint="Call it once before, outside.")
    if any(_differs(place, old) for place, old in content.items()):
        session.once(_CHANGES)
    return value


def _missed(session: Session, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    one_call.note_unrepeatable(functools.partial(_unrepeatable, session, f, session.location()))
    value = really(session, f, *args, **kwargs)
    if _of_trace(session)(value):
        f.cache_clear()  # a value of the trace must not be found by the next one
        raise session.error(
            f"{_name(f)} is cached and gives a value that the converted function stored", code="D2S276",
            hint="Take the cache away, or give it the value as an argument.")
    return value


def _unrepeatable(session: Session, f: Any, location: Location | None) -> Exception | None:
    """What to say where the trace has to begin again, and would see what a function did whose result it cached."""
    own = ("cached", "cached content")
    same = all(guard.once or key[0] in own or guard.holds() for key, guard in session.guards.copy().items())
    if same and ("once", _CHANGES) not in session.guards:
        return None
    return TraceError(
        f"{_name(f)} is cached and was run, as its cache did not hold what is asked for; the trace has to begin again, "
        "and what it reads is another by that", code="D2S276", hint="Call it once before, outside.", location=location)


def _differs(place: Place, old: Any) -> bool:
    now = place.get()
    if place.kind != "content":
        return now is not old
    values = [list(one.items() if is_a(one, dict) else one) for one in (now, old)]
    return len(values[0]) != len(values[1]) or any(a is not b for a, b in zip(*map(_flat, values)))


def _flat(values: list[Any]) -> list[Any]:
    return [part for value in values for part in (value if type(value) is tuple else (value,))]


def _rest_on(session: Session, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any], value: Any) -> Any:
    """Guard that the cache holds this very value."""
    key = ("cached", id(f), functools._make_key(args, kwargs, typed=True))
    name = _name(f)
    before = session.call.cached.setdefault(key, value)
    if before is not value:
        session.once(f"the cache of {name} did not keep a result for the length of a call")
    session.guards.add_test(key, f"what the cache of {name} holds", lambda: peek(f, args, kwargs) is value)
    if value is not None and is_external(session, value):
        adopt(session, value)
    if not is_a(value, torch.Tensor):
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
    _require_its_own(session, f, args, kwargs)
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
    _require_pure(session, _name(f), count, held)
    made = _Traced(f, scopes[0], value, (*args, *kwargs.values()), before, session.storages.snapshot())
    others = [one for one in known.values() if one.function is f]
    may_be_found = bool(others) or not inside or f.cache_info().currsize > 0
    if key in known or may_be_found and not _is_of_this_call(session, made.given):
        for one in (made, *others):
            _require_unseen(session, one, late=one is not made)
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


def _require_its_own(session: Session, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Refuse a function that comes to what this very run has in a list: the next call would get what it gave now.

    Raises:
        TraceError: D2S276.
    """
    if boundary.may_see(session, f.__wrapped__, (*args, *kwargs.values())):
        raise session.error(
            f"{_name(f)} is cached, and comes to a list or dict of which only the run knows what is in it: the cache "
            "would keep what it gave", code="D2S276", hint="Call it before, or take the cache away.")


def _of_own_cache(session: Session, f: Any, value: Any) -> Any:
    """What the cache of a function gave that the converted function made: the same call may have been traced."""
    others = [one for one in memo(session).traced_caches.values() if one.function is f]
    if others:
        for one in (*others, _Traced(f, session.scope, value, (), 0, session.storages.snapshot())):
            _require_unseen(session, one, late=True)
    return value


def _is_of_this_call(session: Session, given: tuple[Any, ...]) -> bool:
    """Whether among the arguments is a tensor that was made inside: no other call has the same key."""
    return any(is_a(one, torch.Tensor) and session.knows(one) and session.inputs.own_variable(one) is None
               and session.info(one).storage.origin is None for one in given)


def _require_unseen(session: Session, made: _Traced, late: bool = False) -> None:
    """Refuse a result that is another object at each run, where a cache gives one: it can be changed, and asked for.

    Numbers, texts and tuples of these can not. Tensors, containers and plain objects are refused where that is done
    (``cached_results``). ``late``: nobody has looked since it was made.

    Raises:
        TraceError: D2S276.
    """
    name = _name(made.function)
    todo, seen = [made.value], {id(one): one for one in made.given}
    while todo:
        one = todo.pop()
        if id(one) in seen or is_plain(one) or is_a(one, (Staged, *_SYMBOLS)):
            continue
        seen[id(one)] = one
        if is_a(one, torch.Tensor):
            if session.knows(one):
                cached_results.note(session, one, name, made.before, made.after)
        elif is_a(one, Choice):
            todo += one.options
        elif is_a(one, (tuple, frozenset)):
            todo += one
        elif is_a(one, slice):
            todo += (one.start, one.stop, one.step)
        elif _is_plainly_made(session, one) and (not late or not _is_made_inside(made.function)):
            if not late:  # else that was done when it was made, perhaps on a path that has ended
                cached_results.note_object(session, one, name)
            todo += cached_results.parts(one)
        elif not is_external(session, one):
            raise cached_results.refusal(session, name, f"gives an object (a {type(one).__name__})")


def _is_plainly_made(session: Session, value: Any) -> bool:
    """Whether a value is a list, dict or set, or an object that is its attributes and no more, made in the trace."""
    if type(value) in _CONTAINERS:
        return True
    created = id(value) in memo(session).created
    return created and objects.can_be_rebuilt(value) and not is_a(value, BaseException)


def _note_uncounted(session: Session, f: Any) -> None:
    memo(session).uncounted_caches.add(id(f))
    _require_counted(session, f)


def _identity(session: Session, value: Any) -> Any:
    """What is the same for two arguments that a cache surely takes for one; no user's ``__eq__`` is asked."""
    if type(value) in (tuple, torch.Size):
        return type(value), *(_identity(session, one) for one in value)
    if type(value) is frozenset:
        return frozenset, frozenset(_identity(session, one) for one in value)
    if is_a(value, Staged):
        known = session.sizes.expression(value) if value.kind == "int" else None
        return id(value) if known is None else ("size", known)
    return (type(value), value) if is_a(value, (int, float, complex, str, bytes, bool, type(None))) else id(value)


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
