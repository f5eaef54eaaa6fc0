"""``index_select``, and parts of modules by number, in a ``try`` whose handler catches what they raise, as in eager."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from dy2static import InputSpec, to_static
from dy2static.errors import TraceError
from tests.oracle import check, check_saved, hold_modules, paired


def method(x: torch.Tensor, index: torch.Tensor) -> Any:
    try:
        return x.index_select(0, index)
    except IndexError:
        return x * 0


def function(x: torch.Tensor, index: torch.Tensor) -> Any:
    try:
        y = torch.index_select(x, -2, index)
    except IndexError as error:
        return str(error), x
    return y * 2


def as_graph_libraries_do(x: torch.Tensor, index: torch.Tensor) -> Any:
    try:
        return x.index_select(0, index)
    except (IndexError, RuntimeError) as error:
        if index.numel() > 0 and index.min() < 0:
            raise IndexError(f"negative: {index.min().item()}") from error
        raise error


def lifted(x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    return x.index_select(0, index)


def around_a_call(x: torch.Tensor, index: torch.Tensor) -> Any:
    try:
        return lifted(x, index) + lifted(x * 2, index)
    except IndexError:
        return x - 1


def in_a_loop(x: torch.Tensor, index: torch.Tensor) -> Any:
    found, missing = x.sum() * 0, 0
    for i in range(int(index.abs().sum())):
        try:
            found = found + x.index_select(0, index + i).sum()
        except IndexError:
            missing += 1
    return found, missing


def another_error(x: torch.Tensor, index: torch.Tensor) -> Any:
    try:
        return x.index_select(0, index)
    except ZeroDivisionError:
        return x


def along_the_second(x: torch.Tensor, index: torch.Tensor) -> Any:
    """There torch raises RuntimeError."""
    try:
        return x.index_select(1, index)
    except IndexError:
        return x


FUNCTIONS = [method, function, as_graph_libraries_do, around_a_call, in_a_loop, another_error]
INDICES = ([0, 1, 1], [0, 5], [-1, 0], [2], [])


def calls(needs: bool) -> list[Any]:
    return [(torch.arange(9.0).reshape(3, 3).requires_grad_(needs), torch.tensor(one, dtype=torch.int64))
            for one in INDICES]  # fmt: skip


@pytest.mark.parametrize("needs", [False, True])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda one: one.__name__)
def test_like_eager(function: Callable[..., Any], needs: bool) -> None:
    check(function, *calls(needs), paths=("program",))


@pytest.mark.parametrize("function", [method, around_a_call], ids=lambda one: one.__name__)
def test_from_a_file(function: Callable[..., Any], tmp_path: Any) -> None:
    spec = [InputSpec([3, 3], torch.float32), InputSpec([None], torch.int64)]
    static = to_static(function, input_spec=spec)
    check_saved(function, static, tmp_path / "f", *calls(False)[:4], paths=("program",))


def test_another_kernel_raises_another_error() -> None:
    with pytest.raises(TraceError) as error:
        to_static(along_the_second)(*calls(False)[0])
    assert error.value.code == "D2S229"


class Parts(nn.Module):
    """One of some parts by number, in a ``try``; ``form``: which list of modules, and how it is asked."""

    def __init__(self, form: str) -> None:
        super().__init__()
        self.form = form
        self.layers = nn.ModuleList([nn.Linear(3, 3), nn.Linear(3, 3)])
        self.row = nn.Sequential(nn.Tanh(), nn.ReLU())
        self.weights = nn.ParameterList([torch.ones(3), torch.full((3,), 2.0)])

    def forward(self, x):
        i = int(x.sum())
        try:
            if self.form == "layers":
                y = self.layers[i](x)
            elif self.form == "remainder":
                y = self.layers[i % 2](x)
            elif self.form == "tensor":
                y = self.layers[x.sum().long()](x)
            elif self.form == "row":
                y = self.row[i](x)
            elif self.form == "weights":
                y = x * self.weights[i]
            else:
                y = self.layers[i](x) + self.row[i + 1](x)
        except IndexError as error:
            return x * 5, str(error)
        return y, "found"


@pytest.mark.parametrize("form", ("layers", "remainder", "tensor", "row", "weights", "two"))
def test_parts_of_modules(form: str) -> None:
    layer, eager = paired(lambda: Parts(form))
    calls = [(torch.full((3,), value, requires_grad=True),) for value in (0.0, 0.4, 1.0, -0.4, 5.0, -5.0)]
    hold_modules(layer, eager, calls)


@pytest.mark.parametrize("value", (1.0, -5.0))
def test_parts_of_modules_that_are_not_there(value: float) -> None:
    class Taken(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList([nn.Linear(3, 3), nn.Linear(3, 3)])

        def forward(self, x):
            return self.layers[int(x.sum())](x)

    layer, eager = paired(Taken)
    hold_modules(layer, eager, [(torch.zeros(3),), (torch.full((3,), value),)])
