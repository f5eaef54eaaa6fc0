"""The Program of an artefact that is exported: a method's in eval, without gradients, after the passes."""

from __future__ import annotations

import torch

from runtime.errors import StorageError
from runtime.ir import Program
from runtime.ir.walk import copy_program
from runtime.passes import BuildStrategy, PassManager, chosen
from runtime.storage.artefact import WITHOUT_GRADIENTS, Artefact, State, Variant


def variant_for_inference(artefact: Artefact, method: str) -> Variant:
    """The Program of a method that runs in eval, without gradients."""
    variants = artefact.methods[method].variants
    return variants.get(WITHOUT_GRADIENTS["eval"]) or variants["eval"]


def program_for_inference(artefact: Artefact, method: str, where: str, code: str) -> tuple[Program, list[torch.Tensor]]:
    """A copy of a method's Program, and its parameters' tensors.

    Errors raised: StorageError with ``code`` for one that keeps something, in what is exported to (``where``).
    """
    variant = variant_for_inference(artefact, method)
    if variant.stores:
        raise StorageError(
            f"the function stores to objects that were there before the call: {where} keeps nothing",
            hint="Return the new value, and let the caller keep it.", code=code)  # fmt: skip
    program = copy_program(variant.program)
    PassManager(chosen(BuildStrategy())).run(program)
    state = artefact.state()
    tensors = [artefact.tensors[state[one.name]] if isinstance(one, State) else artefact.constants[one.index]
               for one in variant.params]  # fmt: skip
    return program, tensors


__all__ = ["program_for_inference", "variant_for_inference"]
