"""Functions that call themselves: as they are where Python ends that, as a ``recursion`` where a tensor does.

Both ways of a condition on a tensor are followed, so a call that one way leads to is met again inside itself. A
function that is active several times, each time inside another branch or loop, with the same plain arguments, is one
that a tensor is to end: the trace begins again, and knows. Where plain arguments differ (``depth - 1``) they may be
what ends it, so it is followed much further first.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from dy2static.errors import Dy2StaticError
from dy2static.operators.shared.staging import Session
from dy2static.origin import root_of
from runtime import recursion_limit
from runtime.kinds import is_a
from runtime.tracer.ambient.calls import Findings
from runtime.tracer.control.recursion import Argument, begin, open_recursion
from runtime.tracer.recording.session import Scope
from runtime.tracer.values import structure

NESTING_LIMIT = 60
"""Calls inside more branches and loops than this are taken for recursion that a tensor is to end."""

ALIKE = 3
"""So do calls with the same plain arguments, inside so many activations of the function."""

Run = Callable[[tuple[Any, ...], dict[str, Any]], Any]
"""Calls a function with positional and keyword arguments."""

_LAZY = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


@dataclass(frozen=True, eq=False)
class Activation:
    """A call of a user's function that the trace is in."""

    name: str
    function: types.FunctionType
    scope: Scope
    arguments: tuple[Any, ...]


def called(session: Session, f: types.FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any], run: Run) -> Any:
    """What a call of a converted function gives; ``run`` calls it.

    Raises:
        Restart: It calls itself as deep as a tensor decides, which is known from now on.
        TraceError: D2S270.
    """
    name = _name(f)
    if name in session.call.known.recursive and _unfit(session, name) is None:
        bound = _bound(f, args, kwargs)
        if bound is not None:
            return _recursive(session, name, f, bound, run)
    here = Activation(name, f, session.scope, (*args, *kwargs.values()))
    _look(session, f, here)
    with _active(session, here):
        return run(args, kwargs)


@contextmanager
def _active(session: Session, here: Activation) -> Iterator[None]:
    if len(session.code.activations) >= recursion_limit.most_calls():
        raise too_deep(session, here.function)
    session.code.activations.append(here)
    try:
        with recursion_limit.room():
            yield
    finally:
        session.code.activations.pop()


def _look(session: Session, f: types.FunctionType, here: Activation) -> None:
    """Begin again where a function turns out to call itself without end."""
    if sum(1 for _ in session.scope.chain()) > NESTING_LIMIT:
        raise too_deep(session, f)
    others = [one for one in session.code.activations if one.name == here.name]
    if len({id(one.scope) for one in (*others, here)}) <= ALIKE:  # not each inside another branch or loop
        return
    alike = [one for one in others if _alike(one, here)]
    if len(alike) >= ALIKE and _is_staged(session, [*alike[-ALIKE:], here]):
        raise session.restart(Findings(recursive=frozenset({here.name})))


def _is_staged(session: Session, calls: Sequence[Activation]) -> bool:
    """Whether some calls, inside each other, are each in another branch or loop, and may be one recursion."""
    known, f = session.call.known, calls[-1].function
    apart = all(a.scope is not b.scope for a, b in zip(calls, calls[1:]))
    may = not f.__code__.co_flags & _LAZY and root_of(f.__code__) not in known.escaping
    return apart and may and _name(f) not in known.recursive


def _name(f: types.FunctionType) -> str:
    """A function by file, line and name: those inside a function have its place."""
    return f"{root_of(f.__code__)} {f.__qualname__}"


def _cells(f: types.FunctionType) -> tuple[int, ...]:
    """The variables from outside that a function reads, by identity: another function of the same text has others."""
    return tuple(map(id, f.__closure__ or ()))


def _alike(a: Activation, b: Activation) -> bool:
    """Whether two calls are of one function, and what they were given differs in what only a run knows, if at all."""
    if _cells(a.function) != _cells(b.function):
        return False
    return _like(a.arguments, b.arguments)


