"""Reading a name that may not be bound.

    return y   ->   return load(lambda: y, "y")      where some path to it does not bind y
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from dy2static.operators.shared.staging import MISSING, Choice, Session, Undefined, active, unbound_message
from runtime.kinds import is_a


def load(read: Callable[[], Any], name: str) -> Any:
    """The value of the local variable ``name``, which ``read`` reads.

    Raises:
        UnboundLocalError: The name is not bound, with Python's own words: to the function that a block has become it is
            a free variable. A name bound only on some staged paths raises it when the Program runs and took another.
    """
    value = _UNBOUND
    with contextlib.suppress(NameError):
        value = read()
    if value is _UNBOUND:  # behind the handler: it has no context
        raise UnboundLocalError(unbound_message(name))
    return _bound(value, "UnboundLocalError", unbound_message(name))


_UNBOUND: Any = object()


def load_free(value: Any, name: str) -> Any:
    """The value of an outer function's local variable ``name``.

    Raises:
        NameError: As `load` does; where no path bound it, Python has raised it already.
    """
    return _bound(value, "NameError", unbound_message(name, True))


def _bound(value: Any, exception: str, message: str) -> Any:
    session = active() if is_a(value, Choice) else None
    return value if session is None else settle(session, value, Undefined, exception, message)


def settle(session: Session, choice: Choice, absent: Any, exception: str, message: str | None) -> Any:
    """The choice without its options that mean "no value": an assert refuses them when the Program runs. Without a
    ``message`` the exception has no arguments."""

    def is_absent(option: Any) -> bool:
        return is_a(option, absent) if is_a(absent, type) else option is absent

    positions = [index for index, option in enumerate(choice.options) if not is_absent(option)]
    if len(positions) == len(choice.options):
        return choice
    flag: Any = True
    for index in range(len(choice.options)):
        if index not in positions:
            different = choice.selector != index
            flag = different if flag is True else session.scalar("and_", flag, different)
    session.emit("assert", [session.operand(flag)], attrs={"exception": exception, "message": message})
    if len(positions) == 1:
        return choice.options[positions[0]]
    selector: Any = len(positions) - 1
    for new in range(len(positions) - 2, -1, -1):
        selector = session.scalar("select", choice.selector == positions[new], new, selector)
    return Choice(selector, tuple(choice.options[index] for index in positions))


__all__ = ["MISSING", "Undefined", "load", "load_free", "settle"]
