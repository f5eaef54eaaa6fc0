"""``trunc_normal_`` draws until all numbers lie between the bounds: a loop in Python, which no recorder follows."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from torch.nn import init


@contextlib.contextmanager
def truncated_normal(instead: Callable[..., Any]) -> Iterator[None]:
    """While the block runs, ``trunc_normal_`` calls ``instead(original, tensor, *args, **kwargs)``."""
    before = init._no_grad_trunc_normal_

    def call(tensor: Any, *args: Any, **kwargs: Any) -> Any:
        return instead(before, tensor, *args, **kwargs)

    init._no_grad_trunc_normal_ = call
    try:
        yield
    finally:
        init._no_grad_trunc_normal_ = before


__all__ = ["truncated_normal"]
