"""What is a copy or a view, or lies plainly in memory, for some sizes only: one Program serves no others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from dy2static import InputSpec, load, save, to_static
from dy2static.errors import Dy2StaticError
from tests.oracle import check, check_module, copied, run, same

SIZES = [(5, 4), (7, 3), (1, 3), (4, 1), (2, 5), (9, 2), (1, 1), (3, 2), (0, 3), (2, 0)]

WRITES: dict[str, Any] = {
    "contiguous": lambda x: (x.t().contiguous().add_(1), x + 0)[1],
    "reshape": lambda x: (x.t().reshape(-1).add_(1), x + 0)[1],
    "reshape_as": lambda x: (x.t().reshape_as(x).mul_(3), x + 0)[1],
    "flatten": lambda x: (x.t().flatten().add_(1), x + 0)[1],
    "ravel": lambda x: (x.t().ravel().zero_(), x + 0)[1],
    "written first": lambda x: _base_written(x),
    "a part": lambda x: _part_written(x),
    "relu": lambda x: (F.relu(x.t().contiguous(), inplace=True), x + 0),
    "out": lambda x: (torch.add(x.t(), 1, out=x.t().contiguous()), x + 0)[1],
    "in turn": lambda x: (x.t().contiguous().reshape(-1).view(-1, 1).sub_(2), x + 0)[1],
    "of what is computed": lambda x: _computed(x),
    "in a branch": lambda x: _branch(x),
    "in a loop": lambda x: _loop(x),
}
ASKS: dict[str, Any] = {
    "transposed": lambda x: x.t().is_contiguous(),
    "channels_last": lambda x: x.view(x.shape[0], 1, 1, x.shape[1]).is_contiguous(memory_format=torch.channels_last),
    "expanded": lambda x: x[:1].expand(x.shape[0], -1).is_contiguous(),
    "part": lambda x: x[:, :2].is_contiguous(),
    "steps": lambda x: x[::2].is_contiguous(),
    "column": lambda x: x[:, :1].is_contiguous(),
    "chunks": lambda x: [one.is_contiguous() for one in x.chunk(2, 1)],
    "permuted": lambda x: x.unsqueeze(0).permute(1, 2, 0).is_contiguous(),
    "product": lambda x: F.linear(x, torch.ones(4, x.shape[1])).t().is_contiguous(),
    "decides": lambda x: x * 2 if x.t().is_contiguous() else x * 3,
}


def _base_written(x: torch.Tensor) -> Any:
    y = x * 1
    z = y.t().contiguous()
    y.add_(1)
    return z * 2, y * 1


def _part_written(x: torch.Tensor) -> Any:
    y = x * 1
    z = y.t().reshape(-1)
    if z.numel():
        z[0] = 5.0
    return z * 2, y * 1


def _computed(x: torch.Tensor) -> Any:
    y = (x * 2).t()
    z = y.reshape(-1)
    z.mul_(3)
    return y * 1, z * 1


def _branch(x: torch.Tensor) -> Any:
    y = x * 1
    z = y.t().contiguous()
    if x.sum() > 0:
        z.add_(1)
    return y * 1, z * 1


def _loop(x: torch.Tensor) -> Any:
    y = x * 1
    z = y.t().contiguous()
    n = 0
    while n < 2 and z.abs().sum() < 100:
        z.add_(1)
        n += 1
    return y * 1, z * 1


def calls() -> list[list[torch.Tensor]]:
    generator = torch.Generator().manual_seed(0)
    return [[torch.randn(size, generator=generator)] for size in SIZES]


@pytest.mark.parametrize("way", WRITES)
def test_writes(way: str) -> None:
    """A row or column of one shares memory with what it was made of; others do not."""
    check(WRITES[way], *calls(), paths=("program",))


@pytest.mark.parametrize("way", ASKS)
def test_questions(way: str) -> None:
    check(ASKS[way], *calls(), paths=("program",))


class Heads(nn.Module):
    """Attention's way of putting heads together, and an activation in place."""

    def __init__(self) -> None:
        super().__init__()
        self.out = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, t, d = x.shape
        y = x.view(b, t, 2, d // 2).transpose(1, 2).contiguous()
        y = F.relu(y, inplace=True).transpose(1, 2).reshape(b, t, d)
        return self.out(y).relu_() + x


def test_a_module() -> None:
    generator = torch.Generator().manual_seed(0)
    given = [[torch.randn(b, t, 4, generator=generator)] for b, t in ((2, 3), (3, 5), (1, 4), (2, 1), (1, 1), (4, 2))]
    check_module(Heads, *given, tolerance=1e-6)


def test_files(tmp_path: Path) -> None:
    """Saved from calls of several sizes it is right for those that it takes, or is refused; never wrong."""
    for number, function in enumerate(WRITES.values()):
        file = tmp_path / str(number)
        try:
            save(function, file, [InputSpec([None, None])])
        except Dy2StaticError as error:
            assert error.code == "D2S315", error
            continue
        loaded = load(file)
        for call in calls():
            mine, theirs = copied(call), copied(call)
            try:
                got = run(loaded, mine)
            except Dy2StaticError:
                continue
            expected = run(function, theirs)
            same([got.result, mine], [expected.result, theirs])


def test_few_programs() -> None:
    static: Any = to_static(WRITES["contiguous"])
    for x in (torch.randn(size) for size in ((5, 4), (7, 3), (6, 2), (3, 3), (1, 3), (1, 5), (2, 5), (9, 8))):
        static(x)
    assert len(list(static._dispatch.cache.all())) <= 4
