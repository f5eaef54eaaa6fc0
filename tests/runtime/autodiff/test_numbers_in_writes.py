"""Writes that read computed numbers: of their own (``div_(2 * n)``), and where their part begins and ends."""

from __future__ import annotations

import itertools

import pytest
import torch

import dy2static
from runtime.autodiff import Runner, gradient_path
from runtime.executor import compile_program
from runtime.ir.parser import parse_program
from runtime.ir.verify import verify
from tests.from_files import module_of
from tests.oracle import check, same

FORMULAS = {
    "mse_loss": "F.mse_loss(h, x.detach())",
    "unfold": "h.unfold(0, 2, 1).pow(3).sum()",
    "interpolate": "F.interpolate(h[None], scale_factor=2.0).pow(3).sum()",
    "avg_pool1d": "F.avg_pool1d(h[None], 2).pow(3).sum()",
    "pad": "F.pad(h, (1, 1)).pow(3).sum()",
    "diagonal": "h.diagonal().pow(3).sum()",
    "gather": "h.gather(0, torch.zeros(1, x.shape[1], dtype=torch.long)).pow(3).sum()",
    "index": "h[torch.tensor([0, 1])].pow(3).sum()",
    "as_strided": "h.as_strided((x.shape[0], 1), (x.shape[1], 1)).pow(3).sum()",
    "cumprod": "h.cumprod(0).pow(3).sum()",
    "prod": "h.prod()",
    "std": "h.std() ** 2",
    "sort": "h.sort(0)[0][0].pow(3).sum()",
    "huber_loss": "F.huber_loss(h, x.detach() * 0.1)",
    "smooth_l1_loss": "F.smooth_l1_loss(h, x.detach() * 0.1)",
    "layer_norm": "F.layer_norm(h, (x.shape[1],)).pow(3).sum()",
    "embedding": "F.embedding(torch.tensor([0, 1]), h).pow(3).sum()",
    "kl_div": "F.kl_div(h.log_softmax(1), x.detach().softmax(1), reduction='batchmean')",
    "norm": "h.norm()",
}
"""Losses whose second derivatives write parts, or write numbers made of sizes."""
BY_HAND = {
    "a number": "%b : int = scalar.mul(%n, 2)\n%w : f32[s0, 4] = aten.div_.Scalar(%m, %b)",
    "a slice": """%b : int = scalar.sub(%n, 1)
        %v : f32[s1, 4] = aten.slice.Tensor(%m, 0, 0, %b)
        %w : f32[s1, 4] = aten.mul_.Tensor(%v, %s)""",
    "a row": """%b : int = scalar.sub(%n, 2)
        %v : f32[4] = aten.select.int(%m, 0, %b)
        %w : f32[4] = aten.add_.Tensor(%v, %s)""",
    "a size of the base": """%b : int = scalar.size(%m, 1)
        %c : int = scalar.sub(%b, 1)
        %v : f32[s0, s1] = aten.slice.Tensor(%m, 1, 0, %c)
        %w : f32[s0, s1] = aten.copy_.default(%v, %s)""",
    "numbers of two writes": """%b : int = scalar.floordiv(%n, 2)
        %v : f32[s1, 4] = aten.slice.Tensor(%m, 0, %b)
        %u : f32[s1, 4] = aten.add_.Tensor(%v, %s)
        %c : float = scalar.float(%b)
        %w : f32[s1, 4] = aten.mul_.Scalar(%v, %c)""",
}
"""Blocks of a write, as a file may hold them, that compute numbers."""
PLACES = {
    "straight": "WRITE\nreturn %r, %p as ($0, $1)",
    "cond": """%r.1 : f32[s0, 4] = cond(%p) {
          WRITE
          yield %r
        } {
          yield %h
        }
        return %r.1, %p as ($0, $1)""",
    "while_loop": """%z : bool, %k : f32[s0, 4], %q : bool = while_loop(True, %h, %p) {
          ^(%z.1 : bool, %k.1 : f32[s0, 4], %q.1 : bool):
            yield %z.1
        } {
          ^(%z.2 : bool, %k.2 : f32[s0, 4], %q.2 : bool):
            WRITE
            yield %q.2, %r, False
        }
        return %k, %p as ($0, $1)""",
}


@pytest.mark.sample(4)
@pytest.mark.parametrize("twice", [False, True], ids=["first", "second"])
@pytest.mark.parametrize("formula", FORMULAS)
def test_formulas(formula, twice, tmp_path):
    """A gradient inside and one of what it gives, all sizes open; and two inside with the third outside."""
    if formula == "avg_pool1d" and torch.__version__ < "2.13":
        pytest.skip("PyTorch 2.11 asks whether the windows of a pool cover the tensor")
    lines = ["import torch", "import torch.nn.functional as F", "def f(x, y):", "    t = x * y.sum()"]
    lines += ["    h = torch.where(t > 0, t, t * 0.1)"]
    lines += [f"    g = torch.autograd.grad({FORMULAS[formula]}, t, create_graph=True)[0]"]
    if twice:
        lines += ["    g = torch.autograd.grad(g.pow(2).sum(), t, create_graph=True, materialize_grads=True)[0]"]
    (tmp_path / "one.py").write_text("\n".join([*lines, "    return g, x.shape[0]", ""]))
    torch.manual_seed(0)
    calls = [(torch.randn(n, m, requires_grad=True), torch.rand(2, requires_grad=True))
             for n, m in ((3, 2), (4, 2), (5, 3), (6, 4))]  # fmt: skip
    static = check(module_of(tmp_path / "one.py").f, *calls, tolerance=1e-4, none_is_zero=True)
    dy2static.save(static, tmp_path / "file")
    loaded = dy2static.load(tmp_path / "file")
    check(module_of(tmp_path / "one.py").f, *calls[2:], static=loaded, tolerance=1e-4, none_is_zero=True)


NEEDS = [needs for needs in itertools.product([True, False], repeat=2) if any(needs)]


@pytest.mark.sample(3)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("needs", NEEDS, ids=str)
@pytest.mark.parametrize("write", BY_HAND)
def test_numbers_in_the_block(write, needs, place):
    """Both roads give the same gradients."""
    base = "%k.2" if place == "while_loop" else "%h"
    text = f"%r : f32[s0, 4] = update({base}) {{\n^(%m : f32[s0, 4]):\n{BY_HAND[write]}\nyield %m\n}}"
    program = parse_program(f"""program "f" {{
        input %x : f32[s0, 4] = "x"
        input %y : f32[] = "y"
        %n : int = scalar.size(%x, 0)
        %h : f32[s0, 4] = aten.mul.Tensor(%x, %y)
        %s : f32[] = aten.sin.default(%y)
        %0 : bool[] = aten.gt.Scalar(%s, 0)
        %p : bool = scalar.truth(%0)
        {PLACES[place].replace("WRITE", text)}
    }}""")
    verify(program)
    runner = Runner(program, compile_program)
    for rows, sign in ((3, 1), (4, -1), (5, 1)):
        found = []
        for path in ("program", "autograd"):
            torch.manual_seed(rows)
            args = [torch.randn(rows, 4).requires_grad_(needs[0]), torch.tensor(sign * 0.7).requires_grad_(needs[1])]
            with gradient_path(path):
                (out, _) = runner.run(args, [])
            leaves = [one for one in args if one.requires_grad]
            found.append((out, torch.autograd.grad((out * out).sum(), leaves, allow_unused=True)))
        same(*found, tolerance=1e-5)
