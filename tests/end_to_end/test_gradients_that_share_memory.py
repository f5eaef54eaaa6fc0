"""Gradients that PyTorch gives as one memory (of ``x + y``, views, a given gradient), written in place: as eager, or a
located error."""

from __future__ import annotations

import itertools

import pytest
import torch

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
