"""What a ``try`` statement's handlers catch, known while its body is traced.

    try:                                 try:
        body                                 with catching(lambda: (KeyError, Own)):
    except KeyError: ...           ->            body
    except Own: ...                      except KeyError: ...
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dy2static import traceback
from dy2static.operators.shared import frames
from dy2static.operators.shared.staging import Session, active
from runtime.kinds import is_a
from runtime.tracer.ambient.catching import Passed
from runtime.tracer.recording import faults

passed = Passed
"""Around what a clause names that does nothing but ``raise``; used by generated code."""


class catching:  # reads as a statement in generated code
    """Around the body of a ``try``; nothing happens outside a trace."""

    def __init__(self, types: Callable[[], Any], attempt: Any = None) -> None:
        self._types = types
        self._attempt = attempt
        self._session: Session | None = None
        self.depth = 0
        """How many functions run around the body, that of the ``try`` included."""

    def __enter__(self) -> None:
        self._session = active()
        if self._session is not None:
            self.depth = len(self._session.code.functions)
            self._session.exceptions.catching.append(self)

    def __call__(self) -> Any:
        """The types that are caught now."""
        error = self._session.exceptions.raising if self._session is not None else None
        if error is not None and self._attempt is not None and error is self._attempt.escaped:
            return ()  # a handler raised it
        return self._types()

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if self._session is not None:
            self._leave(self._session)
            if is_a(error, Exception):
                faults.require_users(self._session, error)
        elif is_a(error, Exception) and frames.local.call is not None:
            traceback.rewrite(error)  # a handler may show it, or ask it where it was raised

    def _leave(self, session: Session) -> None:
        """It need not be the last one: a generator that waits in a ``try`` may end in another's body."""
        if self in session.exceptions.catching:
            session.exceptions.catching.remove(self)


class finishing(catching):  # reads as a statement in generated code
    """Around the body of a ``try`` with a ``finally`` and no handlers, which also runs where a path raises.

    What Operators raise by themselves for the data of a run is not waited for: it leaves the Program at once.
    """

    waits_for_operators = False

    def __init__(self) -> None:
        super().__init__(lambda: BaseException)

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if self._session is not None:
            self._leave(self._session)
