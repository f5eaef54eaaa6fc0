"""Training loops that carry the loss: each iteration asks for the gradient of what the one before it computed.

The loss before the loop and the loss of an iteration may reach other leaves. Where all iterations are alike a gradient
is sure; where only the first reaches a leaf, what the others find is eager's, or refused.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn, optim

from dy2static import to_static
from runtime.errors import Dy2StaticError
from runtime.tracer.control import while_loop
from tests.oracle import same

OPTIMIZERS: dict[str, Callable[[list[torch.Tensor]], optim.Optimizer]] = {
    "SGD": lambda leaves: optim.SGD(leaves, lr=0.2),
    "momentum": lambda leaves: optim.SGD(leaves, lr=0.05, momentum=0.5),
    "Adam": lambda leaves: optim.Adam(leaves, lr=0.3),
    "Adam one by one": lambda leaves: optim.Adam(leaves, lr=0.3, foreach=False),
}


def made_inside(x: torch.Tensor, layer: nn.Linear, make: Any) -> Any:
    w = torch.zeros(3, requires_grad=True)
    opt, steps = make([w]), 0
    loss = ((w - x) ** 2).sum()
    while loss > 0.5 and steps < 9:
        opt.zero_grad()
        loss.backward()
        opt.step()
        steps += 1
        loss = ((w - x) ** 2).sum()
    return w.detach(), steps, loss.detach()


def of_a_layer(x: torch.Tensor, layer: nn.Linear, make: Any) -> Any:
    opt, steps = make(list(layer.parameters())), 0
    loss = (layer(x) ** 2).sum()
    while loss > 0.01 and steps < 6:
        opt.zero_grad()
        loss.backward()
        opt.step()
        steps += 1
        loss = (layer(x) ** 2).sum()
    return steps, loss.detach()


def by_hand(x: torch.Tensor, layer: nn.Linear, make: Any) -> Any:
    w, steps = torch.zeros(3, requires_grad=True), 0
    loss = ((w - x) ** 2).sum()
    while loss > 0.5 and steps < 9:
        (grad,) = torch.autograd.grad(loss, w)
        with torch.no_grad():
            w -= 0.1 * grad
        steps += 1
        loss = ((w - x) ** 2).sum()
    return w.detach(), steps


def nested(x: torch.Tensor, layer: nn.Linear, make: Any) -> Any:
    w = torch.zeros(3, requires_grad=True)
    opt, steps = make([w]), 0
    loss = ((w - x) ** 2).sum()
    for _ in range(int((x > 0).sum())):
        while loss > 0.5 and steps < 9:
            opt.zero_grad()
            loss.backward()
            opt.step()
            steps += 1
            loss = ((w - x) ** 2).sum()
        x = x + 1
        loss = ((w - x) ** 2).sum()
    return w.detach(), steps, loss.detach()


def on_one_path(x: torch.Tensor, layer: nn.Linear, make: Any) -> Any:
    w = torch.zeros(3, requires_grad=True)
    opt, steps = make([w]), 0
    loss = ((w - x) ** 2).sum()
    while loss > 0.5 and steps < 9:
        opt.zero_grad()
        loss.backward()
        opt.step()
        steps += 1
        if loss < 2:
            loss = (w - x).abs().sum()
        else:
            loss = ((w - x) ** 2).sum()
    return w.detach(), steps


def first_reaches_one_more(x: torch.Tensor, layer: nn.Linear, make: Any) -> Any:
    w, v = torch.zeros(3, requires_grad=True), torch.ones(3, requires_grad=True)
    opt, steps = make([w, v]), 0
    loss = ((w * v - x) ** 2).sum() + (v ** 2).sum()
    while loss > 0.5 and steps < 5:
        opt.zero_grad()
        loss.backward()
        opt.step()
        steps += 1
        loss = ((w - x) ** 2).sum()
    return w.detach(), v.detach(), v.grad is None, steps


def later_reach_one_more(x: torch.Tensor, layer: nn.Linear, make: Any) -> Any:
    w, v = torch.zeros(3, requires_grad=True), torch.ones(3, requires_grad=True)
    opt, steps = make([w, v]), 0
    loss = ((w - x) ** 2).sum()
    while loss > 0.5 and steps < 5:
        opt.zero_grad()
        loss.backward()
        opt.step()
        steps += 1
        loss = ((w * v - x) ** 2).sum()
    return w.detach(), v.detach(), v.grad is None, steps


def in_turn(x: torch.Tensor, layer: nn.Linear, make: Any) -> Any:
    w, v = torch.zeros(3, requires_grad=True), torch.zeros(3, requires_grad=True)
    opt = make([w, v])
    loss, other = ((w - x) ** 2).sum(), ((v + x) ** 2).sum()
    for _ in range(int((x > 0).sum()) + 1):
        opt.zero_grad()
        loss.backward()
        opt.step()
        loss, other = other, ((w - x) ** 2).sum()
    return w.detach(), v.detach(), w.grad is None, v.grad is None


def ends_by_an_error(x: torch.Tensor, layer: nn.Linear, make: Any) -> Any:
    w = torch.zeros(3, requires_grad=True)
    loss, found = ((w - x) ** 2).sum(), x * 0
    try:
        while loss > 0.5:
            (found,) = torch.autograd.grad(loss, w)
            loss = loss.detach() * 0.5
            raise ValueError("once")
    except ValueError:
        return x * 2
    return found


def step(loss: torch.Tensor, *leaves: torch.Tensor) -> None:
    for leaf in leaves:
        leaf.grad = None
    loss.backward()
    with torch.no_grad():
        for leaf in leaves:
            if leaf.grad is not None:
                leaf -= 0.2 * leaf.grad


def by_hand_later(x: torch.Tensor, layer: nn.Linear, make: Any) -> Any:
    w, v, steps = torch.zeros(3, requires_grad=True), torch.ones(3, requires_grad=True), 0
    loss = ((w - x) ** 2).sum()
    while loss > 0.5 and steps < 5:
        step(loss, w, v)
        steps += 1
        loss = ((w * v - x) ** 2).sum()
    return w.detach(), v.detach(), steps


def third_reaches_one_more(x: torch.Tensor, layer: nn.Linear, make: Any) -> Any:
    w, v = torch.zeros(3, requires_grad=True), torch.ones(3, requires_grad=True)
    loss, other, steps = ((w - x) ** 2).sum(), ((w + x) ** 2).sum(), 0
    while loss > 0.05 and steps < 5:
        step(loss, w, v)
        steps += 1
        loss, other = other, ((w * v - x) ** 2).sum()
    return w.detach(), v.detach(), steps


def over_a_range(x: torch.Tensor, layer: nn.Linear, make: Any) -> Any:
    w, v = torch.zeros(3, requires_grad=True), torch.ones(3, requires_grad=True)
    loss = ((w - x) ** 2).sum()
    for _ in range(int((x > 0).sum()) + 1):
        step(loss, w, v)
        loss = ((w * v - x) ** 2).sum()
    return w.detach(), v.detach()


def asked_for_what_later_is_reached(x: torch.Tensor, layer: nn.Linear, make: Any) -> Any:
    w, v, total = torch.zeros(3, requires_grad=True), torch.ones(3, requires_grad=True), torch.zeros(3)
    loss, steps = (w * x).sum(), 0
    while steps < (x > 0).sum() + 1:
        mine, its = torch.autograd.grad(loss, (w, v), allow_unused=True, materialize_grads=True)
        total = total + mine + its
        steps += 1
        loss = (w * x + v * 2).sum()
    return total, steps


def in_a_loop_inside(x: torch.Tensor, layer: nn.Linear, make: Any) -> Any:
    w, v, n = torch.zeros(3, requires_grad=True), torch.ones(3, requires_grad=True), 0
    loss = ((w - x) ** 2).sum()
    while n < int((x > 0).sum()):
        m = 0
        while m < 2 and x.sum() > -5:
            w.grad = v.grad = None
            loss.backward()
            with torch.no_grad():
                w -= 0.1 * w.grad
                if v.grad is not None:
                    v -= 0.1 * v.grad
            loss = ((w * v - x) ** 2).sum() if n > 0 else ((w - x) ** 2).sum()
            m += 1
        n += 1
    return w.detach(), v.detach()


def a_leaf_made_in_a_loop_inside(x: torch.Tensor, layer: nn.Linear, make: Any) -> Any:
    w, n = torch.ones(3, requires_grad=True), 0
    u = x.detach().clone().requires_grad_()
    loss = (w - x).abs().sum()
    while n < 3 and loss > -1:
        n += 1
        for _ in range(int((x > 0).sum())):
            u = u.detach().clone().requires_grad_()
            if loss.requires_grad:
                loss.backward(retain_graph=True)
            loss = (x**2).sum()
    return u.detach(), w.grad, loss


EQUAL = [made_inside, of_a_layer, by_hand, on_one_path, ends_by_an_error, a_leaf_made_in_a_loop_inside]
BY_HAND = [in_a_loop_inside, by_hand_later, third_reaches_one_more, over_a_range, asked_for_what_later_is_reached]
OTHERS = [nested, first_reaches_one_more, later_reach_one_more, in_turn]


def _outcomes(function: Callable[..., Any], convert: Callable[..., Any], optimizer: str) -> list[Any]:
    torch.manual_seed(0)
    layer, found = nn.Linear(3, 2), []
    called = convert(lambda x, own: function(x, own, OPTIMIZERS[optimizer]))
    for values in ((1.0, 2.0, -3.0), (0.1, 0.1, 0.1), (0.5, 1.5, 1.0)):
        own = copy.deepcopy(layer)
        found += [called(torch.tensor(values), own), [one.detach() for one in own.parameters()]]
    return found


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("function", EQUAL, ids=lambda function: function.__name__)
def test_iterations_that_are_alike(function: Callable[..., Any], optimizer: str) -> None:
    expected = _outcomes(function, lambda one: one, optimizer)
    same(_outcomes(function, to_static, optimizer), expected, tolerance=1e-6)


def test_a_body_that_grows_is_given_up_early(monkeypatch: pytest.MonkeyPatch) -> None:
    """What Adam makes in its first step is one of several in each later attempt, until the first iteration is apart."""
    lengths: list[int] = []
    settled = while_loop._Attempt.stable

    def stable(attempt: Any, *args: Any) -> Any:
        lengths.append(sum(1 for _ in attempt.path.scope.block.walk()))
        return settled(attempt, *args)

    monkeypatch.setattr(while_loop._Attempt, "stable", stable)
    to_static(made_inside)(torch.tensor([1.0, 2.0, -3.0]), None, OPTIMIZERS["Adam"])
    assert len(lengths) < 12 and max(lengths) < 3 * lengths[0], lengths


@pytest.mark.parametrize("optimizer", [
    pytest.param(name, marks=[pytest.mark.slow] if "Adam" in name else []) for name in OPTIMIZERS])
@pytest.mark.parametrize("function", OTHERS, ids=lambda function: function.__name__)
def test_iterations_that_reach_other_leaves(function: Callable[..., Any], optimizer: str) -> None:
    try:
        got = _outcomes(function, to_static, optimizer)
    except Dy2StaticError as error:
        assert error.code in ("D2S213", "D2S222", "D2S253"), error
        return
    same(got, _outcomes(function, lambda one: one, optimizer), tolerance=1e-6)


@pytest.mark.parametrize("function", BY_HAND, ids=lambda function: function.__name__)
def test_later_iterations_that_reach_more(function: Callable[..., Any]) -> None:
    """What is not reached in the first iteration is no constant of the loop."""
    try:
        got = _outcomes(function, to_static, "SGD")
    except Dy2StaticError as error:
        assert error.code == "D2S213", error
        return
    same(got, _outcomes(function, lambda one: one, "SGD"), tolerance=1e-6)
