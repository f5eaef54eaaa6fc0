"""``retain_grad()`` inside a function: what comes out retains its gradient for a backward outside."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import dy2static
from dy2static import to_static
from runtime.autodiff import gradient_path
from runtime.errors import Dy2StaticError
from tests.oracle import same, tensors

WAYS = ["program", "autograd", "eager", "loaded"]


def always(x: torch.Tensor) -> Any:
    h = x * 2
    before = h.retains_grad
    h.retain_grad()
    return h, h * h, before, h.retains_grad, x.retains_grad


def before_a_branch(x: torch.Tensor) -> Any:
    h = x * 2
    h.retain_grad()
    if x.sum() > 5:
        y = h * h
    else:
        y = h + 1
    return {"y": y, "h": [h]}


def on_one_path(x: torch.Tensor) -> Any:
    h = x * 2
    if x.sum() > 5:
        h.retain_grad()
    return h, h * h, h.retains_grad


def asked_on_a_path(x: torch.Tensor) -> Any:
    h = x * 2
    if x.sum() > 5:
        h.retain_grad()
    y = h * 3 if h.retains_grad else h.sin()
    return y, h


def replaced_on_both_paths(x: torch.Tensor) -> Any:
    y = x * 1.0
    if x.sum() > 5:
        y.retain_grad()
        y = y * 1
    else:
        y = y * 2
    return y, y * y


def view_of_an_argument(x: torch.Tensor) -> Any:
    h = x[1:]
    h.retain_grad()
    y = x.exp()
    for _ in range(int(x.sum().item())):
        y = y * h.sum()
    return h, y


def inside_a_loop(x: torch.Tensor) -> Any:
    y = x.exp()
    for _ in range(int(x.sum().item())):
        y = y * 2
        z = y.exp()
        z.retain_grad()
    return y


def an_argument(x: torch.Tensor) -> Any:
    x.retain_grad()
    return x * 2, x.retains_grad


def an_argument_on_a_path(x: torch.Tensor) -> Any:
    y = x * 2
    if x.sum() > 5:
        x.retain_grad()
    return y


def of_a_training_step(x: torch.Tensor) -> Any:
    h = x * 2
    h.retain_grad()
    g = x * 3
    g.retain_grad()
    (h * h).sum().backward()
    assert h.grad is not None
    return h.grad * 2, g, g * g


FAMILY = [
    always, before_a_branch, on_one_path, asked_on_a_path, replaced_on_both_paths, view_of_an_argument, inside_a_loop,
]  # fmt: skip
OF_ARGUMENTS = [an_argument, an_argument_on_a_path]


def road_of(function: Callable[..., Any], way: str, file: Path) -> Callable[..., Any]:
    if way == "loaded":
        dy2static.save(to_static(function), file, input_spec=[torch.tensor([1.0, 2.0, 3.0]).requires_grad_()])
        return dy2static.load(file)
    return to_static(function, autograd="eager" if way == "eager" else "program")


def seen(road: Callable[..., Any], values: list[float], leaf: bool) -> list[Any]:
    """What the results and the argument say of their gradients after a backward outside."""
    start = torch.tensor(values).requires_grad_()
    x = start if leaf else start * 1
    result = road(x)
    found = [one for one in tensors(result) if one.requires_grad]
    loss: Any = sum((number + 1) * one.sum() for number, one in enumerate(found))
    loss.backward()
    everything = [(one.retains_grad, one.grad if one.retains_grad else None) for one in (*found, x)]
    return [result, everything, start.grad]


@pytest.mark.parametrize(
    "function, way", [*itertools.product(FAMILY, WAYS), *itertools.product(OF_ARGUMENTS, WAYS[:-1])])
def test_retained_for_a_backward_outside(function: Callable[..., Any], way: str, tmp_path: Path) -> None:
    road = road_of(function, way, tmp_path / "f")
    for values in ([1.0, 2.0, 3.0], [1.0, 0.0, 1.0]):
        for leaf in (True,) if way == "loaded" else (True, False):  # a file may ask for a leaf
            with gradient_path("autograd" if way == "autograd" else "program"):
                found = seen(road, values, leaf)
            same(found, seen(function, values, leaf))


@pytest.mark.parametrize("function", OF_ARGUMENTS)
def test_a_file_does_not_hang_it_on_an_argument(function: Callable[..., Any], tmp_path: Path) -> None:
    """A file takes leaves, of which it does nothing."""
    road = road_of(function, "loaded", tmp_path / "f")
    same(seen(road, [1.0, 2.0, 3.0], True), seen(function, [1.0, 2.0, 3.0], True))
    with pytest.raises(Dy2StaticError) as found:
        seen(road, [1.0, 2.0, 3.0], False)
    assert found.value.code == "D2S319" and found.value.location is not None


@pytest.mark.parametrize("way", ["program", "eager"])
def test_a_step_inside_and_a_backward_outside(way: str, tmp_path: Path) -> None:
    road = road_of(of_a_training_step, way, tmp_path / "f")
    same(seen(road, [1.0, 2.0, 3.0], True), seen(of_a_training_step, [1.0, 2.0, 3.0], True))


class Net(nn.Module):
    """Keeps what its layers give."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(3, 3), nn.Linear(3, 1)
        self.kept: dict[str, torch.Tensor] = {}

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.act = torch.tanh(self.first(x))
        self.act.retain_grad()
        if x.sum() > 5:
            return self.last(self.act) * 2
        return self.last(self.act)


