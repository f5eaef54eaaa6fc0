"""What nothing in the user's program refers to any more, after a branch or loop: the tracer lets go of it.

What the tracer still had would cost: memory that is alive is brought up to date when other memory is written that it
may be, so ``k`` branches that write a tensor of the one before recorded ``k * k`` Operators that nobody reads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime.tracer.control import existence
from runtime.tracer.values import containers

if TYPE_CHECKING:
    from runtime.tracer.recording.session import Session


def forget(session: Session) -> None:
    """Let go of it. This changes no answer: nobody can ask."""
    session.journal.forget_unused()
    existence.forget_unused(session)
    containers.forget_unused(session)
    session.origins.forget_unused()


__all__ = ["forget"]
