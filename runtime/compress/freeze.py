"""Freezing: scales that a Program computes from its weights become constants, when training is over.

    %s = clamp_min(div(amax(abs(detach(%w)), [1]), 127), 1e-12)      ->      param %s constant
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from runtime.compress.artefacts import all_variants, places_of, tensor_at
from runtime.compress.quantise import OF_TENSOR, PER_CHANNEL, keep_for_inference
from runtime.errors import StorageError
from runtime.executor.executable import compile_program
from runtime.ir import Block, Operator, Parameter, Program, TensorType, Variable
from runtime.ir.verify import verify
from runtime.ir.walk import Names, blocks, substitute, uses
from runtime.storage.artefact import Artefact, Constant, Variant


@dataclass(frozen=True)
class _Scale:
    """A scale that is computed, the Operators that compute it, and the parameters these read."""

    var: Variable
    ops: list[Operator]
    params: list[Variable]


def freeze_scales(artefact: Artefact) -> None:
    """Make constants of all scales that are computed from parameters alone; Programs for training are left out.

    Errors raised: StorageError (D2S571) if there are none.
    """
    keep_for_inference(artefact)
    if not sum([_freeze(artefact, variant) for variant in all_variants(artefact)]):
        raise StorageError("there is nothing to freeze: no scale is computed from a weight", code="D2S571",
                           hint="freeze takes what quantize(..., training=True) gave.")  # fmt: skip


def _freeze(artefact: Artefact, variant: Variant) -> int:
    program = variant.program
    makers = {out: op for op in program.block.walk() for out in op.outputs}
    params = {one.var for one in program.params}
    places, names = places_of(artefact, variant), Names(program)
    found: dict[Variable, _Scale] = {}
    for op in program.block.walk():
        if op.name in (PER_CHANNEL, OF_TENSOR) and op.args[1] not in params and op.args[1] not in found:
            scale = _computed(op.args[1], makers, params)
            if scale is not None:
                found[scale.var] = scale
    frozen: dict[Variable, Variable] = {}
    for scale in found.values():
        tensor = _value(scale, [tensor_at(artefact, places[one]) for one in scale.params])
        artefact.constants.append(tensor)
        index = len(artefact.constants) - 1
        type_ = TensorType(tensor.dtype, tuple(tensor.shape), None if tensor.device.type == "cpu" else tensor.device)
        var = frozen[scale.var] = Variable(names.new("scale"), type_)
        program.block.args.append(var)
        program.params.append(Parameter(var, f"constant {len(artefact.tensors) + index}", "constant"))
        variant.params = (*variant.params, Constant(index))
    substitute(program.block, frozen)
    _drop(program, [op for scale in found.values() for op in reversed(scale.ops)])
    verify(program)
    return len(found)


def _drop(program: Program, ops: list[Operator]) -> None:
    """Take Operators out that nothing reads any more, one after another."""
    counts = uses(program)
    gone = set()
    for op in ops:
        if op not in gone and not any(counts[out] for out in op.outputs):
            gone.add(op)
            for var in op.inputs:
                counts[var] -= 1
    for block in blocks(program):
        block.ops[:] = [op for op in block.ops if op not in gone]


def _computed(var: Variable, makers: dict[Variable, Operator], params: set[Variable]) -> _Scale | None:
    """How a scale is computed, if that is from parameters alone, one after another."""
    ops: list[Operator] = []
    read = var
    while read not in params:
        op = makers.get(read)
        if op is None or op.blocks or not op.name.startswith("aten.") or len(set(op.inputs)) != 1:
            return None
        ops.insert(0, op)
        read = op.inputs[0]
    return _Scale(var, ops, [read])


def _value(scale: _Scale, tensors: list[torch.Tensor]) -> torch.Tensor:
    block = Block(list(scale.params), list(scale.ops), [scale.var])
    program = Program("scale", block, params=[Parameter(one, "", "parameter") for one in scale.params])
    with torch.no_grad():
        (value,) = compile_program(program).run([], [one.detach() for one in tensors])
    return value.clone()


__all__ = ["freeze_scales"]
