"""Writes through what may be a view or a copy (``reshape``, ``flatten``, ``contiguous``): live, saved and loaded."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import runtime
from dy2static import save, to_static
from tests.oracle import check

WAYS = {
    "reshape": lambda y: y.reshape(3, 2),
    "reshape_as": lambda y: y.reshape_as(torch.zeros(3, 2)),
    "flatten": lambda y: y.flatten(),
    "ravel": lambda y: y.ravel(),
    "contiguous": lambda y: y.contiguous(),
    "to": lambda y: y.to(torch.float32),
    "flatten of a row": lambda y: y[0].flatten(),
    "reshape of a transposed one": lambda y: y.t().reshape(6),
    "contiguous of a transposed one": lambda y: y.t().contiguous(),
}


@pytest.mark.parametrize("gradient", [False, True])
@pytest.mark.parametrize("name", WAYS)
def test_as_eager_live_and_loaded(name: str, gradient: bool, tmp_path: Path) -> None:
    way = WAYS[name]

    def written(x):
        y = x * 2
        z = way(y)
        if x.sum() > 0:
            z.mul_(3)
        z[0] = 5
        return y, z

    calls = [torch.ones(2, 3), -torch.ones(2, 3)]
    check(written, *[(x.requires_grad_(gradient),) for x in calls])
    static = to_static(written)
    for x in calls:
        static(x)
    save(static, tmp_path / "written.d2s")
    loaded = runtime.load(tmp_path / "written.d2s")
    for x in calls:
        for one, other in zip(loaded(x), written(x), strict=True):
            assert torch.equal(one, other) and one.requires_grad == other.requires_grad
