"""``autograd.Function`` and custom operators under autocast: ``forward`` runs in the state of the call and what it sets
itself, ``backward`` in the state of whoever runs backward, later."""

from __future__ import annotations

import contextlib

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from dy2static import to_static
from runtime.errors import Dy2StaticError
from tests.oracle import same

torch.manual_seed(0)
LINEAR = nn.Linear(3, 3)
W = LINEAR.weight.detach().clone()
BF16 = torch.bfloat16


class Plain(torch.autograd.Function):
    @staticmethod
    def forward(ctx, v):
        return F.linear(v, W)

    @staticmethod
    def backward(ctx, g):
        return g.to(W.dtype) @ W * 2


class Off(torch.autograd.Function):
    @staticmethod
    def forward(ctx, v):
        with torch.autocast("cpu", enabled=False):
            v = F.linear(v.float(), W)
        return F.linear(v, W)

    @staticmethod
    def backward(ctx, g):
        with torch.autocast("cpu", enabled=False):
            g = g.float() @ W
        return g @ W * 2


class On(torch.autograd.Function):
    @staticmethod
    def forward(ctx, v):
        with torch.autocast("cpu", BF16):
            v = F.linear(v, W).float()
        return F.linear(v, W)

    @staticmethod
    def backward(ctx, g):
        with torch.autocast("cpu", BF16):
            g = (g.float() @ W * 2).float()
        return g @ W


class Custom(torch.autograd.Function):
    @staticmethod
    @torch.amp.custom_fwd(device_type="cpu")
    def forward(ctx, v):
        ctx.save_for_backward(v)
        return F.linear(v, W)

    @staticmethod
    @torch.amp.custom_bwd(device_type="cpu")
    def backward(ctx, g):
        (v,) = ctx.saved_tensors
        return g.to(v.dtype) @ W * v


class Cast(torch.autograd.Function):
    @staticmethod
    @torch.amp.custom_fwd(device_type="cpu", cast_inputs=torch.float32)
    def forward(ctx, v):
        return F.linear(v, W)

    @staticmethod
    @torch.amp.custom_bwd(device_type="cpu")
    def backward(ctx, g):
        return g @ W * 2


@torch.library.custom_op("dy2static_tests::rowwise", mutates_args=())
def rowwise(v: torch.Tensor) -> torch.Tensor:
    return v.float() @ W.T


rowwise.register_fake(lambda v: torch.empty(v.shape))
rowwise.register_autograd(lambda ctx, g: g.to(W.dtype) @ W)


def in_a_branch(v):
    return Plain.apply(v) if v.sum() > 0 else Off.apply(v)


def in_a_loop(v):
    i = 0
    while i < v.abs().sum() and i < 2:
        v = Plain.apply(v).float()
        i = i + 1
    return v


def in_a_recursion(v):
    def go(t, d):
        with torch.autocast("cpu", enabled=False):
            t = F.linear(t, W)
        t = F.linear(t.float(), W).float()
        if d.abs().sum() < 1:
            return t
        return go(t, d / 2)

    return go(v, v)


USES = [Plain.apply, Off.apply, On.apply, Custom.apply, Cast.apply, rowwise, in_a_branch, in_a_loop, in_a_recursion]
NAMES = ["plain", "off", "on", "custom_fwd", "cast_inputs", "custom_op", "branch", "loop", "recursion"]
REGIONS = {"none": contextlib.nullcontext, "on": lambda: torch.autocast("cpu", BF16),
           "off": lambda: torch.autocast("cpu", enabled=False)}  # fmt: skip


def observed(function, outside, later):
    x = torch.tensor([[1.0, 2.0, 3.0], [-0.5, 0.25, 0.125]], requires_grad=True)
    with torch.autocast("cpu", BF16, enabled=outside, cache_enabled=False):
        result = function(x)
    with torch.autocast("cpu", BF16, enabled=later, cache_enabled=False):
        result.float().square().sum().backward()
    return result.detach(), x.grad


@pytest.mark.parametrize("options", [{}, {"autograd": "eager"}, {"backend": "c"}], ids=str)
@pytest.mark.parametrize("later", [False, True])
@pytest.mark.parametrize("outside", [False, True])
@pytest.mark.parametrize("region", REGIONS)
@pytest.mark.parametrize("use", USES, ids=NAMES)
def test_function(use, region, outside, later, options):
    def f(x):
        with REGIONS[region]():
            return use(x)

    tolerance = 1e-5 if options.get("backend") == "c" else 0.0
    same(observed(to_static(f, **options), outside, later), observed(f, outside, later), tolerance=tolerance)


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("use", USES, ids=NAMES)
def test_gradient_inside(use, inside):
    def f(x):
        with torch.autocast("cpu", BF16):
            y = use(x).float().sum()
            if inside:
                return torch.autograd.grad(y, x)[0]
        return torch.autograd.grad(y, x)[0]

    x = torch.tensor([[1.0, 2.0, 3.0], [-0.5, 0.25, 0.125]], requires_grad=True)
    same(to_static(f)(x), f(x))


class Asks(torch.autograd.Function):
    @staticmethod
    def forward(ctx, v):
        return v * 2

    @staticmethod
    def backward(ctx, g):
        return g * (5 if torch.is_autocast_enabled("cpu") else 3) * torch.get_autocast_dtype("cpu").itemsize


class AsksInForward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, v):
        ctx.factor = 5 if torch.is_autocast_enabled("cpu") else 3
        return v * 2

    @staticmethod
    def backward(ctx, g):
        return g * ctx.factor


def asked_inside(function, region):
    def f(x):
        y = function.apply(x) if x.sum() > 0 else x * 1
        with REGIONS[region]():
            return torch.autograd.grad(y.sum(), x)[0]

    return f


def step_inside(function, region):
    def f(x):
        w = x.detach().requires_grad_()
        y = function.apply(w)
        with REGIONS[region]():
            y.sum().backward()
        return w.grad

    return f


@pytest.mark.parametrize("region", REGIONS)
@pytest.mark.parametrize("function", [Asks, AsksInForward])
@pytest.mark.parametrize("make", [asked_inside, step_inside])
def test_backward_that_asks_for_the_state(make, function, region):
    f = make(function, region)
    x = torch.tensor([[1.0, 2.0, 3.0], [-0.5, 0.25, 0.125]], requires_grad=True)
    if function is Asks and region == "on":
        with pytest.raises(Dy2StaticError, match="asks for the autocast state") as found:
            to_static(f)(x)
        assert found.value.code == "D2S213" and found.value.location is not None
    else:
        same(to_static(f)(x), f(x))


@pytest.mark.parametrize("options", [{}, {"autograd": "eager"}], ids=str)
@pytest.mark.parametrize("outside", [False, True])
def test_backward_that_asks_outside(outside, options):
    def f(x):
        return Asks.apply(x) if x.sum() > 0 else x * 1

    static = to_static(f, **options)
    for _ in range(2):
        same(observed(static, outside, False), observed(f, outside, False))
        with pytest.raises(Dy2StaticError, match="asks for the autocast state"):
            observed(static, outside, True)
