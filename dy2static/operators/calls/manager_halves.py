"""Managers that ``@contextmanager`` makes of generators, in two halves (see ``transforms.manager_halves``).

    value, leave = enters()          # up to the yield
    leave(None)                      # from there, on each path as it is there
    leave(error)
"""

from __future__ import annotations

import ast
import contextlib
import functools
import inspect
import textwrap
import types
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

from dy2static.operators.shared.staging import Session
from runtime.kinds import is_a
from runtime.tracer.ambient.state import current


class _Halves(NamedTuple):
    given: Any
    leave: Callable[[Any], Any]


def manager_halves(given: Any, leave: Callable[[Any], Any]) -> Any:
    """What the first half of a generator gives: what the ``yield`` gives, and the second half."""
    return _Halves(given, leave)


def is_half(code: types.CodeType) -> bool:
    """Whether converted code is a first half: somewhere in it, it ends with that operator."""
    return manager_halves.__name__ in code.co_names or any(
        is_a(one, types.CodeType) and is_half(one) for one in code.co_consts)


def not_yielded() -> NoReturn:
    """Where something that stands around the ``yield`` has caught what was raised before it.

    Raises:
        TraceError: D2S229.
    """
    raise current().error(
        "a generator that makes a context manager does not come to its yield", code="D2S229",
        hint="Raise before the with statement.")


class Halves(contextlib.AbstractContextManager[Any], contextlib.ContextDecorator):
    """The manager, inside a trace."""

    def __init__(self, session: Session, enters: Callable[[], Any], catches: bool) -> None:
        self._session, self._enters, self.catches = session, enters, catches
        self._leave: Callable[[Any], Any] | None = None
        self._waits: Callable[[], Any] = lambda: BaseException

    def _recreate_cm(self) -> Halves:
        return Halves(self._session, self._enters, self.catches)

    def __enter__(self) -> Any:
        """As an ``ExitStack`` does, which tells of no exceptions that are values: none may come."""
        given = self.enter()
        self._session.exceptions.catching.append(self._waits)
        return given

    def enter(self) -> Any:
        """Run the first half, for a ``with`` statement that tells it of exceptions that are values."""
        halves = self._enters()
        if not is_a(halves, _Halves):
            raise self._session.error(
                "whether entering a context manager raises is only known while the Program runs", code="D2S229",
                hint="Raise before the with statement.")
        self._leave = halves.leave
        return halves.given

    def leave(self, error: BaseException | None) -> Any:
        """Run the second half; what it gives stands for the exception that leaves it, if one does on some paths.

        Raises:
            BaseException: ``error``, or another.
        """
        assert self._leave is not None
        return self._leave(error)

    def __exit__(self, kind: Any, error: Any, trace: Any) -> bool:
        if self._waits in self._session.exceptions.catching:
            self._session.exceptions.catching.remove(self._waits)
        try:
            self.leave(error)
        except BaseException as raised:
            if raised is not error:
                raise
            return False
        return error is not None


def may_swallow(generator: Any) -> bool:
    """Whether the manager of a generator, or generator function, may be done with an exception."""
    return _catches_around_yield(getattr(generator, "gi_code", None) or generator.__code__)


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
