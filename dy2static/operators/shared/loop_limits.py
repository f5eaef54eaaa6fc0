"""Options of loops that hold where they are unrolled while tracing too: the limit, ``unroll=True``, ``recompute``."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from dy2static.operators.shared.staging import Session

LoopOptions = dict[str, Any]


def count(options: LoopOptions | None, done: int) -> None:
    """Before iteration number ``done`` (from 0). RuntimeError beyond ``max_iterations``."""
    limit = (options or {}).get("max_iterations")
    if limit is not None and done >= limit:
        raise RuntimeError(f"this loop goes on after max_iterations={limit} iterations")


def rest(options: LoopOptions | None, done: int) -> LoopOptions | None:
    """The options of the staged rest of a loop, after ``done`` iterations."""
    if not options or not done or "max_iterations" not in options:
        return options
    return {**options, "max_iterations": options["max_iterations"] - done, "already": done}


@contextlib.contextmanager
def region(session: Session, options: LoopOptions | None) -> Iterator[None]:
    """Around a loop, unrolled or staged: with ``recompute``, backward computes what it computes again."""
    if not (options or {}).get("recompute"):
        yield
        return
    session.constructs.enter_region()
    try:
        yield
    finally:
        session.constructs.leave_region()


def require_rollable(session: Session, options: LoopOptions | None) -> None:
    """Call before a loop is staged.

    Raises:
        TraceError: It is to be unrolled.
    """
    if (options or {}).get("unroll"):
        raise session.error(
            "this loop is to be unrolled, but how often it runs is only known while the Program runs",
            code="D2S280", hint="Leave unroll=True out, or loop over a plain range and decide inside.",
        )  # fmt: skip


__all__ = ["LoopOptions", "count", "require_rollable", "rest"]
