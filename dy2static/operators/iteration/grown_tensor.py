"""A tensor made of a list whose length is only known while the Program runs: its items are stacked.

    torch.tensor(out)   ->   rows = []; for item in out: rows.append(torch.tensor(item)); torch.stack(rows)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from dy2static.operators.calls import growing
from dy2static.operators.calls.call import call
from dy2static.operators.calls.sequences import GrownItems
from dy2static.operators.constructs.if_expr import if_expr
from dy2static.operators.iteration.traced_for import traced_for
from dy2static.operators.shared.staging import LocalNames, Session, Staged, structure
from runtime.kinds import is_a
from runtime.tracer.values import array


def common_dtype(session: Session, data: list[Any]) -> torch.dtype:
    """The dtype that ``torch.tensor`` infers for such a list, if it has items."""
    return _dtype(session, array.content(data).item)


def _dtype(session: Session, item: structure.Structure) -> torch.dtype:
    if is_a(item, structure.Known):
        kind = type(item.value).__name__
    elif is_a(item, structure.Number):
        kind = item.kind
    elif is_a(item, structure.Tensor):
        return item.dtype
    elif is_a(item, structure.Sequence) and item.items:
        found = [_dtype(session, one) for one in item.items]
        result = found[0]
        for other in found[1:]:
            result = torch.promote_types(result, other)
        return result
    else:
        raise growing.refusal(session, "a tensor")
    table = {"bool": torch.bool, "int": torch.int64, "float": torch.get_default_dtype()}
    if kind not in table:
        raise growing.refusal(session, "a tensor")
    return table[kind]


def stacked(session: Session, data: list[Any], build: Callable[[Any], torch.Tensor], empty: torch.Tensor) -> Any:
    """``build`` of every item, stacked; ``empty`` where the list has none."""
    rows: list[Any] = []

    def body(item: Any) -> None:
        call(rows.append, build(item))

    def get_state() -> tuple[Any, ...]:
        return (rows,)

    def set_state(values: tuple[Any, ...]) -> None:
        nonlocal rows
        (rows,) = values

    kept = LocalNames(("",), get_state, set_state)
    traced_for(session, GrownItems(data).target, None, body, kept, None)
    length: Any = array.length(session, data)
    assert is_a(length, Staged)
    return if_expr(length == 0, lambda: empty, lambda: call(torch.stack, rows))


__all__ = ["common_dtype", "stacked"]
