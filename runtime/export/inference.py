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


def program_for_inference(artefact: Artefact, variant: Variant, where: str, code: str,
                          ) -> tuple[Program, list[torch.Tensor]]:  # fmt: skip
    """A copy of a Program that is exported, and its parameters' tensors.

    Errors raised: StorageError with ``code`` for one that keeps something, in what is exported to (``where``).
    """
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


__all__ = ["program_for_inference", "variant_for_inference", "variants_for_inference"]
