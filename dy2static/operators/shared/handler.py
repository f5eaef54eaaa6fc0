"""The first line of an ``except`` that could swallow our own errors.

    except Exception:      ->   except Exception as error:
        ...                         handler(error)
"""

from __future__ import annotations

from dy2static.operators.shared.staging import active
from runtime.errors import Dy2StaticError
from runtime.kinds import is_a
from runtime.tracer.ambient.calls import Restart
from runtime.tracer.control.branches import PathEnds

OURS = (Dy2StaticError, PathEnds, Restart)
"""Errors of the tracer, which no code of the user's may catch."""


def handler(error: BaseException) -> None:
    """Raise ``error`` again if it is the tracer's, not the program's."""
    if active() is not None and is_a(error, OURS):
        raise error
