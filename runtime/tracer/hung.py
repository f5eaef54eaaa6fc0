"""What users hang on tensors (``y.note = 3``), and what a trace asked the caller's tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from runtime.tracer.journal import MISSING

if TYPE_CHECKING:
    from runtime.tracer.session import Session

Question = tuple[str, Callable[[torch.Tensor], Any], Any]
"""What was asked of an argument, how to ask it again, and the answer that the Program rests on."""


def note(session: Session, tensor: torch.Tensor, name: str) -> None:
    """Call before an attribute is hung on a tensor of the trace, or taken off."""
    session.journal.note_attribute(tensor, name)
    session.hung.setdefault(id(tensor), (tensor, set()))[1].add(name)


def has(session: Session, tensor: torch.Tensor, name: str) -> bool:
    """Whether something hangs on a tensor of the trace under a name."""
    found = session.hung.get(id(tensor))
    return found is not None and name in found[1] and name in tensor.__dict__


def is_tracers(tensor: torch.Tensor, name: str) -> bool:
    """Whether the tensor that stands for the user's has such an attribute itself."""
    return hasattr(type(tensor), name) or name in tensor.__dict__


def require_none(session: Session, tensor: torch.Tensor, what: str) -> None:
    """Refuse to let go of a tensor on which something hangs: another object stands for it from then on.

    Raises:
        TraceError: D2S245.
    """
    found = session.hung.get(id(tensor))
    names = sorted(name for name in found[1] if name in tensor.__dict__) if found is not None else []
    if names:
        raise session.error(f"a tensor with the attribute '{names[0]}' {what}", code="D2S245",
                            hint="Keep the value beside the tensor, in a tuple or an object.")


def ask(session: Session, tensor: torch.Tensor, name: str, question: Callable[[torch.Tensor], Any]) -> Any:
    """The answer of the caller's tensor, if this is one, which becomes a condition of the Program; MISSING if not."""
    own = session.inputs.own_variable(tensor)
    real = session.inputs.real(own) if own is not None else None
    if own is None or real is None:
        return MISSING
    answer = question(real)
    session.inputs.asked.setdefault(own, {}).setdefault(name, (name, question, answer))
    return answer


def same(answer: Any, before: Any) -> bool:
    """Whether an answer is the one before."""
    return answer is before or (type(answer) is type(before) and bool(answer == before))


__all__ = ["Question", "ask", "has", "is_tracers", "note", "require_none", "same"]