def hook(keep: dict[str, torch.Tensor]) -> Callable[..., None]:
    def keeping(module: nn.Module, args: Any, output: torch.Tensor) -> None:
        output.retain_grad()
        keep["a"] = output

    return keeping


@pytest.mark.parametrize(
    "hooked, way", [(False, "loaded"), *itertools.product([False, True], ["program", "eager"])])
def test_what_modules_and_their_hooks_keep(hooked: bool, way: str, tmp_path: Path) -> None:
    def made() -> Net:
        torch.manual_seed(0)
        net = Net()
        if hooked:
            net.first.register_forward_hook(hook(net.kept))
        return net

    net, static = made(), made()
    if way == "loaded":
        dy2static.save(static, tmp_path / "net", input_spec=[torch.tensor([1.0, 2.0, 3.0]).requires_grad_()])
        road: Any = dy2static.load(tmp_path / "net")
    else:
        road = to_static(static, autograd=way)
    for values in ([1.0, 2.0, 3.0], [1.0, 0.0, 1.0]):
        found = []
        for module, keep in ((net, net.kept), (road, static.kept)):
            module(torch.tensor(values).requires_grad_()).sum().backward()
            found.append([module.act.retains_grad, module.act.grad, *(one.grad for one in keep.values())])
        same(found[1], found[0])
        assert found[0][1] is not None and len(found[0]) == 2 + hooked


def made_on_a_path(x: torch.Tensor) -> Any:
    if x.sum() > 5:
        h = x * 2
        h.retain_grad()
    else:
        h = x * 3
    return h, h * h


def made_in_an_iteration(x: torch.Tensor) -> Any:
    states = []
    for number in range(int(x.sum().item())):
        h = x * number
        h.retain_grad()
        states.append(h)
    return states


def another_on_a_path(x: torch.Tensor) -> Any:
    y = x * 1.0
    k = y if x.sum() > 5 else x + 1
    y.retain_grad()
    return y, k


@pytest.mark.parametrize("function", [made_on_a_path, made_in_an_iteration, another_on_a_path])
def test_what_a_join_cannot_tell_is_refused(function: Callable[..., Any]) -> None:
    with pytest.raises(Dy2StaticError, match="a tensor whose gradient is retained") as found:
        to_static(function)(torch.tensor([1.0, 2.0, 3.0]).requires_grad_())
    assert found.value.code == "D2S245" and found.value.location is not None


def rebound_in_a_branch(x: torch.Tensor) -> Any:
    h = x * 2
    h.retain_grad()
    if x.sum() > 5:
        h = torch.relu(h)
    return h.sum()


def another_name(x: torch.Tensor) -> Any:
    h = x * 2
    h.retain_grad()
    k = h
    if x.sum() > 5:
        k = torch.relu(h)
    return k.sum(), h


