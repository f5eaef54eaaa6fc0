"""Magnitude pruning: the weights of least magnitude become zero, whichever layer they are in.

    [[0.1, -2.0], [0.5, -0.2]], a half      ->      [[0.0, -2.0], [0.5, 0.0]]

The Programs stay as they are. Which weights are small is decided by PyTorch's ``torch.nn.utils.prune``.
"""

from __future__ import annotations

import torch
from torch.nn.utils import prune
from torch.utils.hooks import RemovableHandle

from runtime.compress.artefacts import all_variants, places_of, tensor_at
from runtime.compress.report import Report, Weight
from runtime.compress.weights import uses
from runtime.errors import StorageError
from runtime.storage.artefact import Artefact


def weight_places(artefact: Artefact) -> list[int]:
    """Where the tensors are that some Program multiplies by, in the order of the artefact."""
    found: set[int] = set()
    for variant in all_variants(artefact):
        places = places_of(artefact, variant)
        found |= {places[use.param] for use in uses(variant.program)}
    return sorted(place for place in found if tensor_at(artefact, place).is_floating_point())


def prune_magnitude(artefact: Artefact, amount: float) -> Report:
    """Set the share ``amount`` of all weights to zero, in place.

    Errors raised: StorageError (D2S570) if no Program multiplies by a parameter.
    """
    places = weight_places(artefact)
    if not places:
        raise StorageError("there is nothing to prune: no linear operator, product or convolution has a weight that is "
                           "a parameter", code="D2S570")  # fmt: skip
    weights = [tensor_at(artefact, place).detach() for place in places]
    flat = torch.cat([one.abs().flatten().to("cpu", torch.float64) for one in weights])
    mask = prune.L1Unstructured(amount).compute_mask(flat, torch.ones_like(flat))
    names = artefact.tensor_names()
    rows = []
    for place, weight, kept in zip(places, weights, mask.split([one.numel() for one in weights])):
        with torch.no_grad():  # in place: memory that it shares stays shared
            weight.masked_fill_((kept == 0).view(weight.shape).to(weight.device), 0)
        size = weight.numel() * weight.element_size()
        zeros = int((weight == 0).sum())
        rows.append(Weight(names[place], tuple(weight.shape), tuple(weight.shape), zeros, size, size))
    return Report(tuple(rows))


def keep_zeros(layer: torch.nn.Module) -> list[RemovableHandle]:
    """Hooks that keep what is zero in a layer's parameters at zero while they are trained: its gradient is zero.

    An optimizer that was made afterwards then leaves it where it is, momentum and weight decay included. The hooks are
    taken away by ``remove()`` of each.
    """

    def keep(parameter: torch.nn.Parameter) -> RemovableHandle:
        kept = parameter.detach() != 0
        return parameter.register_hook(lambda gradient: gradient.masked_fill(~kept.to(gradient.device), 0))

    return [keep(one) for one in layer.parameters() if one.requires_grad and one.dim() > 1]


__all__ = ["keep_zeros", "prune_magnitude", "weight_places"]
