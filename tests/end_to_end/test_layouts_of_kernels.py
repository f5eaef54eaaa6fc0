"""How results of pools, norms, upsampling and padding lie in memory, for operands that are not contiguous."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from tests.oracle import check


def _upsampled(x: torch.Tensor, kind: str) -> torch.Tensor:
    return F.interpolate(x, scale_factor=2, mode=kind if kind == "nearest" else {3: "linear", 4: "bilinear"}[x.dim()])


def _pool(kind: str) -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda x: getattr(F, f"{kind}_pool{x.dim() - 2}d")(x, 2, 1, 1)


FUNCTIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "max": _pool("max"), "avg": _pool("avg"), "nearest": lambda x: _upsampled(x, "nearest"),
    "linear": lambda x: _upsampled(x, "linear"), "reflect": lambda x: F.pad(x, (1, 1) * (x.dim() - 2), mode="reflect"),
    "replicate": lambda x: F.pad(x, (1, 1) * (x.dim() - 2), mode="replicate"),
    "batch norm": lambda x: F.batch_norm(x, None, None, training=True), "group norm": lambda x: F.group_norm(x, 1),
    "channels": lambda x: F.channel_shuffle(x, x.shape[1]), "glu": lambda x: F.glu(x, -1),
    "conv": lambda x: F.conv1d(x, torch.ones(2, x.shape[1], 2)) if x.dim() == 3 else F.conv2d(
        x, torch.ones(2, x.shape[1], 2, 2)),
}  # fmt: skip


def swapped(x: torch.Tensor, a: int, b: int) -> torch.Tensor:
    return x.transpose(a, b).contiguous().transpose(a, b)


LAYOUTS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "plain": lambda x: x, "last": lambda x: swapped(x, -1, -2), "rows": lambda x: swapped(x, 0, 1),
    "one": lambda x: swapped(x[:1], -1, -2), "one channel": lambda x: swapped(x[:, :1], 1, -1),
    "channels": lambda x: swapped(swapped(x, 1, -1), 1, 1) if x.dim() == 3 else x.contiguous(
        memory_format=torch.channels_last),
    "expanded": lambda x: x[:, :1].expand_as(x), "steps": lambda x: x[..., ::2],
}  # fmt: skip


@pytest.mark.sample(30)
@pytest.mark.parametrize("shape", [(2, 4, 6), (2, 4, 6, 8)])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_strides(name: str, layout: str, shape: tuple[int, ...]) -> None:
    def f(x: torch.Tensor) -> Any:
        y = FUNCTIONS[name](x)
        flat = y.view(-1) if y.is_contiguous() else y.reshape(-1) * 2
        return y.stride(), y.is_contiguous(), flat, y

    x = LAYOUTS[layout](torch.linspace(-1, 2, torch.Size(shape).numel()).sin().reshape(shape))
    check(f, (x,), (x * 2,), tolerance=1e-5)


def test_a_pool_of_a_transposed_row() -> None:
    def f(x: torch.Tensor) -> Any:
        y = F.max_pool1d(x, 2, 1, 1)
        return y.stride(), y.view(-1)

    check(f, (torch.ones(2, 3).t()[None],))


def test_a_pool_of_any_length() -> None:
    """With an open size the layout is not known, and what does not ask for it works."""

    def f(x: torch.Tensor) -> Any:
        return F.max_pool1d(x.transpose(1, 2), 2, 1, 1).reshape(-1) * 2

    check(f, *((torch.linspace(0, 1, 6 * n).reshape(1, n, 6).requires_grad_(),) for n in (3, 4, 5)))
