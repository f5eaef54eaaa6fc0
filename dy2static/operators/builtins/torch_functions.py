"""What torch's own Python asks before it computes, where a function of torch's is converted.

``has_torch_function(x)``: whether a class of tensors, or a mode, takes the call over. The modes of a trace do not.
"""

from __future__ import annotations

from typing import Any

import torch

from dy2static.operators.shared.staging import Session


def _taken_over(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    return False


HANDLERS: list[tuple[Any, Any]] = [
    (function, _taken_over) for function in (
        torch.overrides.has_torch_function, torch.overrides.has_torch_function_unary,
        torch.overrides.has_torch_function_variadic,
    )
]  # fmt: skip
