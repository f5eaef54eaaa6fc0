"""Lists as values: every operator gives a new list, made in place of the old one where nobody else can see that."""

from __future__ import annotations

from typing import Any

from runtime.executor.emitter import Emitter
from runtime.executor.ownership import Owner
from runtime.ir import Operator, Variable
from runtime.ops.array import FUNCTIONS


def append(array: list[Any], item: Any) -> list[Any]:
    """``array.append`` on an owned list."""
    array.append(item)
    return array


def extend(array: list[Any], items: Any) -> list[Any]:
    """``array.extend`` on an owned list."""
    array.extend(items)
    return array


def set_(array: list[Any], index: int, item: Any) -> list[Any]:
    """``array.set`` on an owned list."""
    array[index] = item
    return array


def pop(array: list[Any], index: int = -1) -> tuple[list[Any], Any]:
    """``array.pop`` on an owned list."""
    item = array.pop(index)
    return array, item


_IN_PLACE = {"array.append": append, "array.extend": extend, "array.set": set_, "array.store": set_,
             "array.pop": pop}  # fmt: skip


def emit(emitter: Emitter, op: Operator) -> None:
    """A call of the function that defines the operator, or of the one that works in place."""
    function = emitter.bind(FUNCTIONS[op.name], "f")
    owner = emitter.own.donated.get((id(op), 0), Owner.NO)
    if owner is not Owner.NO:
        in_place = emitter.bind(_IN_PLACE[op.name], "f")
        base = op.args[0]
        assert isinstance(base, Variable)
        function = in_place if owner is Owner.YES else f"({in_place} if {emitter.flag(base)} else {function})"
    args = ", ".join(emitter.operand(arg) for arg in op.args)
    emitter.assign(op.outputs, f"{function}({args})", unpack=op.name == "array.pop")
