"""What ``module.to(...)``, ``.double()`` and the like do to the tensors of one module."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch


@contextlib.contextmanager
def moving(move: Callable[[Any, Callable[[torch.Tensor], torch.Tensor]], None]) -> Iterator[None]:
    """While the block runs, such a method calls ``move(part, fn)`` for a module and each part of it, the parts first,
    where ``fn`` gives a tensor as it is to be; it replaces no tensors itself."""
    plain = torch.nn.Module.__dict__["_apply"]

    def apply(module: Any, fn: Callable[[torch.Tensor], torch.Tensor], recurse: bool = True) -> Any:
        for child in module.children() if recurse else ():
            child._apply(fn)
        move(module, fn)
        return module

    torch.nn.Module._apply = apply  # type: ignore[method-assign]  # for the length of the block
    try:
        yield
    finally:
        torch.nn.Module._apply = plain  # type: ignore[method-assign]  # as it was


__all__ = ["moving"]
