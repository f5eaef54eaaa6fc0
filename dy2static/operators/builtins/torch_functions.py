"""Functions of torch's that the modes of a trace do not see, or need not.

``has_torch_function(x)``, which torch's own Python asks: whether a class of tensors, or a mode, takes a call over. The
modes of a trace do not. ``torch.range`` tells no mode that it is called.
"""

from __future__ import annotations

from typing import Any

import torch

from dy2static.operators.provenance import chosen
from dy2static.operators.shared import settings
from dy2static.operators.shared.staging import Session
from runtime import torch_internals
from runtime.kinds import is_a
from runtime.tracer.recording import gradients


def _taken_over(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    return False


def _range(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    kwargs = dict(kwargs)
    needs, out = bool(kwargs.pop("requires_grad", False)), kwargs.get("out")
    args, kwargs = session.sizes.symbolic(args), session.sizes.symbolic(kwargs)
    made = chosen.foreign(session, torch.range, args, kwargs)
    if is_a(out, torch.Tensor):
        return gradients.given_to_factory(session, made, needs)
    return gradients.requires_grad_(session, made) if needs else made


def _keeps_casts(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether autocast keeps cast weights: the trace has switched that off."""
    if torch_internals.autocast_now(session.outside.autocast) != session.outside.autocast:
        raise session.error("torch.is_autocast_cache_enabled() is asked under an autocast that the function begins: a "
                            "Program keeps no cast weights", code="D2S214", hint="Ask outside of it.")
    settings.note_call(session, torch.is_autocast_cache_enabled)
    return session.outside.cache


def _anomaly(function: Any) -> Any:
    return lambda session, args, kwargs: settings.anomaly(session, function)


HANDLERS: list[tuple[Any, Any]] = [
    (function, _taken_over) for function in (
        torch.overrides.has_torch_function, torch.overrides.has_torch_function_unary,
        torch.overrides.has_torch_function_variadic,
    )
] + [(torch.range, _range), (torch.is_autocast_cache_enabled, _keeps_casts)] + [
    (function, _anomaly(function)) for function in (torch.is_anomaly_enabled, torch.is_anomaly_check_nan_enabled)
]  # fmt: skip