def _like(a: Any, b: Any) -> bool:
    """Whether two values are one, or two that only a run knows; of tuples all items."""
    if is_a(a, tuple) and type(a) is type(b):
        return len(a) == len(b) and all(map(_like, a, b))
    traced = structure.has_traced(a) and structure.has_traced(b)
    return structure.same_known(a, b) or (traced and type(a) is type(b))


# -- functions that are known to


@dataclass(frozen=True)
class _Bound:
    """The arguments of a call, by parameter: ``layout`` says how they are handed over."""

    layout: tuple[Any, ...]
    arguments: list[Argument]

    def call(self, run: Run, values: Any) -> Any:
        """The call with other values."""
        given = iter(values)
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        for kind, names in self.layout:
            for name in names:
                if kind is None:
                    args.append(next(given))
                else:
                    kwargs[name] = next(given)
        return run(tuple(args), kwargs)


def _bound(f: types.FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Bound | None:
    """None: Python refuses the call."""
    signature = inspect.signature(f, follow_wrapped=False)
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError:
        return None
    bound.apply_defaults()
    layout, arguments = [], []
    for name, value in bound.arguments.items():
        kind = signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_POSITIONAL:
            items = {f"{name}[{number}]": item for number, item in enumerate(value)}
        elif kind is inspect.Parameter.VAR_KEYWORD:
            items = value
        else:
            items = {name: value}
        by_name = kind in (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD)
        layout.append(("name" if by_name else None, tuple(items)))
        arguments += [Argument(label, item) for label, item in items.items()]
    return _Bound(tuple(layout), arguments)


def _recursive(session: Session, name: str, f: types.FunctionType, bound: _Bound, run: Run) -> Any:
    key = (name, f.__code__, bound.layout, _cells(f))
    found = open_recursion(session, key)
    if found is not None:
        return found.again(bound.arguments)
    others = [one for one in session.code.recursions if one.key[0] == name]
    if len(others) >= ALIKE:
        raise others[-1].error(
            f"{f.__name__}() calls another function of the same text, which each call of it makes anew",
            hint="Define it once, outside, and give it what it reads as arguments.")
    here = Activation(name, f, session.scope, ())

    def body(values: Any) -> Any:
        with _active(session, here):
            return bound.call(run, values)

    try:
        return begin(session, key, f.__name__, [f], bound.arguments, body)
    except Dy2StaticError as error:
        if not session.call.advanced:
            raise session.restart(Findings(followed=frozenset({(name, error)}))) from error
        raise


def _unfit(session: Session, name: str) -> Exception | None:
    """Why a function that calls itself can be no ``recursion``; None: it can, as far as is known."""
    return next((error for one, error in session.call.known.followed if one == name), None)


def too_deep(session: Session, f: types.FunctionType) -> BaseException:
    """What to raise where calls are inside each other more deeply than they can be traced: to begin again with a
    function that calls itself in branches or loops, or the error."""
    for name in dict.fromkeys(one.name for one in reversed(session.code.activations)):
        calls = [one for one in session.code.activations if one.name == name]
        if len(calls) <= ALIKE:
            continue
        unfit = _unfit(session, name)
        if unfit is not None:
            return unfit
        if _is_staged(session, calls[-ALIKE:]):
            return session.restart(Findings(recursive=frozenset({name})))
        f = calls[-1].function
        break
    if root_of(f.__code__) in session.call.known.escaping:
        return session.error(
            f"{f.__name__}() calls itself as deep as a tensor decides, and raises what a try around its call catches",
            hint="Let it give a flag instead of raising, and test that after the call.", code="D2S270")
    last = session.code.activations[-ALIKE:]
    if last and all(one.scope is last[-1].scope for one in last):
        return session.error(
            f"{f.__name__}() and what it calls are inside each other more deeply than Python's recursion limit allows "
            f"({recursion_limit.most_calls()}), and no tensor ends that", hint="Write it as a loop.", code="D2S270")
    return session.error(
        f"{f.__name__}() calls itself without end while it is traced: how deep it goes depends on a tensor, and both "
        "ways are followed", hint="Write it as a loop.", code="D2S270")
