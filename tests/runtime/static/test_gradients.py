"""Gradients by hand: ``append_backward`` and ``gradients`` on tensors of static-graph mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import runtime
from runtime import static
from runtime.errors import ProgramError
from runtime.static import optimizer

X = torch.arange(12.0).reshape(3, 4) / 12


def network(x: torch.Tensor) -> tuple[nn.Module, torch.Tensor, torch.Tensor]:
    model = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 2))
    hidden = model[0](x)
    return model, hidden, model[2](model[1](hidden)).square().mean()


def run(main: static.Program, startup: static.Program, fetched: Any) -> list[Any]:
    scope, executor = static.Scope(), static.Executor()
    torch.manual_seed(0)
    executor.run(startup, scope=scope)
    return executor.run(main, feed={"x": X}, fetch_list=fetched, scope=scope, return_numpy=False)


def eager() -> tuple[nn.Module, torch.Tensor, torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    x = X.clone().requires_grad_()
    return (*network(x), x)


@pytest.mark.parametrize("function", [static.append_backward, runtime.append_backward])
@pytest.mark.parametrize("outside", [False, True])
def test_pairs_of_a_parameter_and_its_gradient(function: Callable[..., Any], outside: bool) -> None:
    model, _, loss, _ = eager()
    loss.backward()
    main, startup = static.Program(), static.Program()
    torch.manual_seed(0)
    made = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 2)) if outside else None
    with static.program_guard(main, startup):
        x = static.data("x", [None, 4])
        if made is None:
            made, _, fetched = network(x)
        else:
            fetched = made(x).square().mean()
        pairs = function(fetched)
    assert [main.graph.name_of(one) for one, _ in pairs] == [
        "linear_0.weight", "linear_0.bias", "linear_1.weight", "linear_1.bias"]
    found = run(main, startup, [grad for _, grad in pairs])
    torch.testing.assert_close(found, [one.grad for one in model.parameters()])


def test_chosen_parameters_and_values_without_gradient() -> None:
    main, startup = static.Program(), static.Program()
    with static.program_guard(main, startup):
        model, hidden, loss = network(static.data("x", [None, 4]))
        by_name = static.append_backward(loss, ["linear_0.bias"])
        by_tensor = static.append_backward(loss, [model[0].bias, model[2].bias], program=main)
        stopped = static.append_backward(loss, no_grad_set=[hidden])
    names = [[main.graph.name_of(one) for one, _ in pairs] for pairs in (by_name, by_tensor, stopped)]
    assert names == [["linear_0.bias"], ["linear_0.bias", "linear_1.bias"], ["linear_1.weight", "linear_1.bias"]]
    found = run(main, startup, [by_name[0][1], by_tensor[0][1], by_tensor[1][1], stopped[1][1]])
    model, _, loss, _ = eager()
    loss.backward()
    first, second = model[0].bias.grad, model[2].bias.grad
    torch.testing.assert_close(found, [first, first, second, second])


@pytest.mark.parametrize("function", [static.gradients, runtime.gradients])
def test_gradients_of_anything_by_anything(function: Callable[..., Any]) -> None:
    main, startup = static.Program(), static.Program()
    with static.program_guard(main, startup):
        x = static.data("x", [None, 4])
        model, hidden, loss = network(x)
        made = function([loss], [x, hidden, model[0].weight])
        alone = function(loss, x)
        weighted = function([hidden, loss], [x], [hidden * 2, None])
        nothing = function([hidden], [model[2].weight])
        second = function(made[0].square().sum(), x)
        blocked = function(loss, [x, hidden], no_grad_set=[hidden])
    assert nothing == [None] and blocked[0] is None
    found = run(main, startup, [*made, *alone, *weighted, *second])
    model, hidden, loss, x_now = eager()
    expected = [*torch.autograd.grad(loss, [x_now, hidden, model[0].weight], create_graph=True)]
    expected += [expected[0]]
    expected += torch.autograd.grad([hidden, loss], [x_now], [hidden.detach() * 2, None], retain_graph=True)
    expected += torch.autograd.grad(expected[0].square().sum(), [x_now])
    torch.testing.assert_close(found, [one.detach() for one in expected])


def test_an_update_by_hand() -> None:
    main, startup = static.Program(), static.Program()
    with static.program_guard(main, startup):
        model, _, loss = network(static.data("x", [None, 4]))
        pairs = static.append_backward(loss)
        with torch.no_grad():
            for parameter, grad in pairs:
                parameter.sub_(grad * 0.5)
    model, _, expected, _ = eager()
    step = torch.optim.SGD(model.parameters(), 0.5)
    scope, executor = static.Scope(), static.Executor()
    torch.manual_seed(0)
    executor.run(startup, scope=scope)
    for _ in range(3):
        (found,) = executor.run(main, feed={"x": X}, fetch_list=[loss], scope=scope, return_numpy=False)
        step.zero_grad()
        expected = model(X).square().mean()
        torch.testing.assert_close(found, expected.detach())
        expected.backward()
        step.step()


WRONG: dict[str, tuple[Callable[[torch.Tensor], Any], str]] = {
    "another tensor": (lambda x: static.append_backward(X), "no tensor of the main Program"),
    "a number": (lambda x: static.append_backward(3.0), "no tensor of the main Program"),  # type: ignore[arg-type]
    "several elements": (lambda x: static.append_backward(static.fc(x, 2)), "one element"),
    "a name": (lambda x: static.append_backward(static.fc(x, 1).sum(), ["w"]), "'w'"),
    "another Program": (
        lambda x: static.append_backward(static.fc(x, 1).sum(), program=static.Program()), "another than that"),
    "gradients of another tensor": (lambda x: static.gradients(X, x), "no tensor of the main Program"),
    "gradients by another": (lambda x: static.gradients(x.sum(), X), "no variable of the Program"),
    "nothing": (lambda x: static.gradients([], [x]), "nothing that gradients"),
    "other numbers": (lambda x: static.gradients([x.sum()], [x], [x.sum(), x.sum()]), "2 gradients of targets"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_is_refused(name: str) -> None:
    body, message = WRONG[name]
    with pytest.raises(ProgramError, match=message), static.program_guard(static.Program(), static.Program()):
        body(static.data("x", [None, 4]))


def test_outside_of_a_guard_and_without_a_program() -> None:
    main, startup = static.Program(), static.Program()
    with static.program_guard(main, startup):
        loss = static.fc(static.data("x", [None, 4]), 1).sum()
        var = main.graph.variable(loss)
        optimizer.SGD(0.1).minimize(loss)
    with pytest.raises(ProgramError, match="program_guard"):
        static.append_backward(loss)
    with pytest.raises(ProgramError, match="which Program"):
        static.append_backward(var)
