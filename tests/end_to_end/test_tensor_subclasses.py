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


class Doubling(torch.Tensor):
    def double(self) -> Any:
        return self * 2


class Adding(torch.Tensor):
    def __add__(self, other: Any) -> Any:
        return super().__add__(other) * 10


class Dispatching(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return super().__torch_function__(func, types, args, kwargs or {})


class WithMore(torch.Tensor):
    label = "x"

    def __new__(cls, data: Any) -> Any:
        return torch.as_tensor(data).as_subclass(cls)

    def __repr__(self) -> str:
        return "WithMore"


@pytest.mark.parametrize("cls", [Doubling, Adding, Dispatching])
@pytest.mark.parametrize("place", ["argument", "in a list", "attribute"])
def test_classes_that_override_are_refused(cls: Any, place: str) -> None:
    """Whatever was traced before: torch's method would run in place of theirs."""
    given = torch.ones(2).as_subclass(cls)
    owner = nn.Module()
    owner.held = torch.ones(2)

    def f(x: Any) -> Any:
        x = x[0] if isinstance(x, list) else x
        return (x if place != "attribute" else owner.held) + 1

    static = dy2static.to_static(f)
    for x in (torch.ones(2), [torch.ones(2)]):
        static(x)
    if place == "attribute":
        owner.held = given
    with pytest.raises(Dy2StaticError, match="of its own: a Program runs") as error:
        static([given] if place == "in a list" else torch.ones(2) if place == "attribute" else given)
    assert error.value.code == "D2S213"


def test_those_with_more_pass() -> None:
    result = dy2static.to_static(branch)(WithMore([1.0, 2.0]))
    assert type(result) is WithMore and torch.equal(result, torch.tensor([2.0, 4.0]))


@pytest.mark.parametrize("question", [
    lambda x: x if isinstance(x, Plain) else x - 1, lambda x: x * 2 if isinstance(x * 2, (int, Plain)) else x,
    lambda x: x if type(x) is Plain else x - 1, lambda x: x if type(x + 1) is torch.Tensor else x - 1,
])  # fmt: skip
def test_who_asks_for_the_class_is_refused(question: Any) -> None:
    static = dy2static.to_static(question)
    assert torch.equal(static(torch.ones(2)), question(torch.ones(2)))
    with pytest.raises(Dy2StaticError, match="the class of a tensor is asked for") as error:
        static(torch.ones(2).as_subclass(Plain))  # type: ignore[no-untyped-call]
    assert error.value.code == "D2S213"


def test_torchs_own_classes_may_be_asked_for() -> None:
    def f(x: Any) -> Any:
        return (x * 2 if isinstance(x, torch.Tensor) and not isinstance(x, nn.Parameter) else x), isinstance(x, tuple)

    static, x = dy2static.to_static(f), torch.ones(2).as_subclass(Plain)  # type: ignore[no-untyped-call]
    assert torch.equal(static(x)[0], f(x)[0])
