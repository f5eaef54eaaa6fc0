"""What a function gives on the paths that an exception leaves it on (see ``constructs.escape``)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from dy2static.operators.shared.staging import Choice, Session, distribute
from runtime.tracer.ambient import catching


class Escaping(NamedTuple):
    """What a function gives on the paths that an exception leaves it on."""

    error: Any


def holds(value: Any) -> bool:
    """Whether a call's result stands for an exception, at least on some paths."""
    if isinstance(value, Choice):
        return any(map(holds, value.options))
    return isinstance(value, Escaping)


def settled(session: Session, result: Any) -> Any:
    """A function's result without what stands for no exception: a place that is never reached."""
    if not isinstance(result, Choice):
        return result
    return without(session, result, lambda option: isinstance(option, Escaping) and option.error is None)


def raised(session: Session, result: Any) -> Any:
    """A function's result; the exceptions that it stands for and that no handler around waits for are raised: it was a
    ``finally`` in the function that did.

    Raises:
        BaseException: The exception, where it leaves the function on every path.
    """
    def own(option: Any) -> Any:
        if isinstance(option, Choice):
            return raised(session, option)
        error = option.error if isinstance(option, Escaping) else None
        if isinstance(error, Choice):
            return distribute(session, error, lambda one: own(Escaping(one)))
        if isinstance(error, BaseException) and not catching.is_caught(session, type(error)):
            raise error
        return option

    if not any(not catching.is_caught(session, type(error)) for error in _errors(result)):
        return result
    if not isinstance(result, Choice):
        return own(result)
    return distribute(session, result, own, itself=True, narrows=True)


def _errors(value: Any, escapes: bool = False) -> Iterator[BaseException]:
    """The exceptions that a result stands for."""
    if isinstance(value, Choice):
        for option in value.options:
            yield from _errors(option, escapes)
    elif isinstance(value, Escaping):
        yield from _errors(value.error, True)
    elif escapes and value is not None:
        yield value


def without(session: Session, choice: Choice, leaves_out: Any) -> Any:
    """The choice without some options, which it is known not to be."""
    positions = [index for index, option in enumerate(choice.options) if not leaves_out(option)]
    if len(positions) == len(choice.options):
        return choice
    if len(positions) <= 1:
        return choice.options[positions[0]] if positions else None
    selector: Any = len(positions) - 1
    for new in range(len(positions) - 2, -1, -1):
        selector = session.scalar("select", choice.selector == positions[new], new, selector)
    return Choice(selector, tuple(choice.options[index] for index in positions))
