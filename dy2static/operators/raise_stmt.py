"""``raise``: on a staged path it happens when the Program takes that path.

    raise ValueError(n) from e   ->   raise_stmt(ValueError(n), e)
"""

from __future__ import annotations

from typing import Any, NoReturn


class _NoCause:
    pass


NO_CAUSE: Any = _NoCause()


def raise_stmt(error: Any, cause: Any = NO_CAUSE) -> NoReturn:
    """``raise error``, or ``raise error from cause`` where a cause is given.

    It is a plain raise on staged paths too: a ``try`` inside the path may catch it; what leaves the path is recorded.
    """
    if cause is NO_CAUSE:
        raise error
    raise error from cause
