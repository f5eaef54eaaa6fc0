"""Exceptions that leave a function on some paths only, as values (see ``transforms.escaping``).

    def h(x):                                      error_1 = None
        if x > 0:                                  if x > 0:
            raise ValueError                           try: raise ValueError
        return x                                       except BaseException as e: error_1 = escapes(e)
                                                   if error_1 is None:
                                            ->         return x
                                                   return escaping(error_1)

    y = h(x)                                       result_1 = h(x)
                                                   error_2 = error_of(result_1)
                                                   if error_2 is None:
                                                       y = value_of(result_1)

Outside a trace nothing is handed on so: an exception is raised, and every result is the function's own.
"""

from __future__ import annotations

from typing import Any

from dy2static.operators.constructs.context import Entered, asks_nothing, entered
from dy2static.operators.shared.escaped import Escaping, error_of, holds, without
from dy2static.operators.shared.handler import OURS
from dy2static.operators.shared.staging import Choice, active
from runtime.kinds import is_a
from runtime.tracer.ambient import catching
from runtime.tracer.recording import faults

__all__ = ["also", "error_of", "errors", "escapes", "escaping", "not_swallowed", "taken", "value_of"]


def escapes(error: BaseException) -> Any:
    """The exception as a value, for the caller to hand on, if a handler around the function may catch it.

    Raises:
        BaseException: ``error`` itself, where none does, or where nothing is traced.
    """
    session = active()
    if session is None or is_a(error, OURS) or not faults.comes_of_code(error):
        raise error
    if not catching.is_caught(session, type(error)):
        raise error
    faults.require_users(session, error)
    error.__traceback__ = None  # its frames would keep alive what the path had
    return error


def escaping(error: Any) -> Any:
    """What a function returns where ``error`` leaves it: the exception, for its caller. None where no run comes."""
    return Escaping(taken(error))


def value_of(result: Any) -> Any:
    """A call's result where there is no exception."""
    session = active()
    if session is not None and is_a(result, Escaping):
        return Escaping(None)  # each run leaves by the exception before it comes here
    if session is None or not is_a(result, Choice):
        return result
    value = without(session, result, lambda option: is_a(option, Escaping))
    if holds(value):  # inside of one of several results
        raise catching.unsupported(session)
    return value


def taken(error: Any) -> Any:
    """The exception where there is one."""
    session = active()
    if session is None or not is_a(error, Choice):
        return error
    return without(session, error, lambda option: option is None)


def errors(error: Any) -> list[tuple[Any, Any]]:
    """The exceptions that ``error`` may be, each with whether it is that one."""
    if error is None:
        return []
    session = active()
    if session is None or not is_a(error, Choice):
        return [(True, error)]
    return [(error.selector == at, option) for at, option in enumerate(error.options) if option is not None]


def not_swallowed(manager: Any, error: Any) -> Any:
    """After a ``with`` block: the exception that goes on, ``error`` or one that its manager has raised, or None.

    Raises:
        TraceError: D2S229, for a manager of the standard library's, which is told of real exceptions only.
    """
    if is_a(manager, entered):
        manager = manager.manager
    if is_a(manager, Entered):
        return manager.going_on
    session = active()
    if session is not None and error is not None and not asks_nothing(manager):
        raise session.error(
            "an exception that is only known while the Program runs leaves a with statement, whose manager would be "
            "told of it", code="D2S229", hint="Put the with statement around the try statement.")
    return error


def also(before: Any, after: Any) -> Any:
    """The exception that goes on after a ``finally`` block, which may have raised one itself.

    Raises:
        TraceError: D2S229, where both are only known while the Program runs.
    """
    if after is None:
        return before
    if before is None:
        return after
    session = active()
    assert session is not None
    raise session.error(
        "whether a finally block raises is only known while the Program runs, and so is what is raised before it",
        code="D2S229", hint="Move the finally block out of the converted function.")
