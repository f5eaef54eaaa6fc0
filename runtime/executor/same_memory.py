"""Tensors that stand for one piece of eager's memory in a run under autograd, and are several here.

    v = h[0] if c else h[1]        v's write is an ``update`` of v, which another one repeats in h: what the first kept
    v.exp_()                       for backward is in v's tensor, and a later write of h is one of that memory, too

Autograd counts the writes of each tensor by itself. So the two are linked: when one of them is written next, the other
one counts that write. That it counts one is enough, as what was kept is of no use from then on.
"""

from __future__ import annotations

import torch

from runtime import torch_internals

_linked: torch_internals.TensorDict[list[torch.Tensor]] = torch_internals.TensorDict()
"""By the tensor that a view is of: others that hold the same, each in a tensor of its own that counts with it."""


def link(one: torch.Tensor, other: torch.Tensor) -> None:
    """The two are one memory for eager, from here on to the next write of one of them."""
    first, second = _whole(one), _whole(other)
    if first is not second:
        for whole, beside in ((first, second), (second, first)):
            _linked[whole] = [*(_linked.get(whole) or ()), beside.detach()]


def note_write(written: torch.Tensor) -> None:
    """Call before a tensor is written, or copied to be written: what is linked with it is overwritten, too."""
    whole = _whole(written)
    found = _linked.get(whole)
    if found is not None:
        _linked.pop(whole)
        for other in found:
            torch.autograd.graph.increment_version(other)


def _whole(tensor: torch.Tensor) -> torch.Tensor:
    base = tensor._base
    return tensor if base is None else base


__all__ = ["link", "note_write"]
