"""``module.to(...)``, ``.double()`` and the like of modules whose parameters are made inside a converted function.

Where torch's methods find stand-ins, they make each parameter anew and swap the two objects. Nothing is to be done
where dtype and device stay what they are (``.to(x.device)``); else the parameter would become another tensor, which is
refused. Buffers are put in the place of the old ones, as in eager.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import AbstractContextManager
from typing import Any

import torch

from dy2static.operators.shared.staging import Session
from runtime import torch_internals

Fn = Callable[[torch.Tensor], torch.Tensor]


def moved(session: Session, made: Collection[int]) -> AbstractContextManager[None]:
    """While one of torch's methods moves a module that was made inside; ``made``: the ids of its parts that were, too.

    Errors raised: TraceError (D2S274): a parameter would become another tensor.
    """

    def move(module: Any, fn: Fn) -> None:
        if id(module) not in made:  # that all of it stays was asked before
            return
        for name, parameter in module._parameters.items():
            for one in () if parameter is None else (parameter, parameter.grad):
                _require_as_it_is(session, module, name, one, fn)
        for name, buffer in module._buffers.items():
            if buffer is not None:
                module._buffers[name] = fn(buffer)

    return torch_internals.moving(move)


def _require_as_it_is(session: Session, module: Any, name: str, tensor: torch.Tensor | None, fn: Fn) -> None:
    """Refuse what makes another tensor of a parameter, or of its gradient.

    Raises:
        TraceError: D2S274.
    """
    if tensor is None:
        return
    with torch.no_grad():
        made = fn(tensor)
    same = made is tensor or (
        made.dtype == tensor.dtype and session.info(made).storage is session.info(tensor).storage)
    if not same:
        raise session.error(
            f"{type(module).__name__}.{name}, which is made inside a converted function, gets another dtype, device or "
            "memory",
            hint="Say it where the module is made: torch.nn.Linear(3, 4, dtype=torch.float64, device=x.device).",
            code="D2S274")


__all__ = ["moved"]
