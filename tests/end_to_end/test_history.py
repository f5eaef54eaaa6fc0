"""What autograd may not see: writes under ``no_grad`` and through ``detach()`` keep the history that there was."""

from __future__ import annotations

import pytest
import torch

from dy2static import load, save, to_static
from dy2static.input_spec import InputSpec
from tests.oracle import check, check_module


def argument_under_no_grad(x, n):
    with torch.no_grad():
        x += 1
    if n.sum() > 2:
        x = x * 2
    return x * 1


def argument_through_detach(x, n):
    y = x.detach()
    y += n.sum()
    return x * y


def local_under_no_grad(x, n):
    y = x * 1
    with torch.no_grad():
        y += 1
    if n.sum() > 2:
        y = y * 2
    return y * x


def item_and_loop_under_no_grad(x, n):
    y = x * 1
    z = x * 3
    with torch.no_grad():
        y[0] = z[1]
        i = 0
        while i < n.sum():
            y.mul_(z)
            i += 1
    return y * x


def alias_under_no_grad(x, n):
    y = x * 1
    with torch.no_grad():
        z = y if n.sum() > 2 else x * 3
        z += 1
    return y * x, z


def detached_argument_on_one_path(x, n):
    x = x.detach()
    y = x * 2
    z = x if n.sum() > 2 else y
    z += 1
    return x, y, z


def detached_argument_given_back(x, n):
    x = x.detach()
    return x if n.sum() > 2 else x * 2


def one_of_three_names(x, n):
    a, b, c = x.detach(), x.data, (x * 2).detach()
    z = a if n.sum() > 2 else b if n.sum() > 1 else c
    z.mul_(3)
    return z, a, b, c


def name_of_a_later_iteration(x, n):
    y = (x * 1).detach()
    z = y
    for i in range(3):
        if n.sum() > i + 1:
            z = (x * i).detach()
        z += 1
    y *= 2
    return {"z": z, "y": y}, [z, y]


PROGRAMS = (
    one_of_three_names,
    name_of_a_later_iteration,
    argument_under_no_grad,
    argument_through_detach,
    local_under_no_grad,
    item_and_loop_under_no_grad,
    alias_under_no_grad,
    detached_argument_on_one_path,
    detached_argument_given_back,
)


def calls():
    for seed in range(5):
        x = torch.randn(3, generator=torch.Generator().manual_seed(seed)).requires_grad_()
        yield x, torch.tensor([float(seed)])


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_history(program):
    check(program, *calls(), tolerance=1e-6, none_is_zero=True)


class Shrinks(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(3))
        self.register_buffer("low", torch.zeros(3))
        self.register_buffer("high", torch.ones(3))

    def forward(self, x, n):
        with torch.no_grad():
            self.weight.mul_(0.9)
            if n.sum() > 2:
                self.weight.clamp_(max=0.5)
        chosen = self.high if n.sum() > 1 else self.low
        chosen += x.detach()
        return self.weight * x + chosen


def test_parameters_and_buffers():
    check_module(Shrinks, *calls(), tolerance=1e-6)


def test_loaded(tmp_path):
    eager, module = Shrinks(), Shrinks()
    save(to_static(module), tmp_path / "shrinks.d2s", input_spec=[InputSpec([3], "float32"), InputSpec([1], "float32")])
    loaded = load(tmp_path / "shrinks.d2s")
    for x, n in calls():
        torch.testing.assert_close(loaded(x, n), eager(x, n))
    for name, value in eager.state_dict().items():
        torch.testing.assert_close(loaded.state_dict()[name], value)
