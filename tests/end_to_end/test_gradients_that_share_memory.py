"""Gradients that PyTorch gives as one memory (of ``x + y``, views, a given gradient), written in place: as eager, or a
located error."""

from __future__ import annotations

import itertools

import pytest
import torch

from dy2static import to_static
from runtime.errors import Dy2StaticError
from tests.from_files import module_of
from tests.oracle import check

HEAD = """import torch
import torch.nn.functional as F
class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        return a + b
    @staticmethod
    def backward(ctx, g):
        return g, g
def f(x, y):
    w = torch.eye(3)
    {value}
    {asked}
    {write}
    return {read}
"""
VALUES = (
    "z = x + y", "z = x - y", "z = y - x", "z = torch.add(x, y, alpha=2)", "z = torch.sub(x, y, alpha=2)",
    "z = 1 + x + y",
    "z = x * y", "z = x / y", "z = torch.cat([x, y])", "z = torch.stack([x, y])",
    "z = torch.cat([x, y]) + torch.cat([y, x])",
    "z = x.view(3, 1) + y.view(3, 1)", "z = x.reshape(1, 3) + y", "z = x.unsqueeze(0).squeeze(0) + y",
    "z = x.clone() + y.clone()",
    "z = x.expand(2, 3) + y", "z = x.sum() + y.sum()", "z = x.mean() + y.mean()", "z = x.sum() + y",
    "z = torch.maximum(x, y)",
    "z = torch.where(x > 0, x, y)", "z = torch.lerp(x, y, 0.5)", "z = torch.addcmul(x, y, y)",
    "z = torch.addmv(x, w, y)",
    "z = F.linear(y, w, x)", "z = F.linear(y.view(1, 3), w, x)", "z = torch.hstack([x, y])",
    "z = x.contiguous() + y.to(torch.float32)",
    "z = F.dropout(x, 0.0) + y", "z = F.layer_norm(x + y, (3,))", "z = F.layer_norm(y, (3,), torch.ones(3), x)",
    "z = x[[0, 1, 2]] + y",
    "z = torch.stack(list(reversed(x.unbind()))) + y", "z = x.split(1)[0] + y.chunk(3)[1]", "z = Twice.apply(x, y)",
    "z = x + y if x.sum() > 0 else x * y", "z = x\\n    for i in range(int((x > 0).sum())):\\n        z = z + y",
    "z = x.clone()\\n    z.add_(y)", "z = x.clone()\\n    z += y\\n    z = z + y", "z = x.t() + y.T",
    "z = x.flip(0) + y",
    "z = (x + y).relu()", "h = x + y\\n    z = h + h", "z = x.masked_fill(x > 100, 0.0) + y", "z = x.type_as(y) + y",
    "z = torch.broadcast_to(x, (3,)) + y", "z = x.detach() + x + y", "z = x.positive() + y", "z = torch.addr(w, x, y)",
)  # fmt: skip
ASKED = {
    "a loss": "a, b = torch.autograd.grad(z.square().sum(), (x, y))",
    "a sum": "a, b = torch.autograd.grad(z.sum(), (x, y), create_graph=True)",
    "given": "g = torch.ones_like(z)\n    a, b = torch.autograd.grad(z, (x, y), g)",
    "unused": "a, b = torch.autograd.grad((z * 2).sum(), (x, y), allow_unused=True, materialize_grads=True)",
}
WRITES = {
    "one": "with torch.no_grad():\n        a.add_(1)",
    "each": "with torch.no_grad():\n        for one in (a, b):\n            one.mul_(2)",
    "none": "pass",
}
READS = ("a * 1, b * 1", "a is b")
CASES = [(value, asked, write, read) for value in VALUES for asked in ASKED for write in WRITES for read in READS
         if read == READS[0] or write == "none"]  # fmt: skip
_NUMBERS = itertools.count()


@pytest.mark.sample(30)
@pytest.mark.parametrize(("value", "asked", "write", "read"), CASES)
def test_as_eager_or_refused(value, asked, write, read, tmp_path):
    number = next(_NUMBERS)
    path = tmp_path / f"program_{number}.py"
    path.write_text(HEAD.format(value=value.replace("\\n", "\n"), asked=ASKED[asked], write=WRITES[write], read=read))
    function = module_of(path, f"gradients_that_share_{number}").f
    calls = [(sign * torch.tensor([1.0, -2.0, 3.0], requires_grad=True), torch.ones(3, requires_grad=True))
             for sign in (1, -1)]  # fmt: skip
    calls = [(x.detach().requires_grad_(), y.detach().requires_grad_()) for x, y in calls]
    try:
        check(function, *calls, paths=("program",))
    except Dy2StaticError as error:
        assert error.code in ("D2S222", "D2S264", "D2S213", "D2S217"), error
        assert error.code in ("D2S213", "D2S217") or write != "none" or read != READS[0], error


