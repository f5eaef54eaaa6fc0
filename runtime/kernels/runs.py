"""Which Operators may be part of a run that is recorded once and then replayed: straight ones that a device computes by
itself, from what it is given and nothing else.

A recording launches the same kernels with the same numbers each time. So nothing in a run may wait for the device or
read from it, write to what is outside, draw random numbers, or be given a number that changes from one time to the
next, as the index of a loop does.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence

import torch

from runtime.executor.liveness import Liveness
from runtime.ir import Operator, Program, ScalarType, TensorType, Variable
from runtime.ir.definition import definition_of
from runtime.ir.operator import leaves
from runtime.ops import aten

LEAST = 6
"""Operators that compute something, from which on a run gains more than its arguments and results cost."""

_OURS = frozenset({"grad.sum", "grad.zeros_if_none", "grad.contiguous"})
"""Operators of ours that only call PyTorch's."""
_STEADY = "scalar."
_WAITING = frozenset({
    "aten._local_scalar_dense", "aten.item", "aten.equal", "aten.is_nonzero", "aten.allclose", "aten.nonzero",
    "aten.nonzero_numpy", "aten.masked_select", "aten.masked_scatter", "aten.bincount", "aten.histc",
    "aten.repeat_interleave", "aten.tensor_split", "aten.embedding_bag", "aten._embedding_bag", "aten.ctc_loss",
    "aten._ctc_loss", "aten._use_cudnn_ctc_loss", "aten.lstm", "aten.gru", "aten.rnn_tanh", "aten.rnn_relu",
    "aten.to", "aten._to_copy", "aten.lift_fresh_copy", "aten.lift_fresh", "aten.scalar_tensor", "aten.tensor",
    "aten._unique2", "aten._pack_padded_sequence", "aten._pad_packed_sequence", "aten.det", "aten.logdet",
    "aten.slogdet", "aten.inverse", "aten.pinverse", "aten.cholesky", "aten.svd", "aten.qr", "aten.lu_solve",
    "aten.triangular_solve", "aten.matrix_exp", "aten.matrix_power", "aten.quantile", "aten.nanquantile",
    "aten.cholesky_solve", "aten._cholesky_solve_helper", "aten.cholesky_inverse", "aten.geqrf", "aten.orgqr",
    "aten.ormqr", "aten.lu_unpack", "aten._lu_with_info",
    "aten.multi_margin_loss", "aten.index_put", "aten._index_put_impl", "aten.one_hot",
})  # fmt: skip
"""Operators of PyTorch's that may wait for the device, or copy between it and the host."""
_FAMILIES = ("aten.linalg_", "aten._linalg_", "aten.unique", "aten.fft_", "aten._fft_", "aten.cudnn_", "aten._cudnn_",
             "aten.sparse_", "aten._sparse_", "aten.quantize_", "aten.segment_", "aten._nested_")  # fmt: skip
_ALONE = frozenset({"aten.linalg_vector_norm", "aten.linalg_matmul", "aten.linalg_cross"})
"""Those of the families that are plain kernels."""
_MASKS = frozenset({"aten.index", "aten.index_select"})
_READ_FROM_TENSORS = frozenset({"scalar.truth", "scalar.item", "scalar.number", "scalar.index"})
"""Of the operators of numbers those that may read a tensor: what they give may be another number each time."""


def changing_numbers(program: Program) -> frozenset[Variable]:
    """The numbers that may be others each time they are read: what loops carry, what is read from tensors or drawn, and
    what is computed from them. Sizes, arguments and constants are none of them."""
    found: set[Variable] = set()
    for op in program.block.walk():
        for block in op.blocks:
            found.update(var for var in block.args if not isinstance(var.type, TensorType))
        if op.name.startswith(_STEADY) and op.name not in _READ_FROM_TENSORS:
            steady = not any(var in found for var in leaves([*op.args, *op.kwargs.values()]))
        else:
            steady = False
        if not steady:
            found.update(out for out in op.outputs if isinstance(out.type, ScalarType))
    return frozenset(found)


