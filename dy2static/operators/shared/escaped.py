"""What a function gives on the paths that an exception leaves it on (see ``constructs.escape``)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from dy2static.operators.shared.staging import Choice, Session, active, distribute
from runtime.kinds import is_a
from runtime.tracer.ambient import catching


class Escaping(NamedTuple):
    """What a function gives on the paths that an exception leaves it on."""

    error: Any


def holds(value: Any) -> bool:
    """Whether a call's result stands for an exception, at least on some paths."""
    if is_a(value, Choice):
        return any(map(holds, value.options))
    return is_a(value, Escaping)


def error_of(result: Any) -> Any:
    """The exception that a call's result stands for; None where it is a result, on some paths or on all."""
    session = active()
    if session is None:
        return None
    if session.exceptions.escape is not None:
        if session.exceptions.escape is not result:
            raise catching.unsupported(session)
        session.exceptions.escape = None
    if is_a(result, Escaping):
        return result.error
    if not is_a(result, Choice) or not holds(result):
        return None
    if any(is_a(option, Choice) or is_a(_own_error(option), Choice) for option in result.options):
        return distribute(session, result, lambda option: error_of(option) if is_a(option, Choice) else
                          _own_error(option))  # fmt: skip
    return Choice(result.selector, tuple(map(_own_error, result.options)))


def _own_error(option: Any) -> Any:
    return option.error if is_a(option, Escaping) else None


def settled(session: Session, result: Any) -> Any:
    """A function's result without what stands for no exception: a place that is never reached."""
    if not is_a(result, Choice):
        return result
    return without(session, result, lambda option: is_a(option, Escaping) and option.error is None)


def raised(session: Session, result: Any) -> Any:
    """A function's result; the exceptions that it stands for and that no handler around waits for are raised: it was a
    ``finally`` in the function that did.

    Raises:
        BaseException: The exception, where it leaves the function on every path.
    """
    def own(option: Any) -> Any:
        if is_a(option, Choice):
            return raised(session, option)
        error = option.error if is_a(option, Escaping) else None
        if is_a(error, Choice):
            return distribute(session, error, lambda one: own(Escaping(one)))
        if is_a(error, BaseException) and not catching.is_caught(session, type(error)):
            raise error
        return option

    if not any(not catching.is_caught(session, type(error)) for error in _errors(result)):
        return result
    if not is_a(result, Choice):
        return own(result)
    return distribute(session, result, own, itself=True, narrows=True)


def _errors(value: Any, escapes: bool = False) -> Iterator[BaseException]:
    """The exceptions that a result stands for."""
    if is_a(value, Choice):
        for option in value.options:
            yield from _errors(option, escapes)
    elif is_a(value, Escaping):
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
