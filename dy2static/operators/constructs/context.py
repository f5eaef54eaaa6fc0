"""``with`` inside a trace: ``__enter__`` and ``__exit__`` of users' classes are converted, like any other function.

    with Counted(log) as c:      ->      with context(Counted(log)) as c:
        ...                                  ...

A manager that may swallow an exception is treated as an ``except`` clause: what raises on some paths only reaches it as
a value (see ``escape``).
"""

from __future__ import annotations

import contextlib
import dis
import functools
import sys
import types
from collections.abc import Callable
from typing import Any, NoReturn

from dy2static.operators.calls import manager_halves
from dy2static.operators.calls.call import call
from dy2static.operators.calls.manager_halves import Halves
from dy2static.operators.calls.truth import truth_of
from dy2static.operators.constructs.if_expr import if_expr
from dy2static.operators.shared.escaped import error_of
from dy2static.operators.shared.handler import OURS
from dy2static.operators.shared.policy import home_of
from dy2static.operators.shared.staging import Choice, Session, Staged, active, distribute, python_method, stages
from dy2static.operators.shared.waiting import Within, waiting
from runtime.kinds import is_a
from runtime.tracer.ambient.calls import Findings
from runtime.tracer.ambient.poison import Poison
from runtime.tracer.ambient.state import current
from runtime.tracer.ambient.unasked import unasked
from runtime.tracer.recording import faults


def context(manager: Any) -> Any:
    """What ``with`` enters in place of ``manager``."""
    session = active()
    if session is None or is_a(manager, (Entered, entered)):
        return manager
    if type(manager) is Within:
        found = context(manager.manager)
        if is_a(found, Entered):
            found.waits = manager.waits
        return found
    if is_a(manager, Choice) or is_a(unasked(manager, "gen"), Choice):  # what @contextmanager made
        raise session.error(
            "which context manager is entered is only known while the Program runs",
            hint="Write the with statement in each branch.", code="D2S212")
    if is_a(manager, Halves):
        return Entered(session, manager)
    if is_a(manager, contextlib.ExitStack):
        return _Stacked(session, manager)
    for name in ("__enter__", "__exit__"):
        python_method(manager, name)  # a guard also where the class has none
    if not _is_users(manager) and not may_swallow(manager):
        return manager  # it may look at the frame it is entered from
    if not all(hasattr(type(manager), name) for name in ("__enter__", "__exit__")):
        return manager  # the interpreter says that it is none
    return Entered(session, manager)


class Entered:
    """A manager between ``__enter__`` and ``__exit__``."""

    waits: waiting | None = None
    """Of the generator whose code this is."""

    def __init__(self, session: Session, manager: Any) -> None:
        self.session, self.manager = session, manager
        self.catches = may_swallow(manager)
        self.escaping: Callable[[], Any] = lambda: None
        """The exception that has left the block as a value, on some paths or on all."""
        self.going_on: Any = None
        """That of it, or of one in its place, which the manager has not swallowed."""
        self.depth = 0
        """How many functions run around the block, that of the ``with`` included."""

    def __enter__(self) -> Any:
        catching = self.session.exceptions.catching
        before = len(catching)
        halves = is_a(self.manager, Halves)
        result = self.manager.enter() if halves else _method(self.manager, "__enter__")()
        self.depth = len(self.session.code.functions)
        for one in catching[before:]:  # of a generator in halves, which has entered them
            one.depth = self.depth  # type: ignore[attr-defined]
        if self.catches or len(catching) > before:
            catching.append(self)
        return result

    def __call__(self) -> Any:
        """The types that are caught."""
        return BaseException

    def __exit__(self, kind: Any, error: Any, trace: Any) -> bool:
        if kind is GeneratorExit and self.waits is not None and self.waits.is_over(sys._getframe(1)):
            return False
        if self in self.session.exceptions.catching:
            self.session.exceptions.catching.remove(self)
        if kind is None and (escaping := self.escaping()) is not None:
            self.going_on = self._tell(escaping)
            return False
        if is_a(error, Exception) and faults.is_ours(error):
            _leave_with(self.manager, error)
            faults.require_users(self.session, error)
        if is_a(error, OURS):
            if not _is_users(self.manager):
                _leave_with(self.manager, error)
            return False
        if kind is not None and is_a(self.manager, Halves):
            left = self._tell(error)
            if left is not None and left is not error:
                self._require_handed_on()
                self.going_on = left
            return left is not error
        result = _method(self.manager, "__exit__")(kind, error, trace)
        if kind is not None and stages(result):
            self.going_on = self._unless(result, error)
            return True
        return bool(result) if kind is not None else False

    def _tell(self, error: Any) -> Any:
        """Leave the block with an exception that is a value, or with none, on each path; returns what goes on."""
        if is_a(self.manager, Halves):
            return self._leave_half(self.manager, error)
        if is_a(error, Choice):
            return distribute(self.session, error, self._tell)
        leave = _method(self.manager, "__exit__")
        if error is None:
            leave(None, None, None)
            return None
        return self._unless(leave(type(error), error, _Trace()), error)

    def _leave_half(self, manager: Halves, error: Any) -> Any:
        """The same for a generator in halves: what leaves it goes on."""
        try:
            result = manager.leave(error)
        except BaseException as raised:
            if raised is not error:
                raise
            return error
        return error_of(result)

    def _unless(self, swallowed: Any, error: Any) -> Any:
        """The exception, unless the manager says that it is done with."""
        known = truth_of(self.session, swallowed) if stages(swallowed) else bool(swallowed)
        if not is_a(known, Staged):
            return None if known else error
        self._require_handed_on()
        return if_expr(known, lambda: None, lambda: error)

    def _require_handed_on(self) -> None:
        """Have the function take exceptions as values: only the run knows whether one leaves the block."""
        route = frozenset(self.session.code.functions[self.depth - 1 :])
        if not route <= self.session.call.known.escaping:
            raise self.session.restart(Findings(escaping=route))


