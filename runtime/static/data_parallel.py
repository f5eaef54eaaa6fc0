"""Several processes train one model: a Program's gradients are averaged between them before they are used.

    %g1, %g2 = gradients     ->   %f = cat(flatten(%g1), flatten(%g2)); %a = py_func(%f)       all-reduced
    update(%w1) {... %g1}         %g1' , %g2' = parts of %a;  update(%w1) {... %g1'}
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist

from runtime.errors import ProgramError
from runtime.ir import Operator, TensorType, Variable
from runtime.ir.walk import map_operand
from runtime.static.program import ClonedProgram, Program


def data_parallel(program: Program, group: Any = None, bucket_bytes: int = 25 * 1024 * 1024) -> int:
    """Rewrite a training Program so that all processes of a group train the same model, each on data of its own.

    Gradients are put together in buckets, in the order in which the backward pass gives them; each bucket is summed
    over the processes and divided by their number as soon as it is full. Clipping and updates read the averages.

    Args:
        program: A Program after ``minimize``; it is changed in place.
        group: A process group of ``torch.distributed``; None: all processes.
        bucket_bytes: How large a bucket gets; a larger gradient has one of its own.

    Returns:
        The number of buckets.

    Raises:
        ProgramError: It has no gradients, or was rewritten already.
    """
    if isinstance(program, ClonedProgram) or not program.graph.gradients:
        raise ProgramError("the Program has no gradients", hint="Call it for the main Program, after minimize().")
    if program.graph.averaged:
        raise ProgramError("the Program's gradients are averaged between processes already")
    program.graph.averaged = True
    ops = program.block.ops
    made_at = {out: place for place, op in enumerate(ops) for out in op.outputs}
    order = sorted(dict.fromkeys(program.graph.gradients), key=made_at.__getitem__)
    key = program.graph.function(_Average(group))
    buckets = _buckets(order, bucket_bytes)
    for bucket in reversed(buckets):  # so that places found before stay right
        _average(program, bucket, 1 + max(made_at[one] for one in bucket), key)
    program.graph.reserve()
    return len(buckets)


class _Average:
    """The mean of a tensor over the processes of a group."""

    name = "all_reduce"

    def __init__(self, group: Any) -> None:
        self._group = group

    def __call__(self, flat: torch.Tensor) -> torch.Tensor:
        found = flat.clone()
        dist.all_reduce(found, group=self._group)
        return found.div_(dist.get_world_size(self._group))


def _buckets(order: Sequence[Variable], most: int) -> list[list[Variable]]:
    found: list[list[Variable]] = []
    held, kind = 0, None
    for one in order:
        type_ = _type(one)
        assert type_.dtype is not None
        size = _count(one) * type_.dtype.itemsize
        if not found or held + size > most or (type_.dtype, type_.device) != kind:
            found.append([])
            held, kind = 0, (type_.dtype, type_.device)
        found[-1].append(one)
        held += size
    return found


def _average(program: Program, bucket: Sequence[Variable], place: int, key: str) -> None:
    session = program.graph.session
    dtype, device = _type(bucket[0]).dtype, _type(bucket[0]).device
    added: list[Operator] = []

    def emit(name: str, args: tuple[Any, ...], shape: Sequence[int], **attrs: Any) -> Variable:
        out = Variable(session.new_name(), TensorType(dtype, tuple(shape), device))
        added.append(Operator(name, args, {}, (out,), (), attrs, grad_mode="off"))
        return out

    counts = [_count(one) for one in bucket]
    flat = [emit("aten.reshape.default", (one, [-1]), [count]) for one, count in zip(bucket, counts)]
    whole = emit("aten.cat.default", (flat,), [sum(counts)]) if len(flat) > 1 else flat[0]
    mean = emit("py_func", (whole,), [sum(counts)], function=key)
    averaged: dict[Variable, Variable] = {}
    start = 0
    for one, count in zip(bucket, counts):
        part = emit("aten.slice.Tensor", (mean, 0, start, start + count), [count])
        averaged[one] = emit("aten.reshape.default", (part, list(_shape(one))), _shape(one))
        start += count
    ops = program.block.ops
    for op in ops[place:]:
        _read_instead(op, averaged)
    ops[place:place] = added


def _read_instead(op: Operator, new: dict[Variable, Variable]) -> None:
    op.args = tuple(map_operand(arg, lambda var: new.get(var, var)) for arg in op.args)
    op.kwargs = {name: map_operand(arg, lambda var: new.get(var, var)) for name, arg in op.kwargs.items()}
    for block in op.blocks:
        for inner in block.ops:
            _read_instead(inner, new)
        block.yields = [map_operand(one, lambda var: new.get(var, var)) for one in block.yields]


def _type(var: Variable) -> TensorType:
    assert isinstance(var.type, TensorType)
    return var.type


def _shape(var: Variable) -> tuple[int, ...]:
    shape = _type(var).shape
    if shape is None or not all(isinstance(size, int) for size in shape):
        raise ProgramError(f"the sizes of the gradient %{var.name} are not fixed")
    return tuple(size for size in shape if isinstance(size, int))


def _count(var: Variable) -> int:
    return math.prod(_shape(var))


__all__ = ["data_parallel"]
