"""Shape rules for Fourier transforms of open sizes on a CPU: torch's own resize their result, which a fake tensor with
symbols for sizes does not take.

    _fft_r2c(x, dim=[1], ...)   x: f32[s0, s1]   ->   c64[s0, s1 // 2 + 1]

The library that PyTorch is built with decides on the strides. MKL leaves what is transformed innermost, the other
dimensions in the order in which they were; without it a result is contiguous.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._prims_common import corresponding_complex_dtype, corresponding_real_dtype

from runtime.kinds import is_a


def _after(order: Sequence[int], dims: Sequence[int]) -> list[int]:
    """The dimensions from the outermost in memory to the innermost, after a transform of some of them."""
    return [dim for dim in order if dim not in dims] + list(dims)


def _sorted(order: Sequence[int], dims: Sequence[int]) -> list[int]:
    return [dim for dim in order if dim in dims]


def _to_half(tensor: Any, dim: Any, normalization: Any, onesided: Any) -> torch.Tensor:
    sizes = list(tensor.shape)
    if onesided:
        sizes[dim[-1]] = sizes[dim[-1]] // 2 + 1
    order = range(tensor.dim())
    return _made(tensor, sizes, _after(order, [*_sorted(order, dim[:-1]), dim[-1]]),
                 corresponding_complex_dtype(tensor.dtype))  # fmt: skip


def _complex(tensor: Any, dim: Any, normalization: Any, forward: Any) -> torch.Tensor:
    order = range(tensor.dim())
    return _made(tensor, list(tensor.shape), _after(order, _sorted(order, dim)), tensor.dtype)


def _from_half(tensor: Any, dim: Any, normalization: Any, last_size: Any) -> torch.Tensor:
    sizes = list(tensor.shape)
    sizes[dim[-1]] = last_size
    order: Sequence[int] = range(tensor.dim())
    if dim[:-1]:
        order = _after(order, _sorted(order, dim[:-1]))
    return _made(tensor, sizes, _after(order, [dim[-1]]), corresponding_real_dtype(tensor.dtype))


def _made(tensor: torch.Tensor, sizes: list[Any], order: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
    order = order if torch.backends.mkl.is_available() else range(len(sizes))
    strides: list[Any] = [1] * len(sizes)
    stride: Any = 1
    for dim in reversed(order):
        strides[dim] = stride
        stride = stride * sizes[dim]
    return torch.empty_strided(sizes, strides, dtype=dtype, device=tensor.device)


_RULES: dict[Any, Callable[..., torch.Tensor]] = {
    torch.ops.aten._fft_r2c.default: _to_half,
    torch.ops.aten._fft_c2c.default: _complex,
    torch.ops.aten._fft_c2r.default: _from_half,
}


def is_transform(func: Any) -> bool:
    """Whether there is a rule here."""
    return func in _RULES


def transformed(func: Any, args: Any, kwargs: Any) -> torch.Tensor | None:
    """The result of a Fourier transform of a contiguous tensor with open sizes; None for every other call.

    A fake mode is in force.
    """
    if kwargs or len(args) != 4 or not args[1]:
        return None
    tensor, rule = args[0], _RULES[func]
    with torch._C.DisableTorchFunction():
        if tensor.device.type != "cpu" or tensor.dtype.is_complex == (rule is _to_half):
            return None
        if all(type(size) is int for size in (*tensor.shape, args[3])) or not _is_contiguous(tensor):
            return None
        return rule(*args)


def _is_contiguous(tensor: torch.Tensor) -> bool:
    """Whether a tensor is contiguous for all sizes that its symbols can have.

    Some of torch's rules write the strides as if no size were 0.
    """
    plain: Any = 1
    positive: Any = 1
    for size, stride in zip(reversed(tensor.shape), reversed(tensor.stride())):
        if type(size) is int and size == 1:
            continue
        if _expression(stride) not in (_expression(plain), _expression(positive)):
            return False
        plain, positive = plain * size, positive * torch.sym_max(size, 1)
    return True


def _expression(size: Any) -> Any:
    return size.node.expr if is_a(size, torch.SymInt) else size


__all__ = ["is_transform", "transformed"]