def entering(manager: Any, escaping: Callable[[], Any] | None = None) -> Any:
    """What ``with`` enters in place of ``manager``; ``escaping()``: what has left its block as a value."""
    found = context(manager)
    waited_in = found.manager if is_a(found, entered) else found
    if is_a(waited_in, Entered) and escaping is not None:
        waited_in.escaping = escaping
    return found


def asks_nothing(manager: Any) -> bool:
    """Whether a manager does the same at its exit whatever has left the block."""
    if is_a(manager, entered):
        return asks_nothing(manager.manager)
    return is_a(manager, contextlib.nullcontext) or type(manager).__module__.split(".")[0] == "torch"


class _Stacked:
    """An ``ExitStack``, which is told of no exceptions that are values: none may come that it may swallow."""

    def __init__(self, session: Session, stack: contextlib.ExitStack[Any]) -> None:
        self._session, self._stack, self._waits = session, stack, self._caught

    def _caught(self) -> Any:
        callbacks = getattr(self._stack, "_exit_callbacks", ())
        return BaseException if any(_callback_swallows(one) for _, one in callbacks) else ()

    def __enter__(self) -> Any:
        self._session.exceptions.catching.append(self._waits)
        return type(self._stack).__enter__(self._stack)

    def __exit__(self, kind: Any, error: Any, trace: Any) -> Any:
        if self._waits in self._session.exceptions.catching:
            self._session.exceptions.catching.remove(self._waits)
        return type(self._stack).__exit__(self._stack, kind, error, trace)


def _callback_swallows(callback: Any) -> bool:
    """Whether what an ``ExitStack`` calls at its exit may answer that an exception is done with."""
    if is_a(callback, types.MethodType):
        manager = callback.__self__
        return may_swallow(manager) or is_a(manager, (contextlib.suppress, contextlib.ExitStack))
    return is_a(callback, types.FunctionType) and not hasattr(callback, "__wrapped__")


class entered:  # reads as an expression in generated code
    """The manager that a generator in halves waits in: the first half enters it, the second one leaves it."""

    def __init__(self, manager: Any, first: bool) -> None:
        self.manager, self._first = manager, first

    def __enter__(self) -> Any:
        return type(self.manager).__enter__(self.manager) if self._first else None

    def __exit__(self, kind: Any, error: Any, trace: Any) -> Any:
        if self._first and kind is None:
            return False
        swallowed = type(self.manager).__exit__(self.manager, kind, error, trace)
        if swallowed and self._first:
            manager_halves.not_yielded()
        return swallowed


class _Trace(Poison):
    """The traceback of an exception that is a value, which has none."""

    __slots__ = ()
    text = "<traceback>"

    def refuse(self, *args: Any) -> NoReturn:
        """What an operation on it raises.

        Raises:
            TraceError: D2S229.
        """
        raise current().error(
            "the traceback is asked for of an exception that is only known while the Program runs", code="D2S229",
            hint="Put the with statement around the try statement.")


def _leave_with(manager: Any, error: BaseException) -> None:
    """Leave a manager of torch's or Python's own with an error of ours, which it must not swallow."""
    with contextlib.suppress(type(error)):
        type(manager).__exit__(manager, type(error), error, error.__traceback__)


def _method(manager: Any, name: str) -> Any:
    method = python_method(manager, name)
    if method is None or home_of(method.__code__.co_filename):
        cls = type(manager)  # as the interpreter looks it up: what the object has under the name is not asked
        found = next(vars(base)[name] for base in cls.__mro__ if name in vars(base))
        return found.__get__(manager, cls) if hasattr(type(found), "__get__") else found
    return lambda *args: call(method, manager, *args)


def _is_users(manager: Any) -> bool:
    method = python_method(manager, "__exit__")
    return method is not None and not home_of(method.__code__.co_filename)


def may_swallow(manager: Any) -> bool:
    """Whether ``__exit__`` may answer that an exception is done with."""
    if is_a(manager, contextlib.suppress):
        return False  # it says itself what it catches
    if is_a(manager, Halves):
        return manager.catches
    generator = unasked(manager, "gen")
    if is_a(manager, contextlib.AbstractContextManager) and is_a(generator, types.GeneratorType):
        return manager_halves.may_swallow(generator)
    method = python_method(manager, "__exit__")
    if method is None or home_of(method.__code__.co_filename):
        return False
    return _may_return_true(method.__code__)


@functools.lru_cache(maxsize=1024)
def _may_return_true(code: types.CodeType) -> bool:
    """Whether a function returns anything but a literal None or False."""
    before = None
    for instruction in dis.get_instructions(code):
        if instruction.opname == "RETURN_CONST" and instruction.argval not in (None, False):
            return True
        if instruction.opname == "RETURN_VALUE" and (
            before is None or instruction.is_jump_target or before.opname != "LOAD_CONST"
            or before.argval not in (None, False)
        ):
            return True
        before = instruction
    return False
