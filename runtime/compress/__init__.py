"""Compression: a saved model made smaller or faster, by rewriting its Programs; its source is not needed.

    a file or a loaded layer > artefacts.own_copy > magnitude: small weights become zero
                                                  > axes, couplings, channels, shrink: whole channels go
                                                  > observe, quantise: numbers of 8 bits around products
                             > artefacts.finished: a layer of the same class, and a file
"""

from __future__ import annotations

from runtime.compress.artefacts import finished, own_copy
from runtime.compress.report import Report, Weight

__all__ = ["Report", "Weight", "finished", "own_copy"]
