"""``x.split(counts.tolist())``, ``x.split(4)`` and ``pad_sequence(parts)``, where only the run knows how many parts
there are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.nn.utils.rnn import pad_sequence

from dy2static.operators.builtins import ragged_in_python
from dy2static.operators.calls import functions, growing
from dy2static.operators.shared.staging import Session
from runtime.kinds import is_a
from runtime.tracer.recording import reads

_SPLIT: Any = ragged_in_python.split
_SPLIT_EVERY: Any = ragged_in_python.split_every
_PAD: Any = ragged_in_python.pad_sequence


def _split(names: tuple[str, ...]) -> Callable[[Session, tuple[Any, ...], dict[str, Any]], Any]:
    def handle(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        given = dict(zip(names, args)) | kwargs
        dim, parts = given.get("dim", 0), given.get(names[1])
        if set(given) - set(names) or not is_a(given.get(names[0]), torch.Tensor) or type(dim) is not int:
            return NotImplemented
        if growing.is_growing(parts):
            return functions.call_function(session, _SPLIT, (given[names[0]], parts, dim), {})
        if type(parts) is int and parts > 0 and reads.is_open_along(session, given[names[0]], dim):
            return functions.call_function(session, _SPLIT_EVERY, (given[names[0]], parts, dim), {})
        return NotImplemented

    return handle


def _pad_sequence(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    given = dict(zip(("sequences", "batch_first", "padding_value", "padding_side"), args)) | kwargs
    if not growing.is_growing(given.get("sequences")) or given.pop("padding_side", "right") != "right":
        return NotImplemented
    return functions.call_function(session, _PAD, (), given)


HANDLERS: list[tuple[Any, Any]] = [
    (torch.split, _split(("tensor", "split_size_or_sections", "dim"))),
    (torch.Tensor.split, _split(("self", "split_size", "dim"))),
    (pad_sequence, _pad_sequence),
]
