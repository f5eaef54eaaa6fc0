"""Arguments and attributes that are tensors of other classes: plain subclasses pass, those that dispatch do not."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.testing._internal.two_tensor import TwoTensor

import dy2static
from runtime.errors import Dy2StaticError


class Plain(torch.Tensor):
    pass


def straight(x: Any) -> Any:
    return x * 2 + 1


def branch(x: Any) -> Any:
    if x.sum() > 0:
        return x * 2
    return x - 1


def loop(x: Any) -> Any:
    while x.sum() < 20:
        x = x * 2
    return x


FUNCTIONS = [straight, branch, loop]


def _nested() -> Any:
    return torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])


def _jagged() -> Any:
    return torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("make", [lambda: TwoTensor(torch.ones(2), torch.zeros(2)), _nested, _jagged])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_those_of_several_parts_are_refused(function: Any, make: Any) -> None:
    with pytest.raises(Dy2StaticError, match="argument 'x' is a") as error:
        dy2static.to_static(function)(make())
    assert error.value.code == "D2S213"


@pytest.mark.parametrize("function", [*FUNCTIONS, lambda x: (x * 2).to_dense()])
def test_layouts_of_libraries_are_refused(function: Any) -> None:
    """On a fake tensor ``to_dense`` did nothing, and so did the Program."""
    with pytest.raises(Dy2StaticError, match="argument 'x' has the layout _mkldnn") as error:
        dy2static.to_static(function)(torch.ones(2, 3).to_mkldnn())
    assert error.value.code == "D2S213"


def test_so_are_attributes() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = TwoTensor(torch.ones(2), torch.zeros(2))

        def forward(self, x: Any) -> Any:
            return x + self.table

    with pytest.raises(Dy2StaticError, match="is a TwoTensor") as error:
        dy2static.to_static(Net())(torch.ones(2))
    assert error.value.code == "D2S213"


@pytest.mark.parametrize("function", FUNCTIONS)
def test_plain_subclasses_pass(function: Any) -> None:
    x = torch.ones(2).as_subclass(Plain)  # type: ignore[no-untyped-call]
    result = dy2static.to_static(function)(x)
    assert type(result) is Plain and torch.equal(result, function(x))
