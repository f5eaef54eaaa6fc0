"""``one_hot`` with a number of classes that is only known while the Program runs: torch takes a plain int only."""

from __future__ import annotations

from typing import Any

import torch

from dy2static.operators.calls.torch_values import to_torch
from dy2static.operators.calls.truth import truth_of
from dy2static.operators.shared.staging import NO_NAMES, Choice, Session, Staged, distribute
from runtime.tracer.control import cond as tracer_cond


def _one_hot(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    options = {**dict(zip(("input", "num_classes"), args)), **kwargs}
    index, classes = options.get("input"), options.get("num_classes", -1)
    if isinstance(classes, Choice):
        return distribute(session, classes, lambda given: _one_hot(session, (index, given), {}))
    if isinstance(classes, torch.Tensor) and not (classes.dim() or classes.is_floating_point() or classes.is_complex()):
        classes = classes.item()
    if not isinstance(classes, Staged) or not isinstance(index, torch.Tensor):
        return torch.nn.functional.one_hot(*args, **kwargs)
    _require(session, (index >= 0).all(), "Class values must be non-negative.")
    classes = tracer_cond.cond(session, session.scalar("eq", classes, -1),
                               lambda: session.scalar("add", index.max().item(), 1), lambda: classes, NO_NAMES)
    number = to_torch(session, classes)
    _require(session, (index < number).all(), "Class values must be smaller than num_classes.")
    _require(session, session.scalar("gt", classes, 0), "Can not infer total number of classes from empty tensor.")
    return torch.zeros(*index.shape, number, dtype=torch.int64, device=index.device).scatter(-1, index.unsqueeze(-1), 1)


def _require(session: Session, flag: Any, message: str) -> None:
    operand = session.operand(truth_of(session, flag))
    session.emit("assert", [operand], attrs={"exception": "RuntimeError", "message": message})


HANDLERS: list[tuple[Any, Any]] = [(torch.nn.functional.one_hot, _one_hot)]
