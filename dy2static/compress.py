"""dy2static.compress: a saved model made smaller or faster, from its file, without its source.

    layer, report = dy2static.compress.prune("net.d2s", 0.8)               the smallest 80 % of all weights become zero
    layer, report = dy2static.compress.prune("net.d2s", 0.5, structured=True)       half of all channels are taken out
    layer, report = dy2static.compress.quantize("net.d2s", batches)                                  numbers of 8 bits

Each function takes the path of a file or a loaded layer and leaves it as it is. What it gives is a loaded layer, which
can be fine-tuned, saved, exported and compressed again, and a report: ``print(report)`` shows a row for each weight.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from runtime.compress.artefacts import Source, finished, own_copy
from runtime.compress.distil import distil_into
from runtime.compress.freeze import freeze_scales
from runtime.compress.magnitude import keep_zeros, prune_magnitude
from runtime.compress.quantise import quantise
from runtime.compress.report import Left, Report, Weight
from runtime.compress.shrink import prune_channels
from runtime.kinds import is_a
from runtime.translated import TranslatedLayer
from runtime.translated.located import located


class Compressed(NamedTuple):
    """A compressed layer, and what was done to it."""

    layer: TranslatedLayer
    report: Report


@located
def prune(
    source: Source, amount: float, *, structured: bool = False, out: str | os.PathLike[str] | None = None,
    allow: Collection[str] = (),
) -> Compressed:  # fmt: skip
    """Prune the weights of all linear operators, products and convolutions of a model.

    Args:
        source: The path of a saved file, or a loaded layer.
        amount: The share that goes, between 0 and 1: of all weights, the smallest ones of all layers together; with
            ``structured``, of each group of channels, those whose weights have the least L2 norm (rounded down, and at
            least one channel stays).
        structured: Take out whole channels, so that tensors get smaller, in place of setting weights to zero, which
            keeps every shape. Channels that something depends on in another way than by products and elementwise
            operators stay; inputs and results keep their sizes.
        out: A file to write besides.
        allow: Libraries whose operators the file may use, as for ``load``.

    Returns the layer and its report. ``keep_zeros(layer)`` keeps zeros at zero while it is fine-tuned.

    Errors raised: ValueError for another amount; StorageError D2S570 if nothing can be pruned, with what is in the way
    of each weight; whatever ``load`` and ``save`` raise.
    """
    if is_a(amount, bool) or not is_a(amount, (int, float)) or not 0 < amount < 1:
        raise ValueError(f"amount is a share between 0 and 1, not {amount!r}")
    artefact = own_copy(source, allow)
    report = prune_channels(artefact, amount) if structured else prune_magnitude(artefact, amount)
    return Compressed(finished(artefact, source, out), report)


@located
def quantize(
    source: Source, calibration: Iterable[Any], *, out: str | os.PathLike[str] | None = None, per_channel: bool = True,
    training: bool = False, method: str = "forward", allow: Collection[str] = (),
) -> Compressed:  # fmt: skip
    """Quantise the products of a model to 8 bits: linear operators, matrix products and convolutions by a parameter.

    What comes into a product is rounded to 256 values between the least and the largest that calibration has seen, zero
    among them; a weight to 255 values of either sign. The operators that do so are PyTorch's ``fake_quantize``: the
    Program computes in float32 what 8-bit numbers give. ONNX has pairs of QuantizeLinear and DequantizeLinear in their
    places, exported C weights of 8 bits.

    Args:
        source: The path of a saved file, or a loaded layer. What is quantised is computed in float32.
        calibration: Batches: tuples of arguments, dicts of named ones, or the only argument. They run in eval mode, and
            with ``training`` in train mode too.
        out: A file to write besides.
        per_channel: A scale for each channel of a weight, else one for each weight.
        training: Scales of weights are computed from the weights in each run, and Programs for training stay, for
            fine-tuning: the gradient of rounding is that of doing nothing, and zero outside of the range. ``freeze``
            makes a model for inference of the result. Without it Programs for training are left out.
        method: The method that the batches are for; others stay as they are.
        allow: Libraries whose operators the file may use, as for ``load``.

    Returns the layer and its report, which names what was left as it was: products that no batch came to, and those of
    other dtypes. ``bytes_after`` is what weights and scales take in 8 bits, as in what is exported; a saved file holds
    the weights as they were.

    Errors raised: ValueError without batches, or for a method there is not; StorageError D2S571 if nothing can be
    quantised; whatever ``load``, ``save`` and the calls raise.
    """
    artefact = own_copy(source, allow)
    if method not in artefact.methods:
        raise ValueError(f"there is no method {method!r}; there are: {', '.join(artefact.methods)}")
    report = quantise(artefact, calibration, method, per_channel, training)
    return Compressed(finished(artefact, source, out), report)


@located
def freeze(
    source: Source, *, out: str | os.PathLike[str] | None = None, allow: Collection[str] = ()
) -> TranslatedLayer:
    """A model for inference, of one that was fine-tuned after ``quantize(..., training=True)``.

    The scales of its weights are constants, and its Programs for training are left out. It gives what the model gives
    in eval mode, bit for bit.

    Args:
        source: The path of a saved file, or a loaded layer.
        out: A file to write besides.
        allow: Libraries whose operators the file may use, as for ``load``.

    Errors raised: StorageError D2S571 if no scale is computed from a weight; whatever ``load`` and ``save`` raise.
    """
    artefact = own_copy(source, allow)
    freeze_scales(artefact)
    return finished(artefact, source, out)


def distil(
    student: torch.nn.Module, teacher: torch.nn.Module, batches: Iterable[tuple[Any, Any]], *, temperature: float = 2.0,
    alpha: float = 0.5, optimizer: torch.optim.Optimizer | None = None,
    loss: Callable[[Tensor, Any], Tensor] = torch.nn.functional.cross_entropy,
) -> list[float]:  # fmt: skip
    """Train a small model on what a large one says: a step for each batch.

    The loss is ``alpha`` times the KL divergence of the softened probabilities (times the temperature squared), and
    ``1 - alpha`` times ``loss``. Both models give one tensor of scores, classes last; either may be a loaded layer, a
    converted module or a plain one.

    Args:
        student: It is in train mode while it is trained, and stays in it.
        teacher: It runs in eval mode, without gradients, and is put back into its mode.
        batches: Pairs of what both models are called with (a tensor, or a tuple of arguments) and the targets.
        temperature: By which scores are divided before the softmax.
        alpha: How much the teacher counts, from 0 to 1.
        optimizer: Of the student's parameters; without it ``torch.optim.Adam`` with its defaults.
        loss: Of the student's result and the targets.

    Returns the loss at each step.

    Errors raised: ValueError for another ``alpha``, a temperature that is not above 0, without batches, or if the
    results of both are not tensors of the same sizes; whatever the calls raise.
    """
    if not 0 <= alpha <= 1:
        raise ValueError(f"alpha is a share from 0 to 1, not {alpha!r}")
    if not temperature > 0:
        raise ValueError(f"temperature is above 0, not {temperature!r}")
    optimizer = torch.optim.Adam(student.parameters()) if optimizer is None else optimizer
    return distil_into(student, teacher, batches, temperature, alpha, optimizer, loss)


__all__ = ["Compressed", "Left", "Report", "Weight", "distil", "freeze", "keep_zeros", "prune", "quantize"]
