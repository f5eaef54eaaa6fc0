"""Functions that make a module and train it, from a file: what they give is eager's, for data of any size."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import dy2static
from dy2static import to_static
from dy2static.errors import Dy2StaticError
from tests.oracle import check, check_saved

OPTIMIZERS: dict[str, Callable[[Any], torch.optim.Optimizer]] = {
    "SGD": lambda parameters: torch.optim.SGD(parameters, lr=0.1),
    "momentum": lambda parameters: torch.optim.SGD(parameters, lr=0.05, momentum=0.9),
    "Adam": lambda parameters: torch.optim.Adam(parameters, lr=0.05),
}


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))


def step(model, optimizer, x, y):
    optimizer.zero_grad()
    loss = ((model(x) - y) ** 2).mean()
    loss.backward()
    optimizer.step()
    return loss


def some_steps(optimizer, x, y):
    model = network()
    opt = optimizer(model.parameters())
    losses = [step(model, opt, x, y).item() for _ in range(3)]
    return losses, model(x).detach()


def early_stopping(optimizer, x, y):
    model = network()
    opt = optimizer(model.parameters())
    best, bad, state = float("inf"), 0, None
    for _ in range(5):
        loss = step(model, opt, x, y)
        if loss.item() < best:
            best, bad = loss.item(), 0
            state = copy.deepcopy(model.state_dict())
        else:
            bad += 1
            if bad >= 2:
                break
    model.load_state_dict(state)
    return model(x), best


def until_small(optimizer, x, y):
    model = network()
    opt = optimizer(model.parameters())
    steps = 0
    for _ in range(4):
        steps += 1
        if step(model, opt, x, y).item() < 0.5:
            break
    return steps, {name: one.clone() for name, one in model.state_dict().items()}


def clipped(optimizer, x, y):
    model = network()
    opt = optimizer(model.parameters())
    norms = []
    for part, aim in zip(x.split(2), y.split(2)):
        opt.zero_grad()
        ((model(part) - aim) ** 2).mean().backward()
        norms.append(nn.utils.clip_grad_norm_(model.parameters(), 0.5))
        opt.step()
    return norms, [one.detach() for one in model.parameters()]


PROGRAMS = (some_steps, early_stopping, until_small, clipped)


def calls() -> list[Any]:
    torch.manual_seed(3)
    return [(torch.randn(4, 3) * scale, torch.randn(4, 1)) for scale in (1.0, 3.0, 0.2)]


@pytest.mark.sample(6)
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_from_a_file(program: Any, optimizer: str, tmp_path: Path) -> None:
    def f(x, y):
        return program(make, x, y)

    make = OPTIMIZERS[optimizer]
    check_saved(f, check(f, *calls()), tmp_path / "f", *calls())


def test_data_that_needs_a_gradient(tmp_path: Path) -> None:
    """Eager's backward leaves it one; a file does not, and says so."""
    def f(x, y):
        return some_steps(OPTIMIZERS["SGD"], x, y)

    (x, y), *_ = calls()
    static = to_static(f)
    static(x, y)
    loaded = dy2static.load(dy2static.save(static, tmp_path / "f"))
    with pytest.raises(Dy2StaticError) as caught:
        loaded(x.requires_grad_(), y)
    assert caught.value.location is not None


def test_parameters_from_outside_are_refused(tmp_path: Path) -> None:
    model = network()

    def f(x, y):
        return step(model, torch.optim.SGD(model.parameters(), lr=0.1), x, y).item()

    static = to_static(f)
    static(*calls()[0])
    with pytest.raises(Dy2StaticError) as caught:
        dy2static.save(static, tmp_path / "f")
    assert caught.value.code == "D2S520"
