"""Structured pruning: channels are taken out of tensors, types and arguments, in all Programs at once.

    %h : f32[s0, 16] = linear(%x, %w, %b)      ->      %h : f32[s0, 8] = linear(%x, %w, %b)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from runtime.compress.artefacts import all_variants, places_of, put_tensor, tensor_at
from runtime.compress.axes import Axis, Fixed
from runtime.compress.channels import Choice, choose, couple_all
from runtime.compress.coupler import Coupler, Written
from runtime.compress.magnitude import weight_places
from runtime.compress.report import Left, Report, Weight
from runtime.compress.weights import uses
from runtime.errors import ProgramError, StorageError
from runtime.ir import Operator, Program, TensorType, Variable
from runtime.ir.inference import fits, infer
from runtime.ir.verify import verify
from runtime.ops import aten
from runtime.storage.artefact import Artefact


def prune_channels(artefact: Artefact, amount: float) -> Report:
    """Take the share ``amount`` of every group of channels out, in place.

    Errors raised: StorageError (D2S570) if no group may shrink; it names what fixes each weight's channels.
    """
    c = couple_all(artefact)
    choices = choose(artefact, c, amount)
    left = _left(artefact, c)
    if not choices:
        raise _nothing(c, left, amount)
    names = artefact.tensor_names()
    old = [tensor_at(artefact, place) for place in range(len(names))]
    shrink(artefact, c, choices)
    shown = set(weight_places(artefact)) | {one.owner for choice in choices for one in choice.group.members
                                            if isinstance(one.owner, int)}  # fmt: skip
    rows = []
    for place in sorted(shown):
        before, after = old[place], tensor_at(artefact, place)
        rows.append(Weight(names[place], tuple(before.shape), tuple(after.shape), int((after == 0).sum()),
                           before.numel() * before.element_size(), after.numel() * after.element_size()))  # fmt: skip
    return Report(tuple(rows), tuple(left.values()))


def _left(artefact: Artefact, c: Coupler) -> dict[str, Left]:
    """By the weight's name: what fixes its channels of output."""
    names, found = artefact.tensor_names(), {}
    for variant in all_variants(artefact):
        places = places_of(artefact, variant)
        for use in uses(variant.program):
            tensor = tensor_at(artefact, places[use.param])
            fixed = c.axes.group(Axis(use.param, use.param_axis), tensor.shape[use.param_axis]).fixed
            name = names[places[use.param]]
            if fixed is not None and name not in found:
                found[name] = Left(f"the channels of '{name}'", _where(fixed), fixed.reason)
    return found


def _where(fixed: Fixed) -> str:
    place = fixed.location
    if place is None:
        return ""
    return f"{place.file}:{place.line} `{place.text.strip()}`" if place.text else f"{place.file}:{place.line}"


def _nothing(c: Coupler, left: dict[str, Left], amount: float) -> StorageError:
    free = [one for one in c.axes.groups() if one.fixed is None and one.makers]
    if free:
        largest = max(one.size for one in free if isinstance(one.size, int))
        return StorageError(f"{amount} of {largest} channels is no whole channel", code="D2S570",
                            hint="Take a larger share.")  # fmt: skip
    if not left:
        return StorageError("there is nothing to prune: no linear operator, product or convolution has a weight that "
                            "is a parameter", code="D2S570")  # fmt: skip
    reasons = "; ".join(f"{one.what} by {one.why}{f' at {one.where}' if one.where else ''}" for one in left.values())
    return StorageError(f"no channels can be taken out. What fixes them: {reasons}", code="D2S570",
                        hint="Channels can go that only products and elementwise operators see; or leave structured "
                        "out.")  # fmt: skip


def shrink(artefact: Artefact, c: Coupler, choices: Sequence[Choice]) -> None:
    """Leave only the channels that stay, in tensors and Programs.

    Errors raised: ProgramError if that breaks a Program, which would be a fault of the analysis.
    """
    sizes: dict[Axis, int] = {}
    for choice in choices:
        for axis in dict.fromkeys(choice.group.members):
            sizes[axis] = len(choice.kept)
            if isinstance(axis.owner, int):
                tensor = tensor_at(artefact, axis.owner)
                put_tensor(artefact, axis.owner, tensor.detach().index_select(axis.dim, choice.kept.to(tensor.device)))
            else:
                _resize(axis.owner, axis.dim, len(choice.kept))
    for written in c.sizes:
        if written.axis in sizes:
            _rewrite(written, sizes[written.axis])
    for variant in all_variants(artefact):
        verify(variant.program)
        hold_types(variant.program)


def _resize(var: Variable, dim: int, size: int) -> None:
    assert isinstance(var.type, TensorType) and var.type.shape is not None
    shape = list(var.type.shape)
    shape[dim] = size
    var.type = replace(var.type, shape=tuple(shape))


def _rewrite(written: Written, size: int) -> None:
    """Another number among an Operator's arguments."""
    op = written.op
    names = [one.name for one in aten.resolve(op.name)._schema.arguments]
    position = names.index(written.argument)

    def changed(value: Any) -> Any:
        if written.position is None:
            return size
        items = list(value)
        items[written.position] = size
        return type(value)(items)

    if position < len(op.args):
        op.args = (*op.args[:position], changed(op.args[position]), *op.args[position + 1 :])
    else:
        op.kwargs = {**op.kwargs, written.argument: changed(op.kwargs[written.argument])}


def hold_types(program: Program) -> None:
    """Hold the declared types of ATen's operators against PyTorch's shape rules. Errors raised: ProgramError."""
    for op in program.block.walk():
        if op.name.startswith("aten.") and not aten.writes(aten.resolve(op.name), op.args, op.kwargs):
            _hold(op)


def _hold(op: Operator) -> None:
    try:
        told = infer(op) or ()
    except (RuntimeError, ValueError, IndexError, TypeError) as error:
        raise ProgramError(f"after channels were taken out, {op.name} does not fit: {error}",
                           location=op.location) from error  # fmt: skip
    for type_, out in zip(told, op.outputs):
        if not fits(type_, out.type):
            raise ProgramError(f"after channels were taken out, {op.name} gives {type_}, and %{out.name} is {out.type}",
                               location=op.location)  # fmt: skip


__all__ = ["prune_channels", "shrink"]

