"""Changes of what a module holds: they would happen while tracing, so only a module that the trace made may change."""

from __future__ import annotations

from typing import Any

import torch

from dy2static.operators.provenance.provenance import memo
from dy2static.operators.shared.staging import Session
from runtime.kinds import is_a

PARAMETERS = (torch.nn.ParameterList, torch.nn.ParameterDict)


def require_made_inside(session: Session, module: Any) -> None:
    """Refuse to put another parameter into a list or dict of them that is the caller's.

    Raises:
        TraceError: D2S274.
    """
    if is_a(module, PARAMETERS) and id(module) not in memo(session).created:
        raise refusal(session, f"the parameters that a {type(module).__name__} holds are changed")


def refusal(session: Session, what: str) -> Exception:
    """The located error for such a change."""
    return session.error(
        f"{what} inside a converted function: it would happen while tracing, with tensors that hold no data",
        hint="Do it before the module is called.", code="D2S274",
    )


__all__ = ["PARAMETERS", "refusal", "require_made_inside"]
