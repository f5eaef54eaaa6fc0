"""Hooks on results of one node: one that no gradient reaches is not called, as in eager."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.autograd.graph import register_multi_grad_hook

import dy2static
from dy2static import to_static
from tests.oracle import same


def of_a_branch(x: torch.Tensor) -> Any:
    if x.sum() > 5:
        y = x.sin()
    else:
        y = x + 1
    return y, x * 3


def of_several_branches(x: torch.Tensor) -> Any:
    y, z = (x.sin(), x.exp()) if x.sum() > 5 else (x + 1, x * 2)
    if z.sum() > 3:
        z = z * x
    return y, z


def of_a_while_loop(x: torch.Tensor) -> Any:
    y, z = x * 1, x * 2
    while z.sum() < 100:
        y, z = y.sin(), z * 2
    return y, z


def of_a_for_loop(x: torch.Tensor) -> Any:
    y, z = x * 1, x * 2
    for i in range(len(x)):
        y, z = y.sin(), z * x[i]
    return y, z


def of_a_list(x: torch.Tensor) -> Any:
    rows = []
    for i in range(int(x.sum().item())):
        rows.append(x * (i + 1))
    return rows[0], rows[-1]


def of_two_nodes(x: torch.Tensor) -> Any:
    h = x.exp()
    if x.sum() > 5:
        y, z = h * 2, x.sin()
    else:
        y, z = h.sin(), x + 1
    return h, z, y


def straight(x: torch.Tensor) -> Any:
    return x.sin(), x * 3


FAMILY = [
    of_a_branch, of_several_branches, of_a_while_loop, of_a_for_loop, of_a_list, of_two_nodes, straight,
]  # fmt: skip


def hooked(results: Any, log: list[Any]) -> None:
    y, z = results[:2]
    y.register_hook(lambda grad: grad * 0.5)
    y.register_hook(lambda grad: log.append(grad.clone()))
    z.register_hook(lambda grad: grad * 3)
    y.register_hook(lambda grad: grad * 7).remove()


def several(results: Any, log: list[Any]) -> None:
    register_multi_grad_hook(results[:2], lambda grads: log.append(list(grads)))


def any_of_them(results: Any, log: list[Any]) -> None:
    register_multi_grad_hook(results[:2], lambda grad: log.append(grad is None), mode="any")


def written(results: Any, log: list[Any]) -> None:
    y = results[0]
    y.register_hook(lambda grad: log.append(grad.clone()))
    y.mul_(4)
    y.register_hook(lambda grad: grad * 0.5)


def retained(results: Any, log: list[Any]) -> None:
    results[0].retain_grad()
    results[0].register_hook(lambda grad: grad * 0.5)
    log.append(results[0])


def mistaken(results: Any, log: list[Any]) -> None:
    results[0].register_hook(lambda grad: 3)


def seen(function: Callable[..., Any], hang: Callable[..., None], values: list[float]) -> list[Any]:
    x = torch.tensor(values).requires_grad_()
    results, log = function(x), list[Any]()
    hang(results, log)
    try:
        results[1].sum().backward(retain_graph=True)
        first = None if x.grad is None else x.grad.clone()
        (results[0].sum() + results[-1].square().sum()).backward()
    except Exception as error:
        return [type(error), str(error).partition(":")[0]]
    return [first, x.grad, *(one.grad if isinstance(one, torch.Tensor) and one.retains_grad else one for one in log)]


@pytest.mark.parametrize("loaded", [False, True])
@pytest.mark.parametrize("hang", [hooked, several, any_of_them, written, retained, mistaken])
@pytest.mark.parametrize("function", FAMILY)
def test_hooks_hear_of_gradients_only(
    function: Callable[..., Any], hang: Callable[..., None], loaded: bool, tmp_path: Path
) -> None:
    road: Any = to_static(function)
    if loaded:
        dy2static.save(road, tmp_path / "f", input_spec=[torch.tensor([1.0, 2.0, 3.0]).requires_grad_()])
        road = dy2static.load(tmp_path / "f")
    for values in ([1.0, 2.0, 3.0], [1.0, 0.5, 1.0]):
        same(seen(road, hang, values), seen(function, hang, values), tolerance=1e-6)
