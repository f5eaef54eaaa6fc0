"""Frames that a traced function asks for: those of its own source, not of what the source was rewritten to.

    inspect.currentframe().f_code.co_name    ->   the name of the user's function
    sys._getframe(1).f_lineno                ->   the line that calls it, in the user's file

What calls the converted function differs from call to call, and a Program would keep what it was while it was traced:
asking for it is an error, as is all else that a frame has.
"""

from __future__ import annotations

import inspect
import sys
import traceback
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NoReturn

from dy2static.callers import Caller, callers
from dy2static.operators.provenance.provenance import memo
from dy2static.operators.shared.staging import Session
from runtime.kinds import is_a
from runtime.tracer.ambient.state import current
from runtime.tracer.values.transient import Transient

_HINT = "Pass in what the function should know of its callers, or print the stack outside of it."


class UserFrame(Transient):
    """A running call of the user's, as far as a Program may know it: function, file, line, globals, its caller."""

    __slots__ = ("_outer", "f_code", "f_globals", "f_lineno")

    def __init__(self, stack: list[Caller]) -> None:
        place, *outer = stack
        self._outer = outer
        self.f_code = SimpleNamespace(co_name=place.function, co_filename=place.file)
        self.f_lineno, self.f_globals = place.line, place.names

    @property
    def f_back(self) -> UserFrame:
        """The call that this one was made in."""
        return _frame(current(), self._outer, 0)

    def leave(self) -> NoReturn:
        raise current().error("a frame of a converted function leaves it", hint=_HINT, code="D2S214")

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("f_"):
            raise AttributeError(f"'frame' object has no attribute '{name}'")
        raise current().error(
            f"{name} of a frame inside a converted function", code="D2S214",
            hint="A frame has f_code.co_name, f_code.co_filename, f_lineno, f_globals and f_back there; "
                 "locals() gives the variables.")


def _frame(session: Session, stack: list[Caller], depth: int) -> UserFrame:
    if depth >= len(stack):
        raise session.error(
            "a converted function asks for the frame of its caller", hint=_HINT, code="D2S214")
    return UserFrame(stack[depth:])


def _stack(session: Session) -> list[Caller]:
    return list(callers(sys._getframe(1), memo(session).depth))


def _current_frame(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return _frame(session, _stack(session), 0)


def _get_frame(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if kwargs or len(args) > 1 or any(type(depth) is not int for depth in args):
        return NotImplemented
    return _frame(session, _stack(session), max(0, *args, 0))


def _refused(name: str) -> Callable[[Session, tuple[Any, ...], dict[str, Any]], Any]:
    def refuse(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        raise session.error(f"{name}() inside a converted function", hint=_HINT, code="D2S214")

    return refuse


def _is_given(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    return any(is_a(arg, UserFrame) for arg in (*args, *kwargs.values()))


def _of_a_frame(name: str) -> Callable[[Session, tuple[Any, ...], dict[str, Any]], Any]:
    refuse = _refused(name)

    def called(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return refuse(session, args, kwargs) if _is_given(args, kwargs) else NotImplemented

    return called


HANDLERS = [
    (inspect.currentframe, _current_frame),
    (sys._getframe, _get_frame),
    *((function, _refused(f"{function.__module__}.{function.__name__}")) for function in (
        inspect.stack, traceback.extract_stack, traceback.format_stack, traceback.print_stack)),
    *((function, _of_a_frame(f"inspect.{function.__name__}")) for function in (
        inspect.getframeinfo, inspect.getouterframes, inspect.getargvalues, inspect.getmodule, inspect.getsource,
        inspect.isframe)),
]
