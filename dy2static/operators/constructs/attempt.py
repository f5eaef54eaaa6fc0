"""A ``try`` whose handlers also stand where the body raises (see ``transforms.caught_raise``).

    attempt_1 = attempt()
    try:
        if x > 0:
            try: raise ValueError
            except ValueError:
                with handling(attempt_1): ...      # what this raises is not for the handlers below
    except ValueError as e:
        outside(attempt_1, e)
        ...
"""

from __future__ import annotations

from typing import Any

from dy2static.operators.shared.staging import Session, active


class attempt:  # reads as a call in generated code
    """One run of such a ``try``."""

    __slots__ = ("escaped",)

    def __init__(self) -> None:
        self.escaped: BaseException | None = None


class handling:  # reads as a statement in generated code
    """Around a handler that stands inside the body: the ``try`` does not catch what it raises."""

    def __init__(self, of: attempt) -> None:
        self._attempt = of
        self._session: Session | None = None
        self._caught: Any = None

    def __enter__(self) -> None:
        self._session = active()
        if self._session is not None:
            self._caught = self._session.exceptions.catching.pop()

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if self._session is not None:
            self._session.exceptions.catching.append(self._caught)
        if error is not None:
            self._attempt.escaped = error


def outside(of: attempt, error: BaseException) -> None:
    """Raise ``error`` again if a handler raised it."""
    if error is of.escaped:
        raise error
