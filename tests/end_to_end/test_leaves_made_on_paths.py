"""``requires_grad_()`` on a path, or in a loop, of a tensor that is older: other paths and what comes later do not see
it by mistake."""

from __future__ import annotations

import pytest
import torch

from dy2static import to_static
from dy2static.errors import TraceError
from tests.oracle import check


def asked_on_the_other_path(x):
    d = torch.zeros(3)
    if x.sum() > 0:
        d.requires_grad_()
        known = True
    else:
        known = d.requires_grad
    return known


def set_on_the_other_path(x):
    d = torch.zeros(3)
    if x.sum() > 0:
        d.requires_grad = True
        g = torch.autograd.grad((d * x.detach()).sum(), d)[0]
    else:
        d.requires_grad = False
        g = d * 2
    return g


def none_any_more_on_the_other_path(x):
    d = torch.zeros(3, requires_grad=True)
    if x.sum() > 0:
        d.requires_grad_(False)
        known = False
    else:
        known = d.requires_grad
    return known


def attacked(x):
    d = torch.zeros_like(x)
    for _ in range(int((x > 0).sum()) + 1):
        d.requires_grad_()
        (g,) = torch.autograd.grad(((x.detach() + d) ** 2).sum(), d)
        d = (d.detach() + 0.1 * g.sign()).clamp(-0.2, 0.2)
    return d


def attacked_by_backward(x):
    adversarial = x.detach() + 0.1
    while adversarial.sum() < 5:
        adversarial.requires_grad_()
        adversarial.pow(2).sum().backward()
        adversarial = adversarial.detach() + adversarial.grad.abs() + 1
    return adversarial


def made_in_the_loop(x):
    total = 0.0
    for _ in range(int((x > 0).sum())):
        d = x.detach() * 2
        d.requires_grad_()
        total = total + torch.autograd.grad((d**3).sum(), d)[0].sum()
    return total


def never_asked_again(x):
    d = torch.ones(3)
    if x.sum() > 0:
        d.requires_grad_()
        y = torch.autograd.grad((d * 2).sum(), d)[0]
    else:
        y = x.detach()
    return y


WORK = [asked_on_the_other_path, set_on_the_other_path, none_any_more_on_the_other_path, attacked, attacked_by_backward,
        made_in_the_loop, never_asked_again]  # fmt: skip


@pytest.mark.parametrize("needed", [True, False])
@pytest.mark.parametrize("f", WORK)
def test_each_path_has_its_own(f, needed):
    check(f, *[(torch.tensor(values, requires_grad=needed),) for values in ((1.0, 2.0, -1.0), (-1.0, -2.0, 1.0))])


def asked_after(x):
    d = torch.zeros(3)
    if x.sum() > 0:
        d.requires_grad_()
    return d.requires_grad


def used_after(x):
    d = torch.zeros(3)
    if x.sum() > 0:
        d.requires_grad_()
    return (d * 2).sum().requires_grad


def asked_in_the_next_iteration(x):
    d = torch.zeros(3)
    found = []
    for number in range(int((x > 0).sum())):
        found.append(d.requires_grad)
        d.requires_grad_()
    return found


def asked_after_a_loop(x):
    d = torch.zeros(3)
    while x.sum() > 0:
        d.requires_grad_()
        x = x - 1
    return d.requires_grad


def under_another_name(x):
    d = first = torch.zeros_like(x)
    for _ in range(int((x > 0).sum())):
        d.requires_grad_()
        d = d.detach() + 1
    return d, first.requires_grad


@pytest.mark.parametrize(
    "f", [asked_after, used_after, asked_in_the_next_iteration, asked_after_a_loop, under_another_name])
def test_what_nobody_knows_afterwards(f):
    with pytest.raises(TraceError, match="requires_grad_") as error:
        to_static(f)(torch.ones(3))
    assert error.value.code == "D2S213" and error.value.location.file == __file__


class Lets(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, d):
        ctx.held = [d]
        return x * 2

    @staticmethod
    def backward(ctx, g):
        HELD[0].requires_grad_()
        return g * 2, None


HELD = []


def test_in_a_backward():
    def f(x):
        d = torch.zeros(3)
        HELD[:] = [d]
        return Lets.apply(x, d).sum()

    with pytest.raises(TraceError) as error:
        to_static(f)(torch.ones(3, requires_grad=True))
    assert error.value.location.file == __file__


def test_an_attempt_that_fails_leaves_nothing():
    def f(x):
        d = torch.zeros(3)
        for number in range(70):
            if number > 66:
                d.requires_grad_()
            x = x + number
        return x, d.requires_grad

    check(f, (torch.ones(3),))
