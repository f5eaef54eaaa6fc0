"""``torch.autograd.functional``, and gradients of gradients of which the first may be unused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.autograd import functional, grad

from dy2static import to_static
from runtime.errors import Dy2StaticError
from tests.oracle import same

WEIGHT = torch.tensor([[1.0, 2.0], [3.0, 4.0]])


def cube(t: torch.Tensor) -> torch.Tensor:
    return (t**3).sum()


def rows(t: torch.Tensor) -> torch.Tensor:
    return WEIGHT @ t.sin()


def two(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return (a * b).sum() + (a**2).sum()


def loop(x: torch.Tensor) -> Any:
    total = x.new_zeros(2, 2)
    for i in range(int(x.abs().sum())):
        total = total + functional.jacobian(rows, x * i)
    return total


ONES = torch.ones(2)
EQUAL: dict[str, Callable[[torch.Tensor], Any]] = {
    "jacobian": lambda x: functional.jacobian(rows, x),
    "jacobian with graph": lambda x: functional.jacobian(rows, x, create_graph=True),
    "jacobian, linear": lambda x: functional.jacobian(lambda t: t * 2, x),
    "jacobian, strict": lambda x: functional.jacobian(rows, x, strict=True),
    "jacobian of two": lambda x: functional.jacobian(lambda a, b: a * b, (x, x + 1)),
    "jacobian of a tuple": lambda x: functional.jacobian(lambda t: (t * 2, t.sum()), x),
    "jacobian of a constant": lambda x: functional.jacobian(lambda t: torch.ones(2), x),
    "jacobian of a branch": lambda x: functional.jacobian(lambda t: t.sin() if t.sum() > 0 else t * t, x),
    "hessian": lambda x: functional.hessian(cube, x),
    "hessian of two": lambda x: functional.hessian(two, (x, x * 2)),
    "hessian, linear": lambda x: functional.hessian(lambda t: t.sum(), x),
    "hessian with graph": lambda x: functional.hessian(cube, x, create_graph=True),
    "hessian, strict": lambda x: functional.hessian(cube, x, strict=True),
    "vjp": lambda x: functional.vjp(rows, x, ONES),
    "vjp with graph": lambda x: functional.vjp(rows, x, ONES, create_graph=True),
    "jvp": lambda x: functional.jvp(rows, x, ONES),
    "jvp, strict": lambda x: functional.jvp(rows, x, ONES, strict=True),
    "vhp": lambda x: functional.vhp(cube, x, ONES),
    "in branches": lambda x: functional.hessian(cube, x) if x.sum() > 0 else functional.jacobian(rows, x),
    "in a loop": loop,
}
REFUSED: dict[str, Callable[[torch.Tensor], Any]] = {
    "hvp": lambda x: functional.hvp(cube, x, ONES),
    "hvp of two": lambda x: functional.hvp(two, (x, x * 2), (ONES, ONES)),
    "vectorized": lambda x: functional.jacobian(rows, x, vectorize=True),
}
XS = (torch.tensor([1.0, 2.0]), torch.tensor([-1.0, -2.0]))


@pytest.mark.parametrize("name", EQUAL)
def test_functional(name: str) -> None:
    static = to_static(EQUAL[name])
    for x in XS:
        same(static(x), EQUAL[name](x), tolerance=1e-5)


@pytest.mark.parametrize("name", REFUSED)
def test_functional_or_a_reason(name: str) -> None:
    """Equal to eager, or refused by a code that says why; not silently something else."""
    static = to_static(REFUSED[name])
    try:
        got = static(XS[0])
    except Dy2StaticError as error:
        assert error.code in ("D2S217", "D2S255"), error
    else:
        same(got, REFUSED[name](XS[0]), tolerance=1e-5)


@pytest.mark.parametrize("second", ["grad", "unused allowed", "backward", "of a square", "two more"])
@pytest.mark.parametrize("first", ["certain", "unused allowed", "materialized"])
def test_a_gradient_of_a_gradient(first: str, second: str) -> None:
    """What may be None is in the history of what is computed of it, where it is a tensor."""
    options = {"certain": {}, "unused allowed": {"allow_unused": True}, "materialized": {"materialize_grads": True}}

    def f(x: torch.Tensor) -> Any:
        x = x.detach().requires_grad_()
        (j,) = grad((x**3).sum(), (x,), create_graph=True, **options[first])
        if second == "backward":
            (j**2).sum().backward()
            return x.grad
        if second == "two more":
            (k,) = grad(j.sum(), (x,), create_graph=True, **options[first])
            return grad((k * j).sum(), x)[0]
        loss = (j * j).sum() if second == "of a square" else j.sum()
        return grad(loss, x, allow_unused=second == "unused allowed")[0]

    static = to_static(f)
    for x in XS:
        same(static(x), f(x), tolerance=1e-5)


class Penalty(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(2, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        (g,) = grad(self.layer(x).tanh().sum(), x, create_graph=True, allow_unused=True)
        loss = (g.norm() - 1) ** 2
        return loss * 2 if loss > 1 else loss


def test_a_gradient_penalty() -> None:
    torch.manual_seed(0)
    eager, found = Penalty(), []
    for function in (eager, to_static(eager)):
        for x in XS:
            eager.zero_grad()
            function(x.clone().requires_grad_()).backward()
            found.append(eager.layer.weight.grad)
    same(found[2:], found[:2], tolerance=1e-5)
