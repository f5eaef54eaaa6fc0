"""Steps of optimizers and the norm of all gradients, as kernels that run on the CPU, against PyTorch's own."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch

from runtime.kernels import launch, many
from tests.oracle import same
from tests.runtime.kernels.host import Host
from tests.runtime.kernels.programs import randoms

SHAPES = [(3, 5), (1,), (), (0, 2), (700,), (40, 9)]


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tensors are cut; a block has more than one part."""
    monkeypatch.setattr(many, "PART", 64)
    monkeypatch.setattr(launch, "MOST_BLOCKS", 5)


def _pair(dtype: torch.dtype) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    mine = [one.requires_grad_() for one in randoms(dtype, *SHAPES)]
    return mine, [one.detach().clone().requires_grad_() for one in mine]


_SGD: list[dict[str, Any]] = [
    {"lr": 0.1}, {"lr": 0.1, "weight_decay": 0.01}, {"lr": 0.1, "momentum": 0.9},
    {"lr": 0.1, "momentum": 0.9, "dampening": 0.3, "weight_decay": 0.1}, {"lr": 0.1, "momentum": 0.9, "nesterov": True},
    {"lr": 0.1, "momentum": 0.5, "maximize": True},
]  # fmt: skip


@pytest.mark.parametrize("options", _SGD)
def test_sgd(host: Host, options: dict[str, Any]) -> None:
    mine, theirs = _pair(torch.float32)
    optimizer = torch.optim.SGD(theirs, **options)
    buffers = [torch.full_like(one, float("nan")) for one in mine] if options.get("momentum") else []
    for step in range(3):
        gradients = randoms(torch.float32, *SHAPES)
        for one, gradient in zip(theirs, gradients):
            one.grad = gradient.clone() + step
        optimizer.step()
        many.sgd_step(mine, [one + step for one in gradients], buffers, **options, first=step == 0)
        same(mine, theirs, tolerance=1e-6)
    assert [name for name, _, _ in host.launches] == ["sgd"] * 3


@pytest.mark.parametrize("decoupled", [False, True])
@pytest.mark.parametrize("options", [
    {}, {"lr": 0.1, "weight_decay": 0.1}, {"betas": (0.5, 0.7), "eps": 1e-3}, {"maximize": True, "weight_decay": 0.01},
])  # fmt: skip
def test_adam(host: Host, decoupled: bool, options: dict[str, Any]) -> None:
    mine, theirs = _pair(torch.float64)
    optimizer = (torch.optim.AdamW if decoupled else torch.optim.Adam)(theirs, **{"weight_decay": 0.0, **options})
    means, squares = ([torch.zeros_like(one) for one in mine] for _ in range(2))
    for step in range(3):
        gradients = [one - step for one in randoms(torch.float64, *SHAPES)]
        for one, gradient in zip(theirs, gradients):
            one.grad = gradient.clone()
        optimizer.step()
        many.adam_step(mine, gradients, means, squares, step=step + 1, decoupled=decoupled, **options)
        same(mine, theirs, tolerance=1e-12)
    assert [name for name, _, _ in host.launches] == ["adam"] * 3


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_halves_are_rounded_once(host: Host, dtype: torch.dtype) -> None:
    """A step is the step in float32, rounded."""
    mine, gradients, means = (randoms(dtype, (300,), (7,)) for _ in range(3))
    squares = [one.abs() for one in randoms(dtype, (300,), (7,))]
    exact = [[one.float() for one in tensors] for tensors in (mine, gradients, means, squares)]
    many.adam_step(mine, gradients, means, squares, step=3, lr=0.1, weight_decay=0.1)
    many.adam_step_reference(*exact, step=3, lr=0.1, weight_decay=0.1)
    eps = torch.finfo(dtype).eps
    for tensors, wide in zip((mine, means, squares), (exact[0], exact[2], exact[3])):
        same([one.float() for one in tensors], wide, tolerance=eps)
    mine, gradients, buffers = (randoms(dtype, (300,), (7,)) for _ in range(3))
    exact = [[one.float() for one in tensors] for tensors in (mine, gradients, buffers)]
    many.sgd_step(mine, gradients, buffers, lr=0.1, momentum=0.9)
    many.sgd_step_reference(*exact, lr=0.1, momentum=0.9)
    same([one.float() for one in [*mine, *buffers]], [*exact[0], *exact[2]], tolerance=eps)
    assert len(host.launches) == 2


@pytest.mark.parametrize("most", [0.5, 1e6])
@pytest.mark.parametrize("special", [None, float("inf"), float("nan")])
def test_clip_norm(host: Host, most: float, special: float | None) -> None:
    gradients = randoms(torch.float32, *SHAPES)
    if special is not None:
        gradients[4][3] = special
    parameters = [torch.zeros_like(one, requires_grad=True) for one in gradients]
    for one, gradient in zip(parameters, gradients):
        one.grad = gradient.clone()
    expected = torch.nn.utils.clip_grad_norm_(parameters, most)
    got = many.clip_norm(gradients, most)
    same([got, *gradients], [expected, *[one.grad for one in parameters if one.grad is not None]], tolerance=1e-5)
    assert [name for name, _, _ in host.launches] == ["squares", "whole_norm", "scale"]


def test_autograd_is_told_of_writes(host: Host) -> None:
    """What backward would read and is overwritten is an error, as with PyTorch's optimizers."""
    p = torch.randn(5, requires_grad=True)
    y = (p * p).sum()
    many.sgd_step([p], [torch.ones(5)], [], lr=0.1)
    assert host.launches
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


def test_what_kernels_do_not_take_the_reference_does(host: Host) -> None:
    mixed = [torch.randn(5), torch.randn(5, dtype=torch.float64)]
    gradients = [torch.ones(5), torch.ones(5, dtype=torch.float64)]
    expected = [one - 0.1 for one in mixed]
    many.sgd_step(mixed, gradients, [], lr=0.1)
    same(mixed, expected, tolerance=1e-7)
    turned = [torch.randn(4, 3).t()]
    wanted = copy.deepcopy(turned)
    many.clip_norm(turned, 0.1)
    many.clip_norm_reference(wanted, 0.1)
    same(turned, wanted)
    assert torch.equal(many.clip_norm([], 1.0), torch.tensor(0.0)) and not host.launches
