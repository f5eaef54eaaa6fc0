"""Floats of 16 bits in C: computed as float32 and rounded after each operator, as PyTorch does, bit for bit."""

from __future__ import annotations

import pytest
import torch

from dy2static import to_static
from runtime.executor import compile_program as interpreted
from runtime.ir.parser import parse_program
from tests.oracle import same
from tests.runtime.native.programs import agree, compiled

NAMES = {torch.bfloat16: "bf16", torch.float16: "f16"}
EXACT = [
    "aten.neg.default(%x)", "aten.relu.default(%x)", "aten.abs.default(%x)", "aten.sqrt.default(%p)",
    "aten.reciprocal.default(%p)", "aten.rsqrt.default(%p)", "aten.floor.default(%x)", "aten.square.default(%x)",
    "aten.sign.default(%x)", "aten.add.Tensor(%x, %y)", "aten.sub.Tensor(%x, %y)", "aten.mul.Tensor(%x, %y)",
    "aten.div.Tensor(%x, %y)", "aten.add.Tensor(%x, 0.3)", "aten.mul.Tensor(%x, 0.3)", "aten.div.Tensor(%x, 0.3)",
    "aten.sub.Tensor(%x, 3)", "aten.rsub.Scalar(%x, 0.3)", "aten.maximum.default(%x, %y)",
    "aten.minimum.default(%x, %y)", "aten.add.Tensor(%x, %r)", "aten.mul.Tensor(%x, %r)",
    "aten.tanh_backward.default(%x, %y)", "aten.sigmoid_backward.default(%x, %y)", "aten.clone.default(%x)",
    "aten.where.self(%m, %x, %y)", "aten.where.ScalarOther(%m, %x, 0.3)", "aten.masked_fill.Scalar(%x, %m, 0.3)",
]  # fmt: skip
NEAR = ["aten.exp.default(%x)", "aten.tanh.default(%x)", "aten.sigmoid.default(%x)", "aten.log.default(%p)",
        "aten.sin.default(%x)"]  # fmt: skip
FLAGS = ["aten.lt.Tensor(%x, %y)", "aten.ge.Scalar(%x, 0.1)", "aten.eq.Scalar(%x, 0.1)", "aten.ne.Scalar(%x, 0.1)",
         "aten.gt.Scalar(%x, 2)", "aten.isnan.default(%x)", "aten.logical_not.default(%x)",
         "aten.logical_and.default(%x, %y)"]  # fmt: skip
TEXT = """program "f" {
  input %x : DT[1600] = "x"
  input %y : DT[1600] = "y"
  input %p : DT[1600] = "p"
  input %r : DT[1] = "r"
  input %m : bool[1600] = "m"
  %z : RT[1600] = OP
  %a : f32[1600] = aten._to_copy.default(%z, dtype=torch.float32)
  return %z, %a as ($0, $1)
}"""


def arguments(dtype: torch.dtype) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(1600, generator=generator) * 3
    x[:8] = torch.tensor([0.0, -0.0, float("inf"), float("-inf"), float("nan"), 0.1, 60000.0, 1e-6])
    y = torch.randn(1600, generator=generator)
    return [x.to(dtype), y.to(dtype), (x.abs() + 0.01).to(dtype), torch.tensor([0.7]).to(dtype), y > 0]


def close(got: torch.Tensor, expected: torch.Tensor, steps: int) -> None:
    """Equal, nan for nan; or so many numbers of the dtype apart in few places, which the oracle cannot say."""
    if steps == 0:
        same(got, expected, bits=True)
        return
    assert got.dtype == expected.dtype and torch.equal(got.isnan(), expected.isnan())
    bits = [one.nan_to_num().view(torch.int16).to(torch.int64) for one in (got, expected)]
    assert (bits[0] - bits[1]).abs().max() <= steps and (bits[0] != bits[1]).float().mean() < 0.01


