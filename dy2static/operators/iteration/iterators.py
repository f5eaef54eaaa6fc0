"""Iterators that are older than the path being traced: both paths run, so advancing one there cannot be undone.

    it = iter(rows)
    if x.sum() > 0:
        first = list(it)       # refused: what is left of ``it`` would depend on the path
        own = zip(rows, rows)
        pair = next(own)       # made on this path, and advanced on it
"""

from __future__ import annotations

import builtins
import inspect
import types
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

import torch

from dy2static.operators.iteration.generator import require_not_left
from dy2static.operators.provenance import observed
from dy2static.operators.provenance.provenance import memo
from dy2static.operators.shared.staging import Choice, Session, Staged, python_method
from runtime.kinds import is_a
from runtime.tracer.ambient import contents
from runtime.tracer.ambient.calls import Findings
from runtime.tracer.ambient.unasked import unasked
from runtime.tracer.ambient.walks import walk
from runtime.tracer.python_state.notes import others
from runtime.tracer.values import unjournaled

_KEEPING = frozenset(
    id(function) for function in (
        isinstance, issubclass, id, type, callable, hasattr, getattr, setattr, repr, str, print, iter, hash, bool, len,
        builtins.slice,
    )
)  # fmt: skip
_KEEPING_METHODS = frozenset({"append", "insert", "add", "setdefault", "appendleft", "__setitem__", "index", "remove"})


def keeps(f: Any) -> bool:
    """Whether a builtin takes an iterator without advancing it."""
    return id(f) in _KEEPING or unasked(f, "__name__", "") in _KEEPING_METHODS


def note_given(session: Session, args: tuple[Any, ...]) -> None:
    """Arguments of a builtin that may advance them.

    Raises:
        TraceError: One is an iterator that is older than the path being traced, or that was left at an open place.
    """
    for arg in args:
        require_not_left(session, arg)
        unjournaled.note_advanced(session, arg)
        require_own(session, arg)


def require_own(session: Session, value: Any) -> None:
    """Refuse to advance an iterator that is older than the path being traced, whoever has it.

    No variable has the one of ``s.join(iter(rows))``, but each path does that ``s`` may come from.

    Raises:
        TraceError: D2S266.
    """
    frames = session.journal.frames
    if len(frames) > 1 and id(value) in memo(session).counters and not is_own(session, value):
        raise _advanced(session, value)
    unjournaled.require_own(session, value)
    if len(frames) > 1 and hasattr(type(value), "__next__"):
        made = made_on(session, value)
        if made is not frames[-1] and any(made is frame for frame in frames):
            raise _advanced(session, value)


def note_made(session: Session, made: Any, given: Iterable[Any]) -> None:
    """What a call of an iterator's class gave; advancing it advances the iterators that it was given."""
    if all(is_own(session, one) for one in _iterators_in(given)):
        known, created = memo(session).iterators, session.objects.created
        for key in list(known):
            earlier = known[key][0]
            if others(earlier) <= 1 + (key in created):  # nobody has it, and by it what it gave last, and its path
                del known[key]
        known[id(made)] = (made, session.journal.frames[-1])
        for one in contents.inner(made):  # zip(items) asks for one of its own
            if known.get(id(one), (None,))[0] is not one:
                known[id(one)] = (one, session.journal.frames[-1])


def begins(generator: types.GeneratorType[Any, Any, Any], f: Any) -> bool:
    """Whether a method of modules (``parameters``) has made this generator right now. Of other code's own generator
    functions nobody knows what else they advance."""
    function = unasked(f, "__func__", f)
    return is_a(function, types.FunctionType) and function.__module__ == torch.nn.Module.__module__ and (
        generator.gi_code is function.__code__ and inspect.getgeneratorstate(generator) == inspect.GEN_CREATED)


def note_other_code(session: Session, generator: types.GeneratorType[Any, Any, Any], f: Any) -> None:
    """Note a generator of a function that is not converted and that names an iterator: what it takes from it is gone,
    so the Program is for this call alone.

    Raises:
        TraceError: D2S277, on a path that only some inputs take.
    """
    function = unasked(f, "__func__", f)
    if not is_a(function, types.FunctionType) or generator.gi_code is not function.__code__:
        return
    named = [function.__globals__.get(name) for name in function.__code__.co_names]
    named += [cell.cell_contents for cell in function.__closure__ or () if cell != types.CellType()]
    if any(map(contents.is_iterator, named)):
        observed.done(session, f"{function.__name__}() is a generator of code that is not converted, and names an "
                      "iterator from outside")  # fmt: skip
        session.call.advanced = True


def _iterators_in(values: Iterable[Any]) -> Iterator[Any]:
    """What among values, or in containers there, may be advanced by who goes over it; users' ``__iter__`` included."""
    for value in walk(values, _items, 3):
        if is_a(value, (torch.Tensor, torch.nn.Module, Staged)):
            continue
        if is_a(value, Choice):
            yield from _iterators_in(value.options)
            continue
        own = (python_method(value, name) for name in ("__iter__", "__reversed__"))
        if hasattr(type(value), "__next__") or any(method is not None for method in own):
            yield value


def _items(value: Any) -> Any:
    return value if type(value) in (list, tuple, set, frozenset, dict, deque) else ()


def made_on(session: Session, iterator: Any) -> object:
    """The path, a frame of the journal, on which the trace made an iterator; None if it did not."""
    known = memo(session)
    found = known.iterators.get(id(iterator))
    if found is not None and found[0] is iterator:
        return found[1]
    generator = known.generators.get(iterator) if is_a(iterator, types.GeneratorType) else None
    return None if generator is None else generator[1]


def is_own(session: Session, iterator: Any) -> bool:
    """Whether an iterator was made on the very path that is traced, so that nobody has it on another one."""
    return made_on(session, iterator) is session.journal.frames[-1]


def require_known(session: Session, iterator: Any) -> None:
    """Refuse to advance an iterator by name on a staged path, unless it was made there.

    Raises:
        TraceError: D2S266.
    """
    if len(session.journal.frames) > 1 and not is_own(session, iterator):
        raise _advanced(session, iterator)


def _advanced(session: Session, iterator: Any) -> Exception:
    """The error for an iterator that is advanced on a path.

    Raises:
        Restart: It is a counter that the trace has made: it will be an object with a number.
    """
    made, place = memo(session).counters.get(id(iterator), (None, None))
    if made is iterator:
        raise session.restart(Findings(counting=frozenset({place})))
    return unjournaled.advanced(session)
