"""``with`` inside a trace: ``__enter__`` and ``__exit__`` of users' classes are converted, like any other function.

    with Counted(log) as c:      ->      with context(Counted(log)) as c:
        ...                                  ...

A manager that may swallow an exception is treated as an ``except`` clause: what raises only while the Program runs
cannot reach it.
"""

from __future__ import annotations

import ast
import contextlib
import dis
import functools
import inspect
import sys
import textwrap
import types
from typing import Any, NoReturn

from dy2static.operators.calls.call import call
from dy2static.operators.calls.truth import truth_of
from dy2static.operators.shared.handler import OURS
from dy2static.operators.shared.policy import home_of
from dy2static.operators.shared.staging import Choice, Session, Staged, active, distribute, python_method, stages
from dy2static.operators.shared.waiting import Within, waiting
from runtime.kinds import is_a
from runtime.tracer.ambient.poison import Poison
from runtime.tracer.ambient.state import current
from runtime.tracer.ambient.unasked import unasked
from runtime.tracer.recording import faults


def context(manager: Any) -> Any:
    """What ``with`` enters in place of ``manager``."""
    session = active()
    if session is None:
        return manager
    if type(manager) is Within:
        entered = context(manager.manager)
        if is_a(entered, _Entered):
            entered.waits = manager.waits
        return entered
    if is_a(manager, Choice) or is_a(unasked(manager, "gen"), Choice):  # what @contextmanager made
        raise session.error(
            "which context manager is entered is only known while the Program runs",
            hint="Write the with statement in each branch.", code="D2S212")
    for name in ("__enter__", "__exit__"):
        python_method(manager, name)  # a guard also where the class has none
    if not _is_users(manager) and not may_swallow(manager):
        return manager  # it may look at the frame it is entered from
    if not all(hasattr(type(manager), name) for name in ("__enter__", "__exit__")):
        return manager  # the interpreter says that it is none
    return _Entered(session, manager)


class _Entered:
    """A manager between ``__enter__`` and ``__exit__``."""

    waits: waiting | None = None
    """Of the generator whose code this is."""

    def __init__(self, session: Session, manager: Any) -> None:
        self.session, self.manager = session, manager
        self.catches = may_swallow(manager)
        self.escaping: Any = None
        """The exception that has left the block as a value, on some paths or on all."""

    def __enter__(self) -> Any:
        result = _method(self.manager, "__enter__")()
        self.session.exceptions.entered.append(self)
        if self.catches:
            self.session.exceptions.catching.append(lambda: BaseException)
        return result

    def __exit__(self, kind: Any, error: Any, trace: Any) -> bool:
        if kind is GeneratorExit and self.waits is not None and self.waits.is_over(sys._getframe(1)):
            return False
        if self in self.session.exceptions.entered:
            self.session.exceptions.entered.remove(self)
        if kind is None and self.escaping is not None:
            self._tell(self.escaping)
            return False
        if self.catches:
            self.session.exceptions.catching.pop()
        if is_a(error, Exception) and faults.is_ours(error):
            _leave_with(self.manager, error)
            faults.require_users(self.session, error)
        if is_a(error, OURS):
            if not _is_users(self.manager):
                _leave_with(self.manager, error)
            return False
        result = _method(self.manager, "__exit__")(kind, error, trace)
        if is_a(result, bool) or result is None:
            return bool(result)
        if kind is not None and stages(result):
            flag = truth_of(self.session, result)
            if is_a(flag, Staged):
                raise self.session.error(
                    "whether a context manager swallows an exception is only known while the Program runs",
                    hint="Use try and except.", code="D2S229")
        return bool(result) if kind is not None else False

    def _tell(self, error: Any) -> Any:
        """Leave the block with an exception that is a value, or with none, on each path as it is there."""
        if is_a(error, Choice):
            return distribute(self.session, error, self._tell)
        leave = _method(self.manager, "__exit__")
        return leave(None, None, None) if error is None else leave(type(error), error, _Trace())


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
    generator = unasked(manager, "gen")
    if is_a(manager, contextlib.AbstractContextManager) and is_a(generator, types.GeneratorType):
        return _catches_around_yield(generator.gi_code)
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


@functools.lru_cache(maxsize=1024)
def _catches_around_yield(code: types.CodeType) -> bool:
    """Whether a generator function yields inside a ``try`` with an ``except``; yes where its source is not known."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(code)))
    except (OSError, SyntaxError):
        return True
    return any(
        is_a(node, ast.Try) and bool(node.handlers or _leaves(node.finalbody))
        and any(is_a(inner, (ast.Yield, ast.YieldFrom)) for part in node.body for inner in ast.walk(part))
        for node in ast.walk(tree)
    )


def _leaves(block: list[ast.stmt]) -> bool:
    return any(is_a(node, (ast.Return, ast.Break, ast.Continue)) for part in block for node in ast.walk(part))