def of_a_leaf(x: torch.Tensor) -> Any:
    x.retain_grad()
    w = torch.ones(3, requires_grad=True)
    w.retain_grad()
    h = x
    if x.sum() > 5:
        h, w = h * 2, w * 3
    return (h * w).sum(), x.retains_grad


def rebound_in_a_loop(x: torch.Tensor) -> Any:
    h = x * 2
    h.retain_grad()
    while h.sum() < 100:
        h = h * 2
    return h.sum()


def in_a_list_of_a_loop(x: torch.Tensor) -> Any:
    h, states = x * 1, []
    while h.sum() < 100:
        h = h * 2
        h.retain_grad()
        states.append(h)
    return sum(one.sum() for one in states), h.sum()


def unrolled(x: torch.Tensor) -> Any:
    h, states = x * 1, []
    for _ in range(3):
        h = h * 2
        h.retain_grad()
        states.append(h)
    if x.sum() > 5:
        h = h + 1
    return states, h.sum()


class Holder:
    h: torch.Tensor


def in_objects(x: torch.Tensor) -> Any:
    one, two = Holder(), {"h": x * 2}
    one.h = x * 3
    one.h.retain_grad()
    two["h"].retain_grad()
    if x.sum() > 5:
        one.h = one.h + 1
    while two["h"].sum() < 100:
        two["h"] = two["h"] + 10
    return (one.h * two["h"]).sum()


def again_after_it(x: torch.Tensor) -> Any:
    h = x * 2
    h.retain_grad()
    if x.sum() > 5:
        h = h.sin()
    h = h * 3
    h.retain_grad()
    return h, h * h


def a_step_on_one_path(x: torch.Tensor) -> Any:
    h = x.detach().requires_grad_() * 2
    if x.sum() > 5:
        h.retain_grad()
    (h * h).sum().backward()
    g = h.grad
    return x * 2 if g is None else x * g


def a_step_after_a_join(x: torch.Tensor) -> Any:
    h = x.detach().requires_grad_() * 2
    h.retain_grad()
    k = h
    if x.sum() > 5:
        k = torch.relu(h)
    (k * k).sum().backward()
    assert h.grad is not None
    return x * h.grad


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("function", [
    rebound_in_a_branch, another_name, of_a_leaf, rebound_in_a_loop, in_a_list_of_a_loop, unrolled, in_objects,
    again_after_it, a_step_on_one_path, a_step_after_a_join,
])  # fmt: skip
@pytest.mark.filterwarnings("ignore:The .grad attribute")
def test_a_join_lets_go_of_what_nobody_asks(function: Callable[..., Any], way: str, tmp_path: Path) -> None:
    road = road_of(function, way, tmp_path / "f")
    for values in ([1.0, 2.0, 3.0], [1.0, 0.0, 1.0]):
        with gradient_path("autograd" if way == "autograd" else "program"):
            found = seen(road, values, True)
        same(found, seen(function, values, True))


def joined_leaves(x: torch.Tensor) -> Any:
    h = x * 2
    h.retain_grad()
    if x.sum() > 5:
        h = torch.relu(h)
    return h, h * 2


def joined_is_asked(x: torch.Tensor) -> Any:
    h = x * 2
    h.retain_grad()
    if x.sum() > 5:
        h = torch.relu(h)
    return h.sum(), h.retains_grad


def joined_is_asked_for_grad(x: torch.Tensor) -> Any:
    h = x.detach().requires_grad_() * 2
    h.retain_grad()
    while h.sum() < 100:
        h = h * 2
    h.sum().backward()
    return x * h.grad


def joined_in_a_list(x: torch.Tensor) -> Any:
    h, states = x * 1, []
    while h.sum() < 100:
        h = h * 2
        h.retain_grad()
        states.append((h, h + 1))
    return h.sum(), states


@pytest.mark.parametrize("function", [joined_leaves, joined_is_asked, joined_is_asked_for_grad, joined_in_a_list])
def test_where_it_would_matter_it_is_refused(function: Callable[..., Any]) -> None:
    with pytest.raises(Dy2StaticError, match="retained on some path") as found:
        to_static(function)(torch.tensor([1.0, 2.0, 3.0]).requires_grad_())
    assert found.value.code == "D2S245" and found.value.location is not None
