"""``one_hot`` with a number of classes that is only known while the Program runs: torch takes a plain int only.

Without a number (``one_hot(x)``) it is one more than the largest class.
"""

from __future__ import annotations

from typing import Any

import torch

from dy2static.operators.calls.torch_values import from_torch, to_torch
from dy2static.operators.calls.truth import truth_of
from dy2static.operators.shared.staging import NO_NAMES, Choice, Session, Staged, distribute
from runtime.kinds import is_a
from runtime.tracer.control import cond as tracer_cond

_NAMES = ("input", "num_classes")


def _one_hot(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    options = {**dict(zip(_NAMES, args)), **kwargs}
    if len(args) > len(_NAMES) or options.keys() - set(_NAMES):
        return torch.nn.functional.one_hot(*args, **kwargs)
    index, classes = options.get("input"), options.get("num_classes", -1)
    if is_a(classes, Choice):
        return distribute(session, classes, lambda given: _one_hot(session, (index, given), {}))
    if is_a(classes, torch.Tensor) and not (classes.dim() or classes.is_floating_point() or classes.is_complex()):
        classes = classes.item()
    counted = _takes_largest(session, index, classes)
    if is_a(index, torch.Tensor) and counted and index.dtype is not torch.int64:
        return torch.nn.functional.one_hot(index, 1)  # it refuses the dtype whatever the number is
    if not is_a(index, torch.Tensor) or not (counted or is_a(classes, Staged)):
        return torch.nn.functional.one_hot(*args, **kwargs)
    count = from_torch(session, index.numel())
    if counted and is_a(count, Staged):
        _require(session, session.scalar("gt", count, 0), "Can not infer total number of classes from empty tensor.")
    _require(session, (index >= 0).all(), "Class values must be non-negative.")

    def largest() -> Any:
        return session.scalar("add", index.max().item(), 1)

    classes = largest() if counted else tracer_cond.cond(
        session, session.scalar("eq", classes, -1), largest, lambda: classes, NO_NAMES)
    number = to_torch(session, classes)
    _require(session, (index < number).all(), "Class values must be smaller than num_classes.")
    _require(session, session.scalar("gt", classes, 0), "Can not infer total number of classes from empty tensor.")
    return torch.zeros(*index.shape, number, dtype=torch.int64, device=index.device).scatter(-1, index.unsqueeze(-1), 1)


def _takes_largest(session: Session, index: Any, classes: Any) -> bool:
    """Whether there are as many classes as the tensor says; what torch refuses is left to it."""
    if not is_a(index, torch.Tensor) or not session.knows(index):
        return False
    return type(classes) is int and classes == -1 and 0 not in [size for size in index.shape if type(size) is int]


def _require(session: Session, flag: Any, message: str) -> None:
    operand = session.operand(truth_of(session, flag))
    session.emit("assert", [operand], attrs={"exception": "RuntimeError", "message": message})


HANDLERS: list[tuple[Any, Any]] = [(torch.nn.functional.one_hot, _one_hot)]
