"""``raise``: on a staged path it happens when the Program takes that path.

    raise ValueError(n) from e   ->   raise_stmt(ValueError(n), e)
"""

from __future__ import annotations

from typing import Any

from dy2static.operators.shared.staging import Choice, active, distribute
from runtime.kinds import is_a


class _NoCause:
    pass


NO_CAUSE: Any = _NoCause()


def raise_stmt(error: Any, cause: Any = NO_CAUSE) -> None:
    """``raise error``, or ``raise error from cause`` where a cause is given.

    It is a plain raise on staged paths too: a ``try`` inside the path may catch it; what leaves the path is recorded.
    Where the error is one of several, each is raised on a path of its own.
    """
    session = active()
    if session is not None and is_a(error, Choice):
        distribute(session, error, lambda option: raise_stmt(option, cause))
        return
    if session is not None and is_a(cause, Choice):
        distribute(session, cause, lambda option: raise_stmt(error, option))
        return
    if cause is NO_CAUSE:
        raise error
    raise error from cause
