"""What a call of an operator really did, seen on real tensors. Shared by the tests of the facts."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch.utils._pytree import tree_leaves, tree_map

from runtime.ops.aten import arguments


def tensors(value: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def storage(tensor: torch.Tensor) -> int:
    if tensor.layout is not torch.strided:
        return 0
    return tensor.untyped_storage()._cdata if tensor.untyped_storage().nbytes() else 0


def parts(tensor: torch.Tensor) -> list[torch.Tensor]:
    """What has memory of its own: of a sparse tensor its indices and values."""
    return [tensor._indices(), tensor._values()] if tensor.layout is torch.sparse_coo else [tensor]


def copied(value: Any) -> Any:
    return tree_map(lambda leaf: leaf.clone() if isinstance(leaf, torch.Tensor) else leaf, value)


class Seen:
    """Names of the arguments a call wrote and shared memory with, and whether it drew random numbers."""

    def __init__(self, overload: Any, args: Any, kwargs: Any) -> None:
        args, kwargs = copied((args, kwargs))
        bound = {name: tensors(value) for name, value in arguments(overload, args, kwargs).items()}
        before = {name: [(one._version, one.clone()) for one in found] for name, found in bound.items()}
        owners: dict[int, set[str]] = {}
        for name, found in bound.items():
            for one in found:
                owners.setdefault(storage(one), set()).add(name)
        state = torch.get_rng_state()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            outputs = [part for one in tensors(overload(*args, **kwargs)) for part in parts(one)]
        self.random = not torch.equal(state, torch.get_rng_state())
        self.written = {
            name
            for name, found in bound.items()
            for one, (version, old) in zip(found, before[name])
            if one._version != version or (one.shape == old.shape and not _same(one, old))
        }
        shared = [owners.get(storage(one), set()) for one in outputs if storage(one)]
        self.aliased = set().union(*shared)
        self.all_views = all(shared)


def _same(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether a call left an argument's numbers as they were; nothing here is compared with eager."""
    if a.layout is not torch.strided:
        return True
    return bool(((a == b) | ((a != a) & (b != b))).all())
