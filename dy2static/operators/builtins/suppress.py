"""``contextlib.suppress``: a ``with`` of it is a ``try`` (``transforms.suppress``). Entered otherwise, it says what it
swallows while its body is traced (see ``catching``)."""

from __future__ import annotations

import contextlib
from typing import Any

from dy2static.operators.calls.call import call
from dy2static.operators.shared.staging import Session


class Suppress(contextlib.suppress):
    """``contextlib.suppress`` inside a trace."""

    def __init__(self, session: Session, *exceptions: Any) -> None:
        super().__init__(*exceptions)
        self._session, self._caught = session, exceptions

    def __enter__(self) -> None:
        super().__enter__()
        self._session.exceptions.catching.append(lambda: self._caught)

    def __exit__(self, *error: Any) -> bool:
        self._session.exceptions.catching.pop()
        return bool(super().__exit__(*error))


HANDLERS: list[tuple[Any, Any]] = [
    (contextlib.suppress, lambda session, args, kwargs: Suppress(session, *args, **kwargs)),
]


def unsuppressed(function: Any, *exceptions: Any) -> Any:
    """What ``with function(...)`` enters around the ``try`` that ``transforms.suppress`` made of it."""
    return contextlib.nullcontext() if function is contextlib.suppress else call(function, *exceptions)


def suppressed(function: Any, *exceptions: Any) -> tuple[Any, ...]:
    """What the handler of that ``try`` catches."""
    return exceptions if function is contextlib.suppress else ()
