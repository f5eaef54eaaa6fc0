"""What a straight Program of numbers and tensors allows: numbers computed late, and whose memory its results may be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from runtime.ir import Block, Operand, Operator, ScalarType, TensorType, Variable
from runtime.ir.definition import definition_of
from runtime.ir.flow import Kind
from runtime.ir.operator import leaves
from runtime.ir.ports import flow_of
from runtime.ops import aten


def late_numbers(ops: Sequence[Operator]) -> list[Operator]:
    """Operators of numbers where somebody needs them, so that many stand together and become one kernel."""
    waiting: dict[Variable, Operator] = {}
    found: list[Operator] = []

    def put(op: Operator) -> None:
        read = [*op.inputs, *(var for block in op.blocks for var in block.captures())]
        for var in read:
            maker = waiting.get(var)
            if maker is not None:
                put(maker)
        for out in op.outputs:
            waiting.pop(out, None)
        found.append(op)

    for op in ops:
        if len(op.outputs) == 1 and not op.blocks and _is_number(op):
            waiting[op.outputs[0]] = op
        else:
            put(op)
    for op in ops:
        if op.outputs[0] in waiting:
            put(op)
    return found


def _is_number(op: Operator) -> bool:
    """Whether an Operator computes a number of numbers."""
    kinds = [var.type for var in (*op.inputs, *op.outputs)]
    return op.name.startswith("aten.") and torch.Tag.pointwise in aten.resolve(op.name).tags and all(
        isinstance(one, ScalarType) or (isinstance(one, TensorType) and one.shape == ()) for one in kinds
    )


def joined(op: Operator, output: int) -> list[Operand]:
    """What the Blocks of a branch yield for one of its outputs."""
    places = next(port.yields for port in flow_of(op).ports(op) if port.output == output)
    return [block.yields[place] for block, place in zip(op.blocks, places) if place is not None]


def sources(op: Operator, places: Sequence[int]) -> dict[int, frozenset[Any]]:
    """Of what a loop carries at these places, what memory the value of an iteration may be."""
    _, body = op.blocks
    memory: dict[Variable, frozenset[Any]] = {arg: frozenset([("carried", place)]) for place, arg in
                                              enumerate(body.args)}  # fmt: skip
    _note(body, memory)
    return {place: _memory(body.yields[place], memory) for place in places}


def _memory(value: Operand, memory: Mapping[Variable, frozenset[Any]]) -> frozenset[Any]:
    """What memory a value may be: of an Operator's own, of what is carried, of what is outside, or a part of one."""
    return memory.get(value, frozenset([("outside", value)])) if isinstance(value, Variable) else frozenset()


def _note(block: Block, memory: dict[Variable, frozenset[Any]]) -> None:
    for op in block.ops:
        if flow_of(op).kind is Kind.BRANCH:
            for inner in op.blocks:
                _note(inner, memory)
            for number, out in enumerate(op.outputs):
                memory[out] = frozenset().union(*(_memory(one, memory) for one in joined(op, number)))
            continue
        viewed = [] if op.blocks else list(leaves(definition_of(op.name).views(op)))
        for out in op.outputs:
            own: frozenset[Any] = frozenset([("made", out)])
            of = [_memory(base, memory) for base in viewed]
            memory[out] = frozenset(("part", *one[1:]) for found in of for one in found) if of else own


__all__ = ["joined", "late_numbers", "sources"]
