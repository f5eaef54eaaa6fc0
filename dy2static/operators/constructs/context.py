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
from collections.abc import Callable
from typing import Any, NoReturn

from dy2static.names import OPERATORS
from dy2static.operators.calls.call import call
from dy2static.operators.calls.truth import truth_of
from dy2static.operators.shared.handler import OURS
from dy2static.operators.shared.policy import home_of
from dy2static.operators.shared.staging import Choice, Session, Staged, active, distribute, python_method, stages
from dy2static.operators.shared.waiting import Within, waiting
from runtime.tracer.ambient.poison import Poison
from runtime.tracer.ambient.state import current
from runtime.tracer.ambient.unasked import unasked
from runtime.tracer.recording import faults


def context(manager: Any, error: Callable[[], Any] | None = None) -> Any:
    """What ``with`` enters in place of ``manager``; ``error`` gives what has left the block as a value."""
    session = active()
    if session is None:
        return manager
    if type(manager) is Within:
        entered = context(manager.manager, error)
        if isinstance(entered, _Entered):
            entered.waits = manager.waits
        return entered
    if isinstance(manager, Choice) or isinstance(unasked(manager, "gen"), Choice):  # what @contextmanager made
        raise session.error(
            "which context manager is entered is only known while the Program runs",
            hint="Write the with statement in each branch.", code="D2S212")
    for name in ("__enter__", "__exit__"):
        python_method(manager, name)  # a guard also where the class has none
    if not _is_users(manager) and not may_swallow(manager) and (error is None or _ends_alike(manager)):
        return manager  # it may look at the frame it is entered from
    if not all(hasattr(type(manager), name) for name in ("__enter__", "__exit__")):
        return manager  # the interpreter says that it is none
    return _Entered(session, manager, error)


class _Entered:
    """A manager between ``__enter__`` and ``__exit__``."""

    waits: waiting | None = None
    """Of the generator whose code this is."""

    def __init__(self, session: Session, manager: Any, error: Callable[[], Any] | None) -> None:
        self.session, self.manager, self.error = session, manager, error
        self.catches = may_swallow(manager)

    def __enter__(self) -> Any:
        result = _method(self.manager, "__enter__")()
        if self.catches:
            self.session.exceptions.catching.append(lambda: BaseException)
        return result

    def __exit__(self, kind: Any, error: Any, trace: Any) -> bool:
        if kind is GeneratorExit and self.waits is not None and self.waits.is_over(sys._getframe(1)):
            return False
        escaping = self.error() if kind is None and self.error is not None else None
        if escaping is not None:
            self._tell(escaping)
            return False
        if self.catches:
            self.session.exceptions.catching.pop()
        if isinstance(error, Exception) and faults.is_ours(error):
            _leave_with(self.manager, error)
            faults.require_users(self.session, error)
        if isinstance(error, OURS):
            if not _is_users(self.manager):
                _leave_with(self.manager, error)
            return False
        result = _method(self.manager, "__exit__")(kind, error, trace)
        if isinstance(result, bool) or result is None:
            return bool(result)
        if kind is not None and stages(result):
            flag = truth_of(self.session, result)
            if isinstance(flag, Staged):
                raise self.session.error(
                    "whether a context manager swallows an exception is only known while the Program runs",
                    hint="Use try and except.", code="D2S229")
        return bool(result) if kind is not None else False

    def _tell(self, error: Any) -> Any:
        """Leave the block with an exception that is a value, or with none, on each path as it is there.

        Raises:
            TraceError: D2S229, for a manager that cannot be told: one that may swallow it, or that is not the user's.
        """
        if self.catches or not _is_users(self.manager):
            raise self.session.error(
                "an exception that is only known while the Program runs leaves a with statement, whose manager would "
                "be told of it", code="D2S229", hint="Put the with statement around the try statement.")
        if isinstance(error, Choice):
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
    if isinstance(manager, contextlib.suppress):
        return False  # it says itself what it catches
    generator = unasked(manager, "gen")
    if isinstance(manager, contextlib.AbstractContextManager) and isinstance(generator, types.GeneratorType):
        return _catches_around_yield(generator.gi_code)
    method = python_method(manager, "__exit__")
    if method is None or home_of(method.__code__.co_filename):
        return False
    return _may_return_true(method.__code__)


def _ends_alike(manager: Any) -> bool:
    """Whether ``__exit__`` does the same after an exception and without one, and swallows none."""
    if type(manager).__module__.split(".")[0] == "torch":
        return True
    generator = unasked(manager, "gen")
    if isinstance(manager, contextlib.AbstractContextManager) and isinstance(generator, types.GeneratorType):
        return _yields_last(generator.gi_code)
    return isinstance(manager, contextlib.nullcontext)


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
    function = _parsed(code)
    return function is None or any(
        isinstance(node, ast.Try) and bool(node.handlers or _leaves(node.finalbody))
        and any(_is_yield(inner) for part in node.body for inner in ast.walk(part))
        for node in ast.walk(function)
    )


@functools.lru_cache(maxsize=1024)
def _yields_last(code: types.CodeType) -> bool:
    """Whether all that a generator function does after its only ``yield`` is a ``finally`` around that."""
    function = _parsed(code)
    if function is None or sum(map(_is_yield, ast.walk(function))) != 1:
        return False
    last: ast.AST = function.body[-1]
    while _goes_on_alike(last):
        last = last.body[-1]  # type: ignore[attr-defined]
    return isinstance(last, ast.Expr) and isinstance(last.value, ast.Yield)


def _goes_on_alike(node: ast.AST) -> bool:
    """Whether a statement does the same after its body with an exception and without: a ``finally``, and what converted
    code has around that."""
    if isinstance(node, ast.Try):
        return not (node.handlers or node.orelse or _leaves(node.finalbody))
    return isinstance(node, ast.With) and isinstance(node.items[0].context_expr, ast.Call) and (
        ast.unparse(node.items[0].context_expr.func) in (f"{OPERATORS}.waiting", f"{OPERATORS}.finishing"))


def _parsed(code: types.CodeType) -> ast.FunctionDef | None:
    try:
        (function,) = ast.parse(textwrap.dedent(inspect.getsource(code))).body
    except (OSError, SyntaxError, ValueError):
        return None
    return function if isinstance(function, ast.FunctionDef) else None


def _is_yield(node: ast.AST) -> bool:
    return isinstance(node, (ast.Yield, ast.YieldFrom))


def _leaves(block: list[ast.stmt]) -> bool:
    return any(isinstance(node, (ast.Return, ast.Break, ast.Continue)) for part in block for node in ast.walk(part))
