"""Lists whose length is known: Python's own, while the graph is made. Those that a loop makes have no form."""

from __future__ import annotations

from typing import Any

import torch

from runtime.export.torch_export import arithmetic as calc
from runtime.export.torch_export.translator import Translator, aten
from runtime.export.torch_export.values import Refused, kind_of, number
from runtime.ir import Operator
from runtime.ops.array import FUNCTIONS


def _items(t: Translator, operand: Any) -> list[Any]:
    found = t.value(operand)
    if not isinstance(found, (list, tuple)):
        raise Refused("this as a list")
    return [None if one is None else t.value(one) for one in found]


def emit(t: Translator, op: Operator) -> None:
    """Any list Operator."""
    short = op.name.removeprefix("array.")
    items = _items(t, op.args[0])
    given = [_given(t, one) for one in op.args[1:]]
    if short in ("get", "load") and isinstance(given[0], (torch.Tensor, torch.SymInt)):
        t.give(op.outputs[0], _at(t, op, items, number(given[0], "int")))
        return
    for one in given[:1] if short in ("set", "store", "pop") else ():
        if type(one) is not int:
            raise Refused("an index that only the run knows, of a list that is written")
    try:
        made = FUNCTIONS[op.name](items, *given)
    except (IndexError, ValueError) as error:
        raise Refused(f"it always raises {type(error).__name__}: {error}") from None
    for out, value in zip(op.outputs, made if short == "pop" else (made,)):
        t.give(out, value)


def _given(t: Translator, operand: Any) -> Any:
    if isinstance(operand, (list, tuple)):
        return [_given(t, one) for one in operand]
    if isinstance(operand, slice):
        return slice(*(_bound(t, one) for one in (operand.start, operand.stop, operand.step)))
    missing = t.nothing(operand)
    return missing if missing is not None else t.value(operand)


def _bound(t: Translator, operand: Any) -> int | None:
    """A bound of a part of a list, which decides how long the part is."""
    found = None if operand is None else t.value(operand)
    if found is not None and type(found) not in (int, bool):
        raise Refused("a part of a list whose bounds only the run knows")
    return found


def _at(t: Translator, op: Operator, items: list[Any], index: torch.Tensor) -> Any:
    """An item that only the run chooses, of items of one dtype and size."""
    kind = kind_of(op.outputs[0].type)
    tensors = [one if isinstance(one, torch.Tensor) else None if kind is None else number(one, kind) for one in items]
    looks = {None if one is None else (one.dtype, tuple(map(str, one.shape))) for one in tensors}
    if len(looks) != 1 or None in looks:
        raise Refused("an item that only the run chooses, of a list whose items differ in kind")
    count = len(items)
    index = calc.either(aten.lt.Scalar(index, 0), aten.add.Scalar(index, count), index)
    outside = aten.logical_or.default(aten.lt.Scalar(index, 0), aten.ge.Scalar(index, count))
    t.fail_if(outside, "IndexError: list index out of range")
    where = aten.reshape.default(aten.clamp.default(index, 0, count - 1), [1])
    return aten.squeeze.dim(aten.index_select.default(aten.stack.default(tensors), 0, where), 0)


def operators() -> list[str]:
    """The list operators that have a rule."""
    return sorted(name.removeprefix("array.") for name in FUNCTIONS)


__all__ = ["emit", "operators"]
