"""A tensor among the arguments that is reached in another way as well is one tensor to the Program, as in eager: what
is written to it, its gradient, its hooks.

Each case calls one converted function with the two being one tensor and with two equal ones, in both orders.
"""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch

from dy2static import to_static


class Box:
    """An object that holds one."""

    def __init__(self, held: Any) -> None:
        self.held = held


GLOBAL: Any = None


class Holder(torch.nn.Module):
    """A module that has one as its parameter."""

    def __init__(self, held: Any) -> None:
        super().__init__()
        self.held = torch.nn.Parameter(torch.zeros(1))
        self._parameters["held"] = held


WAYS: dict[str, tuple[Any, Any]] = {  # what the function is given, and how it comes to the tensor
    "attribute": (Box, lambda way: way.held),
    "module": (Holder, lambda way: way.held),
    "parameters": (Holder, lambda way: next(way.parameters())),
    "optimizer": (lambda one: torch.optim.SGD([one], lr=0.1), lambda way: way.param_groups[0]["params"][0]),
    "list in an object": (lambda one: Box([one, 1]), lambda way: way.held[0]),
    "dict in an object": (lambda one: Box({"a": one}), lambda way: way.held["a"]),
    "global": (lambda one: None, lambda way: GLOBAL),
}


def adds(t: Any, other: Any, way: Any) -> Any:
    return t + other * 2


def is_one(t: Any, other: Any, way: Any) -> Any:
    return t is other, t * 1


def backward(t: Any, other: Any, way: Any) -> Any:
    (t**2).sum().backward()
    return other.grad is None, t.grad is None


def backward_of_the_other(t: Any, other: Any, way: Any) -> Any:
    (other**2).sum().backward()
    return [None if one.grad is None else one.grad * 2 for one in (t, other)]


def of_both(t: Any, other: Any, way: Any) -> Any:
    (t * other).sum().backward()
    return t.grad + 1


def asked(t: Any, other: Any, way: Any) -> Any:
    return torch.autograd.grad((t * other).sum(), [other, t], allow_unused=True)


def step(t: Any, other: Any, way: Any) -> Any:
    optimizer = way if isinstance(way, torch.optim.Optimizer) else torch.optim.SGD([other], lr=0.1)
    loss = (t**2).sum()
    loss.backward()
    optimizer.step()
    return loss


def steps(t: Any, other: Any, way: Any) -> Any:
    optimizer = way if isinstance(way, torch.optim.Optimizer) else torch.optim.SGD([other], lr=0.1)
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = (t**2).sum()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return losses, t * 1


def step_by_hand(t: Any, other: Any, way: Any) -> Any:
    (t**2).sum().backward()
    with torch.no_grad():
        if other.grad is not None:
            other -= 0.1 * other.grad
    return t * 2, other * 2


def written(t: Any, other: Any, way: Any) -> Any:
    with torch.no_grad():
        other.add_(1)
    return t * 2


def written_by_its_name(t: Any, other: Any, way: Any) -> Any:
    with torch.no_grad():
        t.mul_(2)
    return other * 2, t


def hooked(t: Any, other: Any, way: Any) -> Any:
    handle = other.register_hook(lambda grad: grad * 10)
    (t**2).sum().backward()
    handle.remove()
    return t.grad * 1


BODIES = (adds, is_one, backward, backward_of_the_other, of_both, asked, step, steps, step_by_hand, written,
          written_by_its_name, hooked)  # fmt: skip
ORDERS = {"same": (True, True), "same, other": (True, False, True), "other, same": (False, True, False)}


def run(function: Any, way: str, order: tuple[bool, ...], cleared: bool) -> list[Any]:
    global GLOBAL
    make, _ = WAYS[way]
    t, twin = (torch.nn.Parameter(torch.tensor([1.0, 2.0, 3.0])) for _ in range(2))
    found = []
    for same in order:
        GLOBAL = t if same else twin
        try:
            result = function(t, make(GLOBAL))
            found.append((plain(result), plain([t, twin, t.grad, twin.grad])))
        except RuntimeError as error:  # eager's own, of a graph that is used up
            found.append(type(error).__name__)
        if cleared:
            t.grad = twin.grad = None
    return found


def plain(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.detach().round(decimals=4).tolist(), value.requires_grad
    return [plain(one) for one in value] if isinstance(value, (list, tuple)) else value


@pytest.mark.sample(60)
@pytest.mark.parametrize(("body", "way", "order", "where", "cleared"), [
    pytest.param(body, way, order, where, cleared, id=f"{body.__name__}-{way}-{order}-{where}-{cleared}")
    for body, way, order, where, cleared in itertools.product(
        BODIES, WAYS, ORDERS, ("straight", "path", "loop"), (True, False))])  # fmt: skip
def test_is_one_tensor(body: Any, way: str, order: str, where: str, cleared: bool) -> None:
    reach = WAYS[way][1]

    def straight(t: Any, way: Any) -> Any:
        return body(t, reach(way), way)

    def path(t: Any, way: Any) -> Any:
        if t.sum() > 0:
            return body(t, reach(way), way)
        return None

    def loop(t: Any, way: Any) -> Any:
        result = None
        for _ in range(int(t.detach().abs().max() > 0) + 1):
            result = body(t, reach(way), way)
        return result

    function = {"straight": straight, "path": path, "loop": loop}[where]
    static = to_static(function)
    expected = run(function, way, ORDERS[order], cleared)
    assert run(static, way, ORDERS[order], cleared) == expected
