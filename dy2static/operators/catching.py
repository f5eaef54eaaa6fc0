"""What a ``try`` statement's handlers catch, known while its body is traced.

    try:                                 try:
        body                                 with catching(lambda: (KeyError, Own)):
    except KeyError: ...           ->            body
    except Own: ...                      except KeyError: ...
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dy2static.operators.staging import Session, active


class catching:  # reads as a statement in generated code
    """Around the body of a ``try``; nothing happens outside a trace."""

    def __init__(self, types: Callable[[], Any]) -> None:
        self._types = types
        self._session: Session | None = None

    def __enter__(self) -> None:
        self._session = active()
        if self._session is not None:
            self._session.catching.append(self._types)

    def __exit__(self, *error: object) -> None:
        if self._session is not None:
            self._session.catching.pop()