@pytest.mark.sample(3)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("op", [*EXACT, *NEAR, *FLAGS])
def test_operators(dtype: torch.dtype, op: str) -> None:
    result = "bool" if op in FLAGS else NAMES[dtype]
    text = TEXT.replace("DT", NAMES[dtype]).replace("RT", result).replace("OP", op)
    made = compiled(text)
    others = ["aten.sigmoid_backward.default"] if "sigmoid_b" in op and dtype is torch.float16 else []
    assert made.in_python() == others
    given = arguments(dtype)
    (got, wide), (expected, other) = made.run(given, []), interpreted(parse_program(text)).run(given, [])
    if op in FLAGS:
        assert torch.equal(got, expected) and torch.equal(wide, other)
        return
    close(got, expected, int(op in NEAR))
    assert torch.equal(wide.nan_to_num(), got.float().nan_to_num())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("op", [
    "aten.add.Tensor(%x, %i)", "aten.sum.default(%x)", "aten.softmax.int(%x, 0)", "aten.mm.default(%w, %w)",
    "aten.zeros_like.default(%x)", "aten.cumsum.default(%x, 0)", "aten.pow.Tensor_Scalar(%x, 3)",
    "aten.add.Tensor(%x, %x, alpha=0.3)", "aten.erf.default(%x)", "aten.amax.default(%x)", "aten.silu.default(%x)",
    "aten.add.Tensor(%x, %s)",
])  # fmt: skip
def test_others_python_runs(dtype: torch.dtype, op: str) -> None:
    """Nothing takes the bits for numbers."""
    shape = {"aten.sum.default(%x)": "", "aten.amax.default(%x)": "", "aten.mm.default(%w, %w)": "3, 3"}.get(op, "7")
    text = f"""program "f" {{
      input %x : DT[7] = "x"
      input %w : DT[3, 3] = "w"
      input %i : i64[7] = "i"
      input %s : f32[] = "s"
      input %n : int = "n"
      %f : bool, %k : int, %l : DT[{shape}] = while_loop(True, 0, undef) {{
        ^(%f1 : bool, %k1 : int, %l1 : DT[{shape}]):
          yield %f1
      }} {{
        ^(%f2 : bool, %k2 : int, %l2 : DT[{shape}]):
          %y : DT[{shape}] = {op}
          %next : int = scalar.add(%k2, 1)
          %more : bool = scalar.lt(%next, %n)
          yield %more, %next, %y
      }}
      return %l as $0
    }}""".replace("DT", NAMES[dtype])
    given = [torch.randn(7).to(dtype), torch.randn(3, 3).to(dtype), torch.arange(7), torch.tensor(0.3), 3]
    made = compiled(text)
    (got,), (expected,) = made.run(given, []), interpreted(parse_program(text)).run(given, [])
    close(got, expected, 0)


def test_views_lists_and_items() -> None:
    """What only moves bits, and what asks for a number."""
    text = """program "f" {
      input %x : bf16[2, 3] = "x"
      input %n : int = "n"
      %t : bf16[3, 2] = aten.t.default(%x)
      %e : bf16[3, 2] = aten.neg.default(%t)
      %r : bf16[2] = aten.select.int(%e, 0, 1)
      %s : bf16[2, 2] = aten.stack.default([%r, %r], 0)
      %c : bf16[4, 2] = aten.cat.default([%s, %s], 0)
      %o : bf16[] = aten.select.int(%r, 0, 0)
      %i : float = scalar.item(%o)
      return %t, %e, %r, %c, %i as ($0, $1, $2, $3, $4)
    }"""
    agree(text, [torch.randn(2, 3).bfloat16(), 1], [torch.zeros(2, 3).bfloat16(), 2], in_c=6)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_functions(dtype: torch.dtype) -> None:
    """A loop with a decision, forward and backward."""

    def function(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        i = 0
        while x.abs().max() < 8 and i < 20:
            x = x * 1.25 + torch.relu(y) * 0.5
            i += 1
        return x.float().sum()

    static = to_static(function, backend="c")
    x, y = torch.randn(16).to(dtype), torch.randn(16).to(dtype)
    with torch.no_grad():
        assert torch.equal(static(x, y), function(x, y))
    got, expected = [], []
    for run, found in ((static, got), (function, expected)):
        a, b = x.clone().requires_grad_(), y.clone().requires_grad_()
        found += torch.autograd.grad(run(a, b), [a, b])
    for one, other in zip(got, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=2e-2, atol=1e-2)
