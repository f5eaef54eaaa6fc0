"""How what an operator gives lies in memory, where torch's shape rule says it lies like the operand and kernels do not.

    F.max_pool1d(x.transpose(1, 2), 2)      the rule: channels innermost; the kernel: contiguous
    F.batch_norm(x.transpose(0, 1), ...)    the rule: like x; the kernel: contiguous

The kernel is asked with tensors that lie so. Where a size is open the layout counts as not known.
"""

from __future__ import annotations

from typing import Any

import torch

from runtime import torch_internals
from runtime.tracer.recording.session import Session

_NAMES = frozenset(
    f"aten::{name}" for name in (
        "max_pool1d", "batch_norm", "native_batch_norm", "group_norm", "native_group_norm", "channel_shuffle",
        "native_channel_shuffle", "glu", "reflection_pad3d", "replication_pad3d", "upsample_nearest1d",
        "_upsample_nearest_exact1d", "upsample_nearest2d", "_upsample_nearest_exact2d", "upsample_nearest3d",
        "_upsample_nearest_exact3d", "upsample_bilinear2d", "upsample_bicubic2d", "upsample_trilinear3d",
    )
)  # fmt: skip


def has_its_own(func: Any, args: Any) -> bool:
    """Whether it is an operator whose kernels have layouts of their own."""
    name = func._schema.name
    if name == "aten::pad":
        return len(args) > 2 and args[2] != "constant"
    return name in _NAMES and not func._schema.is_mutable


def settle(session: Session, func: Any, args: Any, kwargs: Any, result: Any, needs: dict[int, bool]) -> Any:
    """The result of a shape rule, laid out as kernels do; ``needs``: the ids of the fake tensors that require grad."""
    fake = args[0]
    if fake.layout is not torch.strided or _lies_plainly(fake):
        return result
    one = result if isinstance(result, torch.Tensor) else result[0]
    if torch_internals.is_unknown((*args, *kwargs.values())):
        if not _is_channels_last(fake):
            session.values.any_layout[one] = True
        return result
    real = torch_internals.real_results(func, args, kwargs, needs)
    found = real if real is None or isinstance(real, torch.Tensor) else real[0]
    if found is None or found.shape != one.shape or found.stride() == torch_internals.strides_of(one):
        return result
    with torch_internals.fake_only(session.fake_mode):
        made = torch.empty_strided(one.shape, found.stride(), dtype=one.dtype, device=one.device)
    return made if one is result else type(result)((made, *result[1:]))


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
