"""Generators: turned inside out where what consumes them runs to their end, or to a ``break``.

    for v in gen(x):       ->   push(give, x)      where give(item): v = item; body; return not <goes on>
        body

Then generator and consumer may both decide on tensors, in eager's order. A generator that is consumed in any other way
(``next``, ``zip``, code that is not converted) is the Python generator it looks like.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Generator
from typing import Any

from dy2static.operators.calls.call import call
from dy2static.operators.calls.truth import truth_of
from dy2static.operators.provenance.provenance import memo
from dy2static.operators.shared.policy import home_of
from dy2static.operators.shared.staging import Session, Staged, active, python_method
from runtime.kinds import is_a

Give = Callable[[Any], Any]
Push = Callable[..., None]


def generator(pull: Callable[..., Any], push: Push, values: tuple[Any, ...], name: str) -> Generator[Any, Any, Any]:
    """The generator ``pull(*values)``; a trace remembers its other form."""
    made: Any = pull(*values) if inspect.isgeneratorfunction(pull) else _without_items(pull, values)
    made.__name__ = name
    inside = made.__qualname__.rpartition(".<locals>.")[0]
    made.__qualname__ = inside if inside.rpartition(".")[2] == name else f"{inside}.<locals>.{name}"
    session = active()
    if session is not None:
        remember(session, made, lambda give: push(give, *values))
    return made


def _without_items(pull: Callable[..., Any], values: tuple[Any, ...]) -> Generator[Any, Any, Any]:
    """What has no ``yield`` that is ever reached: its conversion has none. It runs when the first item is asked for."""
    return pull(*values)
    yield


def remember(session: Session, made: Generator[Any, Any, Any], run: Callable[[Give], None]) -> None:
    """Note the other form of a generator, and the path of the trace that made it."""
    known = memo(session)
    known.made += 1
    known.generators[made] = run, session.journal.frames[-1], known.made


def returned(value: Any) -> None:
    """Note what a generator returns whose consumer runs in it: ``next()`` says so where there is no item."""
    session = active()
    if session is not None:
        memo(session).returned = value, session.scope


def fresh(value: Any) -> Any:
    """The value of a call that stands where it is consumed: ``for v in gen(x)``, ``any(gen(x))``.

    No variable has it, so that an iterator which this call made is nobody's but the consumer's. That is seen in the
    source, not by a reference count: what a debugger refers to changes nothing.
    """
    session = active()
    if session is not None:
        known = memo(session)
        generator = known.generators.get(value) if is_a(value, types.GeneratorType) else None
        if value is known.new_iterator if generator is None else generator[2] > known.before_call:
            known.unheld.append(value)
    return value


def is_unheld(session: Session, value: Any) -> bool:
    """Whether nothing but the consumer that asks has an iterator; it is the only one to be told so."""
    unheld = memo(session).unheld
    for position in range(len(unheld) - 1, -1, -1):
        if unheld[position] is value:
            del unheld[position:]  # later ones were left by calls that did not ask
            return True
    return False


class Held:
    """What a generator expression iterates over, which is nobody else's if the expression makes it."""

    def __init__(self, value: Any) -> None:
        session = active()
        self.value = value
        self.unheld = session is not None and is_unheld(session, value)


def take(held: Held) -> Any:
    """What was held, once."""
    value = held.value
    del held.value
    session = active()
    if held.unheld and session is not None:
        memo(session).unheld.append(value)
    return value


def decided(value: Any) -> Any:
    """A condition around a ``yield``, where the generator is taken item by item: it must be known now."""
    session = active()
    if session is not None:
        value = truth_of(session, value)
        if is_a(value, Staged):
            raise session.error(
                "a generator decides on a tensor, and its items are taken one by one: by next(), zip(), unpacking, a "
                "loop that may be left while something else still holds the generator, or code that is not converted",
                hint="Let one for loop, list(), sum() or the like take all its items.", code="D2S212")
    return value


def is_fresh(session: Session, value: Any) -> bool:
    """Whether a value is a generator of converted code that nothing was taken from yet."""
    if not is_a(value, types.GeneratorType):
        return False
    require_not_left(session, value)
    if value in memo(session).running:
        raise session.error("a generator is used inside a loop over it", code="D2S266",
                            hint="Make it a list first: items = list(...).")
    known = memo(session).generators.get(value)
    if known is None or inspect.getgeneratorstate(value) != inspect.GEN_CREATED:
        return False
    if known[1] is not session.journal.frames[-1]:
        raise session.error("a generator is used on a path that is only taken for some inputs, or again and again",
                            hint="Make it there, or make it a list first: items = list(...).", code="D2S266")
    return True


def require_not_left(session: Session, value: Any) -> None:
    """Refuse to take more from a generator that was left by a consumer, which took it to be its own.

    Raises:
        TraceError: D2S266.
    """
    if is_a(value, types.GeneratorType) and value in memo(session).left:
        raise session.error(
            "a generator is used again after something else stopped taking its items: how far that came is only known "
            "while the Program runs", hint="Make it a list first: items = list(...).", code="D2S266")


def generator_of(session: Session, iterable: Any) -> Any:
    """What a user's ``__iter__`` gives where it is a generator function, else None."""
    method = python_method(iterable, "__iter__")
    if method is None or not method.__code__.co_flags & inspect.CO_GENERATOR or home_of(method.__code__.co_filename):
        return None
    return call(method, iterable)


__all__ = [
    "Held", "decided", "fresh", "generator", "is_fresh", "is_unheld", "generator_of", "remember",
    "require_not_left", "returned", "take",
]  # fmt: skip
