"""``torch.amp.GradScaler`` inside converted training steps: scales, skipped steps and states are eager's to the bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn, optim
from torch.amp import GradScaler
from torch.optim import Optimizer

from dy2static import to_static
from tests.end_to_end.training_programs import X, Y, loops, model, seen
from tests.oracle import Comparison

Step = Callable[[nn.Module, Optimizer, GradScaler, Tensor, Tensor], Any]
CALLS = 5


def under_autocast(net: Any, opt: Any, scaler: Any, x: Tensor, y: Tensor) -> Any:
    opt.zero_grad()
    with torch.autocast("cpu", torch.bfloat16):
        loss = F.mse_loss(net(x), y)
    scaler.scale(loss).backward()
    scaler.step(opt)
    scaler.update()
    return loss.detach()


def clipped(net: Any, opt: Any, scaler: Any, x: Tensor, y: Tensor) -> Any:
    opt.zero_grad()
    scaler.scale(F.mse_loss(net(x), y)).backward()
    scaler.unscale_(opt)
    norm = nn.utils.clip_grad_norm_(net.parameters(), 0.1)
    scaler.step(opt)
    scaler.update()
    return norm, scaler.get_scale()


def in_a_loop(net: Any, opt: Any, scaler: Any, x: Tensor, y: Tensor) -> Any:
    for _ in range(8):
        opt.zero_grad()
        scaler.scale(F.mse_loss(net(x), y)).backward()
        scaler.step(opt)
        scaler.update()
    return scaler.get_scale()


def on_a_path(net: Any, opt: Any, scaler: Any, x: Tensor, y: Tensor) -> Any:
    opt.zero_grad()
    loss = F.mse_loss(net(x), y)
    if loss > 0.3:
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
    return loss.detach()


def accumulated(net: Any, opt: Any, scaler: Any, x: Tensor, y: Tensor) -> Any:
    for part in range(2):
        scaler.scale(F.mse_loss(net(x * part), y) / 2).backward()
    scaler.step(opt)
    scaler.update()
    opt.zero_grad()


def several_losses(net: Any, opt: Any, scaler: Any, x: Tensor, y: Tensor) -> Any:
    opt.zero_grad()
    first, second = scaler.scale([F.mse_loss(net(x), y), F.mse_loss(net(x), y * 2)])
    (first + second).backward()
    scaler.step(opt)
    scaler.update()
    return scaler.is_enabled(), scaler.state_dict()


def another_scale(net: Any, opt: Any, scaler: Any, x: Tensor, y: Tensor) -> Any:
    opt.zero_grad()
    scaler.scale(F.mse_loss(net(x), y)).backward()
    scaler.step(opt)
    scaler.update(512.0)


def made_inside(net: Any, opt: Any, scaler: Any, x: Tensor, y: Tensor) -> Any:
    mine = GradScaler("cpu", init_scale=16.0)
    opt.zero_grad()
    mine.scale(F.mse_loss(net(x), y)).backward()
    mine.step(opt)
    mine.update()
    return mine.get_scale()


STEPS = [under_autocast, clipped, in_a_loop, on_a_path, accumulated, several_losses, another_scale, made_inside]
OPTIMIZERS: dict[str, Callable[[Any], Optimizer]] = {
    "sgd": lambda parameters: optim.SGD(parameters, lr=0.1),
    "adam": lambda parameters: optim.Adam(parameters, lr=0.01),
    "adam, one kernel": lambda parameters: optim.Adam(parameters, lr=0.01, fused=True),
}


def scaler_of(enabled: bool = True) -> GradScaler:
    return GradScaler("cpu", init_scale=2.0**10, growth_interval=2, enabled=enabled)


def trained(step: Step, make: Callable[[Any], Optimizer], overflow: bool, enabled: bool) -> list[Any]:
    """What each call leaves behind; in two of them gradients may overflow, and the scaler is told to change sooner."""
    net = model()
    opt, scaler = make(net.parameters()), scaler_of(enabled)
    found = []
    for number in range(CALLS):
        if number == 3 and enabled:
            scaler.set_growth_factor(3.0)
            scaler.set_growth_interval(1)
        x = X * (float("inf") if overflow and number in (0, 2) else 1)
        result = step(net, opt, scaler, x, Y)
        kept = seen(net, opt, result)
        del kept["tensors"]
        found.append((kept, scaler.state_dict(), [hasattr(opt, name) for name in ("grad_scale", "found_inf")]))
        found[-1] = _copied(found[-1])
    return found


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copied(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_copied(one) for one in value]
    return value.detach().clone() if isinstance(value, Tensor) else value


@pytest.mark.sample(8)
@pytest.mark.parametrize("enabled", [True, False])
@pytest.mark.parametrize("overflow", [False, True])
@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)
def test_as_in_eager(step: Step, name: str, overflow: bool, enabled: bool) -> None:
    static = to_static(step)
    Comparison().compare(trained(static, OPTIMIZERS[name], overflow, enabled),
                         trained(step, OPTIMIZERS[name], overflow, enabled), step.__name__)  # fmt: skip
    assert len(static.programs) <= CALLS


def test_steps_are_one_loop() -> None:
    net = model()
    static = to_static(in_a_loop)
    opt, scaler = OPTIMIZERS["sgd"](net.parameters()), scaler_of()
    for _ in range(2):
        static(net, opt, scaler, X, Y)
    assert loops(static)[-1] == 1


def _stepped_twice(net: Any, opt: Any, scaler: Any, x: Tensor, y: Tensor) -> Any:
    scaler.scale(F.mse_loss(net(x), y)).backward()
    scaler.step(opt)
    scaler.step(opt)


def _never_scaled(net: Any, opt: Any, scaler: Any, x: Tensor, y: Tensor) -> Any:
    F.mse_loss(net(x), y).backward()
    scaler.step(opt)


def _unscaled_twice(net: Any, opt: Any, scaler: Any, x: Tensor, y: Tensor) -> Any:
    scaler.scale(F.mse_loss(net(x), y)).backward()
    scaler.unscale_(opt)
    scaler.unscale_(opt)


@pytest.mark.parametrize("step", [_stepped_twice, _never_scaled, _unscaled_twice], ids=lambda step: step.__name__)
def test_mistakes_are_told_as_in_eager(step: Step) -> None:
    said = []
    for function in (step, to_static(step)):
        net = model()
        with pytest.raises((RuntimeError, AssertionError)) as caught:
            function(net, OPTIMIZERS["sgd"](net.parameters()), scaler_of(), X, Y)
        said.append((type(caught.value), str(caught.value)))
    assert said[0] == said[1]
