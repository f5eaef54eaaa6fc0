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

from dy2static.operators.shared.escaped import Escaping, holds, without
from dy2static.operators.shared.handler import OURS
from dy2static.operators.shared.staging import Choice, active, distribute
from runtime.tracer.ambient import catching
from runtime.tracer.recording import faults


def escapes(error: BaseException) -> Any:
    """The exception as a value, for the caller to hand on, if a handler around the function may catch it.

    Raises:
        BaseException: ``error`` itself, where none does, or where nothing is traced.
    """
    session = active()
    if session is None or isinstance(error, OURS) or not faults.comes_of_code(error):
        raise error
    if not catching.is_caught(session, type(error)):
        raise error
    faults.require_users(session, error)
    error.__traceback__ = None  # its frames would keep alive what the path had
    return error


def escaping(error: Any) -> Any:
    """What a function returns where ``error`` leaves it: the exception, for its caller. None where no run comes."""
    return Escaping(taken(error))


def error_of(result: Any) -> Any:
    """The exception that a call's result stands for; None where it is a result, on some paths or on all."""
    session = active()
    if session is None:
        return None
    if session.exceptions.escape is not None:
        if session.exceptions.escape is not result:
            raise catching.unsupported(session)
        session.exceptions.escape = None
    if isinstance(result, Escaping):
        return result.error
    if not isinstance(result, Choice) or not holds(result):
        return None
    if any(isinstance(option, Choice) or isinstance(_own_error(option), Choice) for option in result.options):
        return distribute(session, result, lambda option: error_of(option) if isinstance(option, Choice) else
                          _own_error(option))  # fmt: skip
    return Choice(result.selector, tuple(map(_own_error, result.options)))


def _own_error(option: Any) -> Any:
    return option.error if isinstance(option, Escaping) else None


def value_of(result: Any) -> Any:
    """A call's result where there is no exception."""
    session = active()
    if session is not None and isinstance(result, Escaping):
        return Escaping(None)  # each run leaves by the exception before it comes here
    if session is None or not isinstance(result, Choice):
        return result
    value = without(session, result, lambda option: isinstance(option, Escaping))
    if holds(value):  # inside of one of several results
        raise catching.unsupported(session)
    return value


def taken(error: Any) -> Any:
    """The exception where there is one."""
    session = active()
    if session is None or not isinstance(error, Choice):
        return error
    return without(session, error, lambda option: option is None)


def errors(error: Any) -> list[tuple[Any, Any]]:
    """The exceptions that ``error`` may be, each with whether it is that one."""
    if error is None:
        return []
    session = active()
    if session is None or not isinstance(error, Choice):
        return [(True, error)]
    return [(error.selector == at, option) for at, option in enumerate(error.options) if option is not None]


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
