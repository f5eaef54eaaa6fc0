"""How what an operator gives lies in memory, where torch's shape rule says it lies like the operand and kernels do not.

    F.max_pool1d(x.transpose(1, 2), 2)      the rule: channels innermost; the kernel: contiguous
    F.batch_norm(x.transpose(0, 1), ...)    the rule: like x; the kernel: contiguous
    F.scaled_dot_product_attention(q, ...)  like q, or contiguous: one of several kernels is chosen

The kernel is asked with tensors that lie so. Where a size is open the layout counts as not known; of ``cat``, whose
kernel keeps channels innermost where all operands have them there, it is computed.
"""

from __future__ import annotations

from typing import Any

import torch

from runtime import torch_internals
from runtime.kinds import is_a
from runtime.tracer.recording.session import Session

_NAMES = frozenset(
    f"aten::{name}" for name in (
        "max_pool1d", "batch_norm", "native_batch_norm", "group_norm", "native_group_norm", "channel_shuffle",
        "native_channel_shuffle", "glu", "reflection_pad3d", "replication_pad3d", "upsample_nearest1d",
        "_upsample_nearest_exact1d", "upsample_nearest2d", "_upsample_nearest_exact2d", "upsample_nearest3d",
        "_upsample_nearest_exact3d", "upsample_bilinear2d", "upsample_bicubic2d", "upsample_trilinear3d",
    )
)  # fmt: skip


_ATTENTION = "aten::scaled_dot_product_attention"
"""For fixed sizes torch's rule chooses a kernel as the operator does."""


def has_its_own(func: Any, args: Any) -> bool:
    """Whether it is an operator whose kernels have layouts of their own."""
    name = func._schema.name
    if name == "aten::cat":
        return any(is_a(one, torch.Tensor) and one.dim() in _INNERMOST for one in args[0])
    if name == "aten::pad":
        return len(args) > 2 and args[2] != "constant"
    return name == _ATTENTION or name in _NAMES and not func._schema.is_mutable


def settle(session: Session, func: Any, args: Any, kwargs: Any, result: Any, needs: dict[int, bool]) -> Any:
    """The result of a shape rule, laid out as kernels do; ``needs``: the ids of the fake tensors that require grad."""
    if func._schema.name == "aten::cat":
        return _of_cat(session, args, kwargs, result)
    fake = args[0]
    if func._schema.name == _ATTENTION:
        if torch_internals.is_unknown((*args, *kwargs.values())) and not (fake.is_cpu and _lies_plainly(fake)):
            session.values.any_layout[result] = True
        return result
    if fake.layout is not torch.strided or _lies_plainly(fake):
        return result
    one = result if is_a(result, torch.Tensor) else result[0]
    if torch_internals.is_unknown((*args, *kwargs.values())):
        if not _is_channels_last(fake):
            session.values.any_layout[one] = True
        return result
    real = torch_internals.real_results(func, args, kwargs, needs)
    found = real if real is None or is_a(real, torch.Tensor) else real[0]
    if found is None or found.shape != one.shape or found.stride() == torch_internals.strides_of(one):
        return result
    with torch_internals.fake_only(session.fake_mode):
        made = torch.empty_strided(one.shape, found.stride(), dtype=one.dtype, device=one.device)
    return made if one is result else type(result)((made, *result[1:]))


_INNERMOST = {4: (1, 3, 2, 0), 5: (1, 4, 3, 2, 0)}
"""By the number of dimensions: these from the innermost on, where channels are."""


def _of_cat(session: Session, args: Any, kwargs: Any, result: torch.Tensor) -> torch.Tensor:
    """What ``cat`` gives: for open sizes torch's rule says that it is contiguous."""
    if not torch_internals.is_unknown((*args, *kwargs.values())) or result.layout is not torch.strided:
        return result
    found = {_keeps_channels_innermost(one) for one in args[0]}
    if found <= {False}:
        return result
    if found != {True}:
        session.values.any_layout[result] = True
        return result
    strides: list[Any] = [0] * result.dim()
    expected: Any = 1
    for dim in _INNERMOST[result.dim()]:
        strides[dim], expected = expected, expected * result.shape[dim]
    with torch_internals.fake_only(session.fake_mode):
        return torch.empty_strided(result.shape, strides, dtype=result.dtype, device=result.device)


def _keeps_channels_innermost(fake: torch.Tensor) -> bool | None:
    """What PyTorch takes a tensor's strides for when it makes another one like it; None where its sizes do not say."""
    strides = torch_internals.strides_of(fake)
    if fake.dim() not in _INNERMOST or torch_internals.size_expr(strides[1]) != 1:
        return False
    least: Any = 0
    for dim in _INNERMOST[fake.dim()]:
        size, stride = fake.shape[dim], strides[dim]
        if type(size) is int and size == 0:
            return False
        if type(stride) is int and type(least) is int:
            if stride < least:
                return False
        elif torch_internals.size_expr(stride) != torch_internals.size_expr(least):
            return None
        if dim == 0 and torch_internals.size_expr(least) == torch_internals.size_expr(strides[1]):
            return False
        if type(size) is not int and not torch_internals.is_surely_several(size):
            return None
        least = stride if type(size) is int and size == 1 else stride * size
    return True


def _lies_plainly(fake: torch.Tensor) -> bool:
    """Whether the strides are those of a new tensor, also where a size is 1."""
    expected: Any = 1
    for size, stride in zip(reversed(fake.shape), reversed(torch_internals.strides_of(fake))):
        if torch_internals.size_expr(stride) != torch_internals.size_expr(expected):
            return False
        expected = expected * size
    return True


def _is_channels_last(fake: torch.Tensor) -> bool:
    channels = torch_internals.strides_of(fake)[1] if fake.dim() in (4, 5) else None
    return type(channels) is int and channels == 1


__all__ = ["has_its_own", "settle"]