class Exchanged(torch.autograd.Function):
    """A product whose backward gives the saved tensors themselves."""

    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return (a * b).sum()

    @staticmethod
    def backward(ctx, grad):
        return ctx.saved_tensors[::-1]


def of_a_sum_and_what_it_goes_on_to(x, y):
    h = x + y
    gh, gx = torch.autograd.grad((h.exp() + h.sin()).sum(), (h, x))
    gh.add_(1)
    return gx


def of_one_tensor_twice(x, y):
    first, second = torch.autograd.grad((x.exp() + x.sin()).sum(), (x, x))
    first.add_(1)
    return second


def of_a_backward_that_gives_what_it_saved(x, y):
    p, q = x * 1, y * 1
    (g,) = torch.autograd.grad(Exchanged.apply(p, q), (p,))
    g.add_(1)
    return q * 1


def of_that_on_a_path(x, y):
    p, q = x * 1, y * 1
    z = Exchanged.apply(p, q) if x.sum() > 0 else p.sum()
    (g,) = torch.autograd.grad(z, (p,))
    g.add_(1)
    return q * 1


def _through(operator):
    def f(x, y):
        p = x[:1] * 1
        z = operator(p)
        w = torch.ones_like(z)
        (g,) = torch.autograd.grad(z, (p,), w)
        g.add_(1)
        return w

    return f


@pytest.mark.parametrize("function", [
    of_a_sum_and_what_it_goes_on_to, of_one_tensor_twice, of_a_backward_that_gives_what_it_saved, of_that_on_a_path,
    *(_through(one) for one in (
        lambda p: p.cumsum(0), lambda p: p.cumprod(0), torch.diag, lambda p: torch.einsum("i->i", p),
        lambda p: p.reshape(()).prod(), lambda p: p.sum(), lambda p: p + torch.zeros(1),
    )),
])  # fmt: skip
def test_a_write_that_something_else_would_see_is_refused(function):
    """Eager changes the other one, or refuses the write itself."""
    with pytest.raises(Dy2StaticError, match="D2S222"):
        check(function, (torch.tensor([1.0, 2.0, 3.0], requires_grad=True), torch.ones(3, requires_grad=True)))


def test_what_a_given_gradient_becomes_is_not_written():
    def f(x):
        g = torch.ones(3)
        (a,) = torch.autograd.grad(x + 1, x, g)
        a.mul_(2)
        return g

    with pytest.raises(Dy2StaticError, match="D2S222"):
        check(f, (torch.ones(3, requires_grad=True),))


def test_gradients_that_share_nothing_are_written():
    def clipped(x, y):
        grads = torch.autograd.grad((torch.tanh(x * y) + x.exp()).sum(), (x, y))
        norm = torch.stack([g.norm() for g in grads]).norm()
        for g in grads:
            g.mul_(1 / norm.clamp(min=1))
        return grads

    def of_parts(x, y):
        a, b = torch.autograd.grad(torch.cat([x, y]).square().sum(), (x, y))
        a.add_(1)
        b.mul_(3)
        return a, b

    for f in (clipped, of_parts):
        check(f, (torch.tensor([1.0, -2.0, 3.0], requires_grad=True), torch.ones(3, requires_grad=True)))


def given_on_by_a_loop(x, y):
    b = torch.tanh(y)
    for _ in range(int(y.abs().sum() > 1) + 1):
        b = x
    return b + y


@pytest.mark.parametrize("size", (0.1, 1.0))
def test_what_a_loop_gives_on_has_a_gradient_of_its_own(size: float) -> None:
    """Eager has one gradient for both: a write to it changes both, and one of two tensors does not (documented)."""
    x, y = torch.tensor([1.0, 2.0, 3.0], requires_grad=True), torch.full((3,), size, requires_grad=True)
    check(given_on_by_a_loop, (x, y), separate_gradients=True)
    seed = torch.ones(3)
    one, other = torch.autograd.grad(given_on_by_a_loop(x, y), (x, y), seed)
    mine, others = torch.autograd.grad(to_static(given_on_by_a_loop)(x, y), (x, y), seed)
    assert one is other and mine is not others
    mine.add_(1)
    assert torch.equal(others, other)
