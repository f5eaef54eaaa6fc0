"""Arrays that NumPy makes of lists, in Python that is converted."""

from __future__ import annotations

from typing import Any

import torch


def unless_empty(items: Any, made: Any) -> Any:
    """The array ``made`` of the items; of a list without items NumPy makes one of floats."""
    if len(items) == 0:
        return torch.zeros(len(items), dtype=torch.float64).numpy()
    return made


def of_arrays(items: Any) -> Any:
    """``np.array(items)`` of arrays or scalars of NumPy's that look alike, of which only the run knows how many."""
    if len(items) == 0:
        return torch.empty(0, dtype=torch.float64).numpy()
    return torch.stack([torch.as_tensor(one) for one in items]).contiguous().numpy()


def zeros(shape: Any, dtype: Any) -> Any:
    """``np.zeros(shape)``."""
    return torch.zeros(_sizes(shape), dtype=dtype).numpy()


def ones(shape: Any, dtype: Any) -> Any:
    """``np.ones(shape)``."""
    return torch.ones(_sizes(shape), dtype=dtype).numpy()


def _sizes(shape: Any) -> Any:
    sizes = shape if isinstance(shape, (tuple, list)) else (shape,)
    for size in sizes:
        if size < 0:
            raise ValueError("negative dimensions are not allowed")
    return tuple(sizes)


def arange(start: Any, stop: Any) -> Any:
    """``np.arange(start, stop)`` of whole numbers."""
    return torch.arange(start, max(start, stop), dtype=torch.int64).numpy()


__all__ = ["arange", "of_arrays", "ones", "unless_empty", "zeros"]
