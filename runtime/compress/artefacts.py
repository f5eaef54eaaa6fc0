"""The two ends of compression: an artefact that may be changed, made of a file or a layer, and a layer made of it.

    own_copy("net.d2s")  ->  Artefact with tensors and Programs of its own  ->  finished(...)  ->  a layer, a file
"""

from __future__ import annotations

import copy
import os
from collections.abc import Collection
from dataclasses import replace

import torch

from runtime.ir import Variable
from runtime.ir.views import View
from runtime.ir.walk import copy_program, variables
from runtime.storage.artefact import Artefact, Constant, Method, Variant
from runtime.storage.files import read_artefact, write_artefact
from runtime.translated import TranslatedLayer

Source = str | os.PathLike[str] | TranslatedLayer
"""What is compressed: the path of a saved file, or a loaded layer."""


def own_copy(source: Source, allow: Collection[str] = ()) -> Artefact:
    """An artefact whose tensors and Programs nobody else has.

    Errors raised: TypeError for anything but a path or a loaded layer; whatever ``load`` raises.
    """
    if isinstance(source, TranslatedLayer):
        found = source.artefact()
    elif isinstance(source, (str, os.PathLike)):
        found = read_artefact(source, allow)
    else:
        raise TypeError(f"what is compressed is a file or a loaded layer, not {type(source).__name__}; save it first")
    tensors = _copied([*found.tensors, *found.constants])
    variants = {id(one): _own(one) for method in found.methods.values() for one in method.all()}

    def owned(method: Method) -> Method:
        return Method(
            method.name, method.signature, {mode: variants[id(one)] for mode, one in method.variants.items()},
            {mode: tuple(variants[id(one)] for one in others) for mode, others in method.others.items()})

    return Artefact(
        found.name, [copy.deepcopy(one) for one in found.modules], tensors[: len(found.tensors)],
        tensors[len(found.tensors) :], {name: owned(one) for name, one in found.methods.items()},
        copy.deepcopy(found.metadata), dict(found.made_by))


def _copied(tensors: list[torch.Tensor]) -> list[torch.Tensor]:
    """Copies of tensors, of which those share memory that did before."""
    copies = copy.deepcopy([one.detach() for one in tensors])
    return [new.requires_grad_(old.requires_grad) for old, new in zip(tensors, copies)]


def _own(variant: Variant) -> Variant:
    program = copy_program(variant.program)
    new = dict(zip(variables(variant.program), variables(program)))
    views = {place: View(new[one.source], one.steps) for place, one in variant.views.items()}
    return replace(variant, program=program, views=views)


def all_variants(artefact: Artefact) -> list[Variant]:
    """Every Variant of every method, each once."""
    found = [one for method in artefact.methods.values() for one in method.all()]
    return list({id(one): one for one in found}.values())


def finished(artefact: Artefact, source: Source, out: str | os.PathLike[str] | None = None) -> TranslatedLayer:
    """A layer of an artefact, which is saved to ``out`` if that is given; it runs as ``source`` does.

    Errors raised: StorageError if it cannot be written.
    """
    if out is not None:
        write_artefact(artefact, out)
    if isinstance(source, TranslatedLayer):
        return source.with_artefact(artefact)
    return TranslatedLayer(artefact)


def tensor_at(artefact: Artefact, place: int) -> torch.Tensor:
    """The tensor at a place."""
    count = len(artefact.tensors)
    return artefact.tensors[place] if place < count else artefact.constants[place - count]


def put_tensor(artefact: Artefact, place: int, tensor: torch.Tensor) -> None:
    """Another tensor at a place; it needs a gradient if the one before did."""
    tensor = tensor.detach().requires_grad_(tensor_at(artefact, place).requires_grad)
    count = len(artefact.tensors)
    if place < count:
        artefact.tensors[place] = tensor
    else:
        artefact.constants[place - count] = tensor


def places_of(artefact: Artefact, variant: Variant) -> dict[Variable, int]:
    """A Variant's parameters, and the place of each one's tensor."""
    state = artefact.state()
    return {param.var: len(artefact.tensors) + one.index if isinstance(one, Constant) else state[one.name]
            for param, one in zip(variant.program.params, variant.params)}  # fmt: skip


__all__ = [
    "Source", "all_variants", "finished", "own_copy", "places_of", "put_tensor", "tensor_at",
]  # fmt: skip
