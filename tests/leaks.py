"""A watch for what only the tracer may know: it must neither leave a call nor reach code that misreads it.

``watching`` notes every place where a staged number, a value that is one of several, the content of a list that grew,
a fake tensor or a hidden container is found in the result or the arguments of a call, in what the trace stored outside,
or in what a function written in C is given that cannot take it.
"""

from __future__ import annotations

import types
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import torch

from dy2static import static_function, subject
from dy2static.operators.calls import boundary as given
from dy2static.operators.calls.sequences import StagedSequence
from dy2static.operators.provenance import chosen
from dy2static.static_function import StaticFunction
from runtime import torch_internals
from runtime.kinds import is_a
from runtime.tracer.ambient import objects, state
from runtime.tracer.numbers.scalars import Staged
from runtime.tracer.python_state.guards import is_plain
from runtime.tracer.python_state.journal import MISSING
from runtime.tracer.values.containers import Several
from runtime.tracer.values.structure import CONTAINERS, Choice, Growing, Undefined, growing

STAND_INS = (Staged, Choice, Several, Growing, Undefined, StagedSequence)
_MOST, _DEPTH = 500, 5


def stand_in(*roots: Any) -> Any:
    """The first stand-in among these values and what they hold, None without one."""
    seen: set[int] = set()
    todo: deque[tuple[Any, int]] = deque((root, 0) for root in roots)
    while todo and len(seen) < _MOST:
        value, depth = todo.popleft()
        if is_plain(value) or id(value) in seen:
            continue
        seen.add(id(value))
        if is_a(value, STAND_INS) or value is MISSING or torch_internals.is_fake(value):
            return value
        if depth == _DEPTH or is_a(value, (torch.Tensor, type, types.ModuleType, types.FunctionType)):
            continue
        inner: list[Any] = []
        if type(value) in (list, tuple, set, frozenset, deque):
            inner += value
        elif is_a(value, CONTAINERS):
            kind = next(cls for cls in CONTAINERS if is_a(value, cls))
            inner += kind.values(value) if kind is dict else kind.__iter__(value)
        todo.extend((one, depth + 1) for one in (*inner, *objects.attributes(value).values()))
    return None


@contextmanager
def watching() -> Iterator[list[str]]:
    """What was found while the block ran."""
    found: list[str] = []
    call, trace, foreign = StaticFunction._call, subject.trace, chosen.foreign

    def watched_call(self: StaticFunction, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        __tracebackhide__ = True
        if state.active() is not None or stand_in(*args, *kwargs.values()) is not None:  # another trace is under way
            return call(self, args, kwargs)
        result = call(self, args, kwargs)
        for what, values in (("the result", (result,)), ("an argument", (*args, *kwargs.values()))):
            one = stand_in(*values)
            if one is not None:
                found.append(f"{what} of {self.__name__} holds a {type(one).__name__}")
        return result

    def watched_trace(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        traced = trace(function, *args, **kwargs)
        for effect in traced.effects:
            held = effect.place.get()
            if effect.path is None and held is not MISSING and stand_in(held) is not None:  # not a rebuilt argument
                found.append(f"{effect.place.describe()} holds a stand-in after the trace")
        return traced

    def watched_foreign(session: Any, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if session.containers.has_growing or session.containers.hidden:
            one = _misread(session, f, args, kwargs)
            if one is not None:
                found.append(f"{getattr(f, '__qualname__', f)}() is given {one}")
        return foreign(session, f, args, kwargs)

    for function in (watched_call, watched_trace, watched_foreign):  # no line of the user's, where an error is placed
        function.__code__ = function.__code__.replace(co_filename=str(static_function.__file__))
    with (
        mock.patch.object(StaticFunction, "_call", watched_call),
        mock.patch.object(subject, "trace", watched_trace),
        mock.patch.object(chosen, "foreign", watched_foreign),
    ):
        yield found


def _misread(session: Any, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
    """What a function is given that it cannot take: unless it only keeps it, a list that grew or has a marker inside,
    and where it keeps it, a container that only stands for another."""
    values = [*args, *kwargs.values()]
    if given._takes(f) is given.Takes.NOTHING:
        one = given.reached(values, lambda value: type(value) in (Several, Growing) or _grew(value), modules=False)
        return None if one is None else f"a {type(one).__name__} that grew, or holds one of several things"
    if getattr(f, "__name__", "") in ("append", "appendleft", "insert", "add", "setdefault", "__setitem__"):
        if any(id(value) in session.containers.hidden for value in values[-1:]):
            return "a container that stands for another"
    return None


def _grew(value: Any) -> bool:
    return is_a(value, (list, deque)) and growing(value) is not None
