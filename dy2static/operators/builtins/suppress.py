"""``contextlib.suppress``: what it swallows is known while its body is traced, as for ``try`` (see ``catching``)."""

from __future__ import annotations

import contextlib
from typing import Any

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
