"""Generators: turned inside out where what consumes them runs to their end, or to a ``break``.

    for v in gen(x):       ->   push(give, x)      where give(item): v = item; body; return not <goes on>
        body

Then generator and consumer may both decide on tensors, in eager's order. A generator that is consumed in any other way
(``next``, ``zip``, code that is not converted) is the Python generator it looks like.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator
from typing import Any

from dy2static.operators.policy import home_of
from dy2static.operators.provenance import memo
from dy2static.operators.staging import Session, Staged, active, python_method, truth_of
from runtime.tracer import cond as tracer_cond
from runtime.tracer.branches import Names

Give = Callable[[Any], Any]
Push = Callable[..., None]


def generator(pull: Callable[..., Any], push: Push, values: tuple[Any, ...], name: str) -> Generator[Any, Any, Any]:
    """The generator ``pull(*values)``; a trace remembers its other form."""
    made: Any = pull(*values)
    made.__name__ = name
    made.__qualname__ = f"{made.__qualname__.rpartition('.')[0]}.{name}".lstrip(".")
    session = active()
    if session is not None:
        remember(session, made, lambda give: push(give, *values))
    return made


def remember(session: Session, made: Generator[Any, Any, Any], run: Callable[[Give], None]) -> None:
    """Note the other form of a generator, and the path of the trace that made it."""
    memo(session).generators[made] = run, session.journal.frames[-1]


class Held:
    """What a generator expression iterates over; nothing else of ours holds it, so that it can be seen to be alone."""

    def __init__(self, value: Any) -> None:
        self.value = value


def take(held: Held) -> Any:
    """What was held, once."""
    value = held.value
    del held.value
    return value


def decided(value: Any) -> Any:
    """A condition around a ``yield``, where the generator is taken item by item: it must be known now."""
    session = active()
    if session is not None:
        value = truth_of(session, value)
        if isinstance(value, Staged):
            raise session.error(
                "a generator decides on a tensor, and its items are taken one by one: by next(), zip(), unpacking, a "
                "loop that may be left while something else still holds the generator, or code that is not converted",
                hint="Let one for loop, list(), sum() or the like take all its items.", code="D2S212")
    return value


def is_fresh(session: Session, value: Any) -> bool:
    """Whether a value is a generator of converted code that nothing was taken from yet."""
    if not inspect.isgenerator(value):
        return False
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


def generator_of(session: Session, iterable: Any) -> Any:
    """What a user's ``__iter__`` gives where it is a generator function, else None."""
    method = python_method(iterable, "__iter__")
    if method is None or not method.__code__.co_flags & inspect.CO_GENERATOR or home_of(method.__code__.co_filename):
        return None
    from dy2static.operators.call import call

    return call(method, iterable)


def drive(session: Session, source: Any, body: Callable[[Any], None], test: Callable[[], Any] | None,
          names: Names) -> None:
    """``for item in source: body(item)``, left when ``test()`` is false after an item; ``source`` is alone.

    ``names``: the local variables that ``body`` changes; they take part in what the generator stages.
    """
    if not inspect.isgenerator(source) or source not in memo(session).generators:
        from dy2static.operators.traced_for import traced_for

        traced_for(session, source, test, body, names, None, alone=True)
        return
    going = truth_of(session, test()) if test is not None else True
    if isinstance(going, Staged):
        tracer_cond.cond(session, going, lambda: _push(session, source, body, test, names), lambda: None, names)
    elif going:
        _push(session, source, body, test, names)


def _push(session: Session, source: Any, body: Callable[[Any], None], test: Callable[[], Any] | None,
          names: Names) -> None:
    outer = session.surrounding
    consumer: list[BaseException] = []

    def give(item: Any) -> Any:
        inner, session.surrounding = session.surrounding, outer
        try:
            body(item)
            going = truth_of(session, test()) if test is not None else True
        except StopIteration as error:
            consumer.append(error)
            raise
        finally:
            session.surrounding = inner
        return session.scalar("not_", going) if isinstance(going, Staged) else not going

    run, _ = memo(session).generators[source]
    source.close()
    memo(session).running.add(source)
    session.surrounding = (*outer, names)
    try:
        run(give)
    except StopIteration as error:
        if error in consumer:
            raise
        raise RuntimeError("generator raised StopIteration") from error
    finally:
        session.surrounding = outer
        memo(session).running.discard(source)


__all__ = ["Held", "decided", "drive", "generator", "is_fresh", "remember", "take"]
