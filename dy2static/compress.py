"""dy2static.compress: a saved model made smaller or faster, from its file, without its source.

    layer, report = dy2static.compress.prune("net.d2s", 0.8)               the smallest 80 % of all weights become zero
    layer, report = dy2static.compress.prune("net.d2s", 0.5, structured=True)       half of all channels are taken out

Each function takes the path of a file or a loaded layer and leaves it as it is. What it gives is a loaded layer, which
can be fine-tuned, saved, exported and compressed again, and a report: ``print(report)`` shows a row for each weight.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import NamedTuple

from runtime.compress.artefacts import Source, finished, own_copy
from runtime.compress.magnitude import keep_zeros, prune_magnitude
from runtime.compress.report import Left, Report, Weight
from runtime.compress.shrink import prune_channels
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
    if isinstance(amount, bool) or not isinstance(amount, (int, float)) or not 0 < amount < 1:
        raise ValueError(f"amount is a share between 0 and 1, not {amount!r}")
    artefact = own_copy(source, allow)
    report = prune_channels(artefact, amount) if structured else prune_magnitude(artefact, amount)
    return Compressed(finished(artefact, source, out), report)


__all__ = ["Compressed", "Left", "Report", "Weight", "keep_zeros", "prune"]
