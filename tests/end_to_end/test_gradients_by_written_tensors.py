"""Gradients by a tensor that was written where autograd did not see it, after something was computed of it: for
autograd it is one tensor. Asked inside they are refused, asked outside they are eager's."""

from __future__ import annotations

import pytest
import torch

from dy2static import to_static
from dy2static.errors import TraceError
from tests.oracle import check


def no_grad(h):
    with torch.no_grad():
        h.add_(1)


def item(h):
    with torch.no_grad():
        h[0] = 3.0


def data(h):
    h.data.clamp_(min=0.5)


def detached(h):
    h.detach().mul_(2)


def part(h):
    h.detach()[:2].zero_()


def initialised(h):
    torch.nn.init.ones_(h)


def view(h):
    with torch.no_grad():
        h.view(3, 1).mul_(2)


WRITES = [no_grad, item, data, detached, part, initialised, view]


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("tensor", ["argument", "leaf", "computed"])
@pytest.mark.parametrize("use", ["both", "before"])
def test_asked_inside(write, tensor, use):
    def f(x, w):
        h = {"argument": w, "leaf": x.detach().clone().requires_grad_(), "computed": w * 2}[tensor]
        loss = (h * x.detach()).sum()
        write(h)
        if use == "both":
            loss = loss + (h * 2).sum()
        return torch.autograd.grad(loss, h, allow_unused=True)[0]

    with pytest.raises(TraceError, match="before it was written") as error:
        to_static(f)(torch.tensor([1.0, 2.0, 3.0]), torch.ones(3, requires_grad=True))
    assert error.value.code == "D2S213" and error.value.location.file == __file__


@pytest.mark.parametrize("write", WRITES)
def test_written_before_it_is_used(write):
    def f(x):
        h = x.detach().clone().requires_grad_()
        write(h)
        return torch.autograd.grad((h * h * x.detach()).sum(), h)[0]

    check(f, (torch.tensor([1.0, 2.0, -3.0]),))


def retained(x, w):
    h = w * 2
    h.retain_grad()
    loss = (h * x).sum()
    with torch.no_grad():
        h.zero_()
    loss.backward()
    return h.grad


def test_retained():
    with pytest.raises(TraceError, match="before it was written"):
        to_static(retained)(torch.ones(3), torch.ones(3, requires_grad=True))


@pytest.mark.parametrize("where", ["main", "branch", "loop"])
@pytest.mark.parametrize("write", WRITES)
def test_asked_outside(write, where):
    def f(x):
        h = x * 2
        loss = h.sum() * 3
        if where == "main":
            write(h)
        elif where == "branch":
            if x.sum() > 0:
                write(h)
        else:
            for _ in range(int((x > 0).sum())):
                write(h)
        return h, loss + (h * 2).sum(), h * 3

    converted = to_static(f)
    for values in ((1.0, 2.0, -0.5), (-1.0, -2.0, -3.0), (3.0, 1.0, 1.0)):
        found = []
        for call in (f, converted):
            x = torch.tensor(values, requires_grad=True)
            h, loss, other = call(x)
            by_result = torch.autograd.grad(loss + other.sum(), h, retain_graph=True, allow_unused=True)
            h.retain_grad()
            (loss + other.sum()).backward()
            found.append((h.detach(), loss.detach(), by_result, h.grad, x.grad))
        torch.testing.assert_close(found[1], found[0])
