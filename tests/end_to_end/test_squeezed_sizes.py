"""``squeeze`` of sizes that vary: whether there is a dimension less is what each call's sizes say, wherever read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from dy2static import InputSpec, load, save, to_static
from tests.oracle import check

SIZES = ((5, 3), (1, 3), (4, 3), (1, 3), (5, 5), (1, 1), (1, 6), (6, 1), (2, 2))

WAYS: dict[str, Callable[[Any], Any]] = {
    "all": lambda x: x.squeeze(),
    "one": lambda x: torch.squeeze(x, 0),
    "last": lambda x: x.squeeze(-1),
    "several": lambda x: x.squeeze((0, 1)),
    "in place, all": lambda x: x.clone().squeeze_(),
    "in place, one": lambda x: x.clone().squeeze_(0),
    "in place, several": lambda x: x.clone().squeeze_((0, -1)),
    "of a view": lambda x: x.t().squeeze(),
    "of what was joined": lambda x: torch.cat([x, x], 1).squeeze(0),
    "of computed sizes": lambda x: x[1:].squeeze(0),
}


@pytest.mark.parametrize("way", WAYS)
def test_as_in_eager(way: str) -> None:
    def program(x: Any) -> Any:
        y = WAYS[way](x)
        total = y.sum()
        for size in y.shape:
            total = total + size
        return y * 2, y.dim(), y.shape, total

    calls = [(torch.arange(float(a * b)).view(a, b).requires_grad_(),) for a, b in SIZES]
    check(program, *calls)


@pytest.mark.parametrize("way", ["all", "one", "in place, one"])
def test_on_a_path(way: str) -> None:
    def program(x: Any) -> Any:
        y = x * 1
        if x.sum() > 0:
            y = WAYS[way](y) + 1
        return y, y.sum()

    check(program, *((torch.full(size, value),) for size in SIZES for value in (1.0, -1.0)))


def test_sizes_that_an_input_spec_leaves_open(tmp_path: Any) -> None:
    def program(x: Any) -> Any:
        y = x.squeeze(0)
        return y, y.dim()

    spec = [InputSpec([None, 3], "float32")]
    loaded = load(save(to_static(program), tmp_path / "f", input_spec=spec))
    assert loaded(torch.ones(4, 3))[1] == 2
    with pytest.raises(Exception, match=r"\[D2S\d+\].*'?x"):
        loaded(torch.ones(1, 3))


BY_DATA: dict[str, Callable[[Any], Any]] = {
    "of nonzero": lambda x: (x > 0).nonzero().squeeze(),
    "of a mask": lambda x: x[x > 0].squeeze(),
    "by torch's function": lambda x: torch.squeeze(x[x > 0]),
    "one": lambda x: x[x > 0].squeeze(0).sum(),
    "by name": lambda x: x[x > 0].squeeze(dim=0),
    "the last": lambda x: x[x > 0][None].squeeze(-1),
    "several": lambda x: x[x > 0][None, :, None].squeeze((0, 1)),
    "all": lambda x: x[x > 0][None, :, None].squeeze(),
    "of two sizes": lambda x: (x[x > 0][:, None] * x[x < 0]).squeeze(),
    "as an index": lambda x: x[(x > 0).nonzero().squeeze()],
    "as a list": lambda x: (x > 0).nonzero().squeeze().tolist(),
    "asked for": lambda x: (x[x > 0].squeeze().dim(), x[x > 0].squeeze().shape, x[x > 0].squeeze(0).numel()),
    "in a branch": lambda x: x[x > 0].squeeze() * 2 if x.sum() > 0 else x,
    "in a loop": lambda x: [x[x > i].squeeze().sum() for i in range(2)],
}


@pytest.mark.parametrize("needs", [False, True])
@pytest.mark.parametrize("way", BY_DATA)
def test_sizes_that_data_decides(way: str, needs: bool) -> None:
    values = ([1.0, 1.0, -1.0], [-1.0, -1.0, -1.0], [1.0, -1.0, -1.0], [2.0, -1.0], [0.5, 3.0, -2.0, 2.0])
    check(BY_DATA[way], *[(torch.tensor(one, requires_grad=needs),) for one in values], paths=("program",))


def test_sizes_that_data_decides_in_a_file(tmp_path: Any) -> None:
    def program(x: Any) -> Any:
        return (x > 0).nonzero().squeeze()

    loaded = load(save(to_static(program), tmp_path / "f", input_spec=[InputSpec([None], "float32")]))
    for values in ([1.0, 1.0, -1.0], [-1.0, -1.0, -1.0], [1.0, -1.0, -1.0]):
        assert torch.equal(loaded(torch.tensor(values)), program(torch.tensor(values)))
