"""``sys.exc_info()`` and the like in a ``finally`` or ``__exit__`` that an exception passes as a value (see
``constructs.escape``): Python knows of none there, and would answer so."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from typing import Any

from dy2static.operators.shared.staging import Session


def _asking(question: Callable[..., Any]) -> Callable[..., Any]:
    def handler(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if sys.exc_info()[1] is None and not session.call.known.escaping.isdisjoint(session.code.functions):
            raise session.error(
                f"{question.__module__}.{question.__name__}() asks for an exception that is only known while the "
                "Program runs", code="D2S229", hint="Handle it in an except clause, and ask there.")
        return question(*args, **kwargs)

    return handler


_QUESTIONS: list[Any] = [sys.exc_info, traceback.format_exc, traceback.print_exc]
if sys.version_info >= (3, 11):
    _QUESTIONS.append(sys.exception)
HANDLERS: list[tuple[Any, Any]] = [(one, _asking(one)) for one in _QUESTIONS]
