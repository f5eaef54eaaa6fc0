"""Gradients of gradients through every operator: PyTorch has other formulas for some where they have a history."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from dy2static import to_static
from runtime import torch_internals
from runtime.errors import Dy2StaticError, ProgramError
from runtime.ops import aten
from runtime.storage.allowed import allowed_operators
from tests.end_to_end.operator_calls import UNSAFE, call_of
from tests.oracle import same

_NOT_TRIED = ("random", "dropout", "rrelu", "bernoulli", "normal", "multinomial", "poisson", "binomial", "rand")


def names() -> list[str]:
    """The operators that give tensors anew, and have a derivative or are made of such that do."""
    found = []
    for name in sorted(allowed_operators()):
        try:
            overload = aten.resolve(name)
        except ProgramError:  # of another version of torch
            continue
        mutable = overload._schema.is_mutable or name.split(".")[1].endswith(("_backward", "_copy"))
        if name in UNSAFE or mutable or any(word in name for word in _NOT_TRIED):
            continue
        if torch_internals.is_composite(overload) or torch._C._dispatch_has_kernel(
                overload.name()) and torch._C._dispatch_has_kernel_for_dispatch_key(overload.name(), "AutogradCPU"):
            found.append(name)
    return found


def leaves_of(value: Any) -> list[torch.Tensor]:
    if isinstance(value, (list, tuple)):
        return [leaf for one in value for leaf in leaves_of(one)]
    return [value] if isinstance(value, torch.Tensor) and value.requires_grad else []


def with_leaves(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)(map(with_leaves, value))
    if isinstance(value, torch.Tensor) and value.is_floating_point():
        return value.detach().to(torch.float64).requires_grad_()
    return value


def total(results: Any) -> torch.Tensor:
    parts = [one for one in (results if isinstance(results, (list, tuple)) else [results])
             if isinstance(one, torch.Tensor) and one.is_floating_point() and one.requires_grad]  # fmt: skip
    return sum(((one * one).sum() + one.sum() for one in parts), torch.zeros((), dtype=torch.float64))


def penalty(loss: torch.Tensor, leaves: list[torch.Tensor], times: int) -> torch.Tensor:
    for _ in range(times):
        found = torch.autograd.grad(loss, leaves, create_graph=True, allow_unused=True)
        loss = total([one for one in found if one is not None])
    return loss


def gradients(call: Callable[..., Any], args: Any, inside: bool, times: int) -> Any:
    """The gradients of what is made of gradients; ``inside``: in ``call``."""
    args = with_leaves(args)
    leaves = leaves_of(args)
    loss = call(args, leaves) if inside else penalty(total(call(args)), leaves, times)
    return torch.autograd.grad(loss, leaves, allow_unused=True) if loss.requires_grad else loss


@pytest.mark.filterwarnings("ignore")
@pytest.mark.sample(120)
@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("inside", [True, False], ids=["inside", "outside"])
@pytest.mark.parametrize("on_a_path", [False, True], ids=["straight", "on a path"])
@pytest.mark.parametrize("name", names())
def test_gradients_of_gradients(name: str, on_a_path: bool, inside: bool, times: int) -> None:
    """Where eager has them: as eager's, or refused by name."""
    overload, given = aten.resolve(name), call_of(name)
    if given is None:
        pytest.skip("no arguments were found")

    def result(args: Any) -> Any:
        if not on_a_path:
            return overload(*args)
        made = None
        if leaves_of(args)[0].sum() > -100:
            made = overload(*args)
        return made

    def call(args: Any, leaves: Any = None) -> Any:
        return penalty(total(result(args)), leaves, times) if inside else result(args)

    try:
        expected = gradients(call, given, inside, times)
    except (RuntimeError, IndexError, NotImplementedError, TypeError, ValueError) as error:
        pytest.skip(f"eager: {error}")
    try:
        found = gradients(to_static(call), given, inside, times)
    except Dy2StaticError as error:
        assert error.code in ("D2S213", "D2S231", "D2S235"), error
        return
    same(found, expected, tolerance=1e-6)


FORMULAS = {
    "group_norm": lambda x: torch.nn.functional.group_norm(x, 2), "silu": torch.nn.functional.silu,
    "mish": torch.nn.functional.mish, "logit": lambda x: torch.logit(x, 1e-3), "gelu": torch.nn.functional.gelu,
    "rms_norm": lambda x: torch.nn.functional.rms_norm(x, (3,)),
    "weight_norm": lambda x: torch._weight_norm(x, x[:, :1, :1] * 2, 0),
}  # fmt: skip
"""Those with another formula, and others."""


@pytest.mark.parametrize("form", ["straight", "on a path", "in a loop"])
@pytest.mark.parametrize("name", FORMULAS)
def test_formulas_that_can_be_differentiated_again(name: str, form: str) -> None:
    """A gradient penalty."""

    def f(x: torch.Tensor, w: torch.Tensor) -> Any:
        y = x * w
        if form == "straight":
            y = FORMULAS[name](y)
        elif form == "on a path":
            if x.sum() > 0:
                y = FORMULAS[name](y)
        else:
            n = x.sum() * 0
            while n < 2:
                y = FORMULAS[name](y) * 0.5
                n = n + 1
        (g,) = torch.autograd.grad(y.square().sum(), x, create_graph=True)
        return g.square().sum() + y.sum()

    found = []
    for call in (f, to_static(f)):
        x = torch.rand(2, 4, 3, generator=torch.Generator().manual_seed(0)).requires_grad_()
        w = torch.full((4, 3), 0.7).requires_grad_()
        loss = call(x, w)
        loss.backward()
        found.append((loss.detach(), x.grad, w.grad))
    same(found[1], found[0], tolerance=1e-4)