def may_be_recorded(op: Operator, changing: frozenset[Variable], kind: str) -> bool:
    """Whether an Operator may be part of a run on a kind of device."""
    if op.blocks or op.grad_mode == "on" or aten.CHECKED in op.attrs or op.attrs.get("settings"):
        return False
    if any(enabled for _, enabled, _ in op.autocast or ()):
        return False
    given = list(leaves([*op.args, *op.kwargs.values()]))
    if any(var in changing for var in given) or any(isinstance(out.type, ScalarType) for out in op.outputs):
        return False
    if op.name in _OURS:
        return True
    if not op.name.startswith("aten.") or not op.outputs or not is_plain(op.name):
        return False
    overload = aten.resolve(op.name)
    if aten.writes(overload, op.args, op.kwargs) or aten.is_random(overload, op.args, op.kwargs):
        return False
    if op.name.rpartition(".")[0] in _MASKS and not _by_whole_numbers(op):
        return False
    tensors = [var for var in given if isinstance(var.type, TensorType)]
    if not tensors:
        device = op.kwargs.get("device")
        return isinstance(device, torch.device) and device.type == kind
    return all(out.type.device is None or out.type.device.type == kind for out in op.outputs
               if isinstance(out.type, TensorType))  # fmt: skip


@functools.cache
def is_plain(name: str) -> bool:
    """Whether an operator's kernels need nothing from the host, as far as its name and tags tell."""
    packet = name.rpartition(".")[0]
    if packet in _WAITING or packet.startswith(_FAMILIES) and packet not in _ALONE:
        return False
    overload = aten.resolve(name)
    if torch.Tag.data_dependent_output in overload.tags:
        return False
    return torch.Tag.dynamic_output_shape not in overload.tags or packet in _MASKS


def _by_whole_numbers(op: Operator) -> bool:
    """Whether every index is a tensor of whole numbers: a mask has to be counted."""
    indices = [var for var in leaves(op.args[1:]) if isinstance(var, Variable)]
    return bool(indices) and all(
        isinstance(var.type, TensorType) and var.type.dtype in (torch.int64, torch.int32) for var in indices
    )


def computes(op: Operator) -> bool:
    """Whether an Operator launches kernels: a view does not."""
    return not definition_of(op.name).views(op) or not aten.is_view(aten.resolve(op.name), op.args, op.kwargs)


def runs(ops: Sequence[Operator], live: Liveness, changing: frozenset[Variable], kind: str
         ) -> Iterator[tuple[bool, list[Operator]]]:  # fmt: skip
    """Consecutive Operators in parts, and whether each is a run to be recorded."""
    rest: list[Operator] = []
    start = 0
    while start < len(ops):
        end = start
        while end < len(ops) and may_be_recorded(ops[end], changing, kind):
            end += 1
        if end == start:
            rest.append(ops[start])
            start += 1
            continue
        for part in _without_outer_views(list(ops[start:end]), live):
            if sum(map(computes, part)) < LEAST:
                rest += part
                continue
            if rest:
                yield False, rest
                rest = []
            yield True, part
        start = end
    if rest:
        yield False, rest


def _without_outer_views(run: list[Operator], live: Liveness) -> Iterator[list[Operator]]:
    """A run in pieces, so that no result of a piece may be memory that it was given."""
    died = {var: place for place, op in enumerate(run) for var in (*live.dying[id(op)], *live.unread[id(op)])}
    waiting = [(0, len(run))]
    while waiting:
        start, end = waiting.pop()
        place = _outer_view(run, start, end, died)
        if place is not None and end - start > 1:
            waiting += [(place + 1, end), (place, place + 1), (start, place)]  # more is alive after what ends earlier
        elif start < end:
            yield run[start:end]


def _outer_view(run: Sequence[Operator], start: int, end: int, died: Mapping[Variable, int]) -> int | None:
    """The first Operator of a piece whose result may be memory of what is not made in the piece, and is alive after
    it. died: where values are no more."""
    made: set[Variable] = set()
    outer: set[Variable] = set()
    for place in range(start, end):
        op = run[place]
        bases = leaves(op.args) if op.name in _OURS else definition_of(op.name).views(op)
        if any(var in outer or var not in made for var in bases):
            if any(died.get(out, end) >= end for out in op.outputs):
                return place
            outer.update(op.outputs)
        made.update(op.outputs)
    return None


__all__ = ["LEAST", "changing_numbers", "computes", "is_plain", "may_be_recorded", "runs"]
