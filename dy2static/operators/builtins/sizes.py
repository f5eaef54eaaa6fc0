"""A tensor's sizes as a tensor: torch reads them off its memory, which a trace does not have."""

from __future__ import annotations

from typing import Any

import torch

from dy2static.operators.calls.call import traced
from dy2static.operators.shared.staging import Session
from dy2static.operators.values.traced_attribute import read
from runtime import torch_internals
from runtime.kinds import is_a


def _sizes(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    given = dict(zip(("self",), args)) | kwargs
    if not is_a(given.get("self"), torch.Tensor):
        return torch_internals.shape_as_tensor(*args, **kwargs)
    shape = tuple(read(session, given["self"], "shape"))
    return traced(session, torch.tensor, (shape,), {"dtype": torch.int64, "device": "cpu"})


HANDLERS: list[tuple[Any, Any]] = [(torch_internals.shape_as_tensor, _sizes)]
