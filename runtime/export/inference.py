"""The Program of an artefact that is exported: a method's in eval, without gradients, after the passes."""

from __future__ import annotations

import torch

from runtime.errors import StorageError
from runtime.export import capability
from runtime.ir import Block, Operand, Program, Variable
from runtime.ir.definition import definition_of
from runtime.ir.walk import copy_program, map_operand, replace_in
from runtime.passes import BuildStrategy, PassManager, chosen
from runtime.storage.artefact import WITHOUT_GRADIENTS, Artefact, Attribute, Passed, State, Target, Variant


def variant_for_inference(artefact: Artefact, method: str) -> Variant:
    """The Program of a method that runs in eval, without gradients."""
    return variants_for_inference(artefact, method)[0]


def variants_for_inference(artefact: Artefact, method: str) -> list[Variant]:
    """The Programs of a method that run in eval: the one for calls without gradients first, where it is another.

    Errors raised: StorageError (D2S312) if it was saved for training only.
    """
    variants = artefact.methods[method].variants
    if "eval" not in variants:
        raise StorageError(f"{method}() was saved for training only", code="D2S312",
                           hint="Save it for eval mode too: save(..., modes=('train', 'eval')).")  # fmt: skip
    without, plain = variants.get(WITHOUT_GRADIENTS["eval"]), variants["eval"]
    return [plain] if without is None or without is plain else [without, plain]


def program_for_inference(artefact: Artefact, variant: Variant, target: str) -> tuple[Program, list[torch.Tensor]]:
    """A copy of a Program that is exported, and its parameters' tensors.

    Errors raised: StorageError for one that needs what a target of ``runtime.export.capability`` has no form for.
    """
    if variant.stores:
        capability.refuse("store to an object", target, f"the store to {_said(variant.stores[0].target)}")
    program = copy_program(variant.program)
    _say_that_none_is_needed(program.block, {})
    _leave_gradients_out(program.block, {})
    PassManager(chosen(BuildStrategy())).run(program)
    state = artefact.state()
    tensors = [artefact.tensors[state[one.name]] if isinstance(one, State) else artefact.constants[one.index]
               for one in variant.params]  # fmt: skip
    capability.require(program, target)
    return program, tensors


def _say_that_none_is_needed(block: Block, known: dict[Variable, Operand]) -> None:
    """Where the Program asks which tensors need a gradient: none does where it is exported to."""
    for op in block.ops:
        replace_in(op, known)
        for inner in op.blocks:
            _say_that_none_is_needed(inner, known)
        if op.name == "grad.needed":
            known[op.outputs[0]] = False
    block.ops[:] = [op for op in block.ops if op.name != "grad.needed"]
    block.yields = [known.get(value, value) if isinstance(value, Variable) else value for value in block.yields]


def _leave_gradients_out(block: Block, known: dict[Variable, Operand]) -> None:
    """Computations with a gradient of their own (``autograd.Function``, hooks of tensors) are what they compute."""
    ops = []
    for op in block.ops:
        replace_in(op, known)
        if definition_of(op.name).own_gradient is None:
            for inner in op.blocks:
                _leave_gradients_out(inner, known)
            ops.append(op)
            continue
        forward = op.blocks[0]
        known.update(zip(forward.args, op.args))
        _leave_gradients_out(forward, known)
        ops += forward.ops
        known.update(zip(op.outputs, forward.yields))
    block.ops[:] = ops
    block.yields = [map_operand(value, lambda var: known.get(var, var)) for value in block.yields]


def _said(target: Target) -> str:
    if isinstance(target, State):
        return f"'{target.name}'"
    if isinstance(target, Attribute):
        return f"'{target.path}.{target.name}'".replace("'.", "'")
    if isinstance(target, Passed):
        return f"the argument '{target.path[0]}'" if target.path else "an argument"
    return "a tensor that is no module's"


__all__ = ["program_for_inference", "variant_for_inference", "variants_for_inference"]
