"""What a function gives on the paths that an exception leaves it on (see ``constructs.escape``)."""

from __future__ import annotations

from typing import Any, NamedTuple

from dy2static.operators.shared.staging import Choice, Session


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
