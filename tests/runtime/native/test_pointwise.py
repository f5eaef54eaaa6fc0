"""Operators on elements: dtypes, broadcasting, special values, layouts; each against the interpreter."""

from __future__ import annotations

import itertools
import random

import pytest
import torch

from runtime.native.pointwise import BINARY_NAMES, COMPARISONS, FLOAT_UNARY, SAME_UNARY, _iterated
from tests.runtime.native.programs import agree, compiled, gave_up

_DEFAULT = ("maximum", "minimum", "logical_and", "logical_or", "logical_xor", "floor_divide", "tanh_backward",
            "sigmoid_backward")  # fmt: skip
_NAMES = {"f32": torch.float32, "f64": torch.float64, "i64": torch.int64, "i32": torch.int32, "bool": torch.bool}
_SPECIAL = [0.0, -0.0, 1.0, -1.5, 0.3, 88.0, -88.0, 1e-40, 3e38, float("inf"), float("-inf"), float("nan"), 2.5, 3.5,
            -2.5]  # fmt: skip


def _values(dtype: torch.dtype) -> torch.Tensor:
    if dtype.is_floating_point:
        return torch.tensor(_SPECIAL, dtype=dtype)
    if dtype == torch.bool:
        return torch.tensor([True, False] * 8)[:15]
    return torch.tensor([0, 1, -1, 2, -2, 7, -7, 100, 2**30, -(2**30), 3, 4, 5, 6, 8], dtype=dtype)


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", [*FLOAT_UNARY, *SAME_UNARY, "floor", "ceil", "trunc", "round", "abs", "sign", "isnan",
                                  "isinf", "isfinite", "logical_not"])  # fmt: skip
@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_functions_of_one_float(name: str, kind: str) -> None:
    out = "bool" if name in ("isnan", "isinf", "isfinite", "logical_not") else kind
    text = f"""program "f" {{
      input %x : {kind}[n] = "x"
      input %z : {kind}[] = "z"
      %y : {out}[n] = aten.{name}.default(%x)
      %w : {out}[] = aten.{name}.default(%z)
      return %y, %w as ($0, $1)
    }}"""
    x = _values(_NAMES[kind])
    agree(text, *([torch.cat([x, torch.randn(20, dtype=x.dtype)]), one] for one in x), rounding=1e-6)


_FIRST = ("add", "div", "maximum", "lt", "logical_xor", "remainder", "pow")


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", [
    pytest.param(one, marks=() if one in _FIRST else pytest.mark.slow) for one in BINARY_NAMES
    if not one.startswith("__")
])  # fmt: skip
def test_pairs_of_dtypes(name: str) -> None:
    """Those that C takes are computed as PyTorch computes them; those that raise raise in Python."""
    for a, b in itertools.product(_NAMES, repeat=2):
        x, y = _values(_NAMES[a]), _values(_NAMES[b]).flip(0)
        overload = "default" if name in _DEFAULT else "Tensor"
        try:
            result = getattr(getattr(torch.ops.aten, name), overload)(x, y)
        except RuntimeError:
            continue
        if name in ("remainder", "floor_divide") and not result.dtype.is_floating_point:
            y = torch.where(y == 0, torch.ones_like(y), y)
        kind = next((short for short, dtype in _NAMES.items() if dtype == result.dtype), None)
        if kind is None:
            continue
        text = f"""program "f" {{
          input %x : {a}[n] = "x"
          input %y : {b}[n] = "y"
          %z : {kind}[n] = aten.{name}.{overload}(%x, %y)
          return %z as $0
        }}"""
        made = compiled(text)
        agree(text, [x, y], rounding=1e-6, in_c=made.share().in_c)


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", *COMPARISONS])
@pytest.mark.parametrize("kind", ["f32", "i64"])
def test_with_numbers(name: str, kind: str) -> None:
    out = "bool" if name in COMPARISONS else kind if name != "div" else "f32"
    overload = "Scalar" if name in COMPARISONS else "Tensor"
    for number, values in (("int", [0, 1, -3, 2**40]), ("float", [0.0, 0.1, -2.5, float("inf"), float("nan")])):
        kind_out = "f32" if number == "float" and out == "i64" else out
        text = f"""program "f" {{
          input %x : {kind}[n] = "x"
          input %k : {number} = "k"
          %z : {kind_out}[n] = aten.{name}.{overload}(%x, %k)
          return %z as $0
        }}"""
        agree(text, *([_values(_NAMES[kind]), value] for value in values))


def test_alpha_and_powers() -> None:
    text = """program "f" {
      input %x : f32[n] = "x"
      input %y : f32[n] = "y"
      %a : f32[n] = aten.add.Tensor(%x, %y, alpha=0.1)
      %b : f32[n] = aten.sub.Tensor(%a, %y, alpha=3)
      %c : f32[n] = aten.rsub.Scalar(%b, 1.0)
      %d : f32[n] = aten.pow.Tensor_Scalar(%c, 2)
      %e : f32[n] = aten.pow.Tensor_Scalar(%c, -0.5)
      %g : f32[n] = aten.pow.Tensor_Scalar(%c, 3.0)
      return %a, %b, %c, %d, %e, %g as ($0, $1, $2, $3, $4, $5)
    }"""
    agree(text, [torch.randn(100), torch.randn(100)], [_values(torch.float32), _values(torch.float32)], rounding=1e-6)


def test_broadcasting_that_types_tell() -> None:
    text = """program "f" {
      input %x : f32[n, 3, 4] = "x"
      input %y : f32[3, 1] = "y"
      input %z : f32[4] = "z"
      input %s : f32[] = "s"
      %a : f32[n, 3, 4] = aten.add.Tensor(%x, %y)
      %b : f32[n, 3, 4] = aten.mul.Tensor(%a, %z)
      %c : f32[n, 3, 4] = aten.sub.Tensor(%b, %s)
      %d : f32[3, 4] = aten.mul.Tensor(%y, %z)
      return %c, %d as ($0, $1)
    }"""
    made = agree(text, *([torch.randn(n, 3, 4), torch.randn(3, 1), torch.randn(4), torch.randn(())] for n in (0, 1, 5)))
    assert not gave_up(made)


def test_broadcasting_that_no_type_tells_is_pythons() -> None:
    text = """program "f" {
      input %x : f32[n] = "x"
      input %y : f32[m] = "y"
      %a : f32[k] = aten.add.Tensor(%x, %y)
      return %a as $0
    }"""
    agree(text, [torch.randn(3), torch.randn(3)], [torch.randn(3), torch.randn(1)], [torch.randn(3), torch.randn(2)])


def test_layouts() -> None:
    """A result's dimensions lie in memory as eager's do."""
    text = """program "f" {
      input %x : f32[3, 4] = "x"
      input %y : f32[4, 3] = "y"
      %t : f32[4, 3] = aten.t.default(%x)
      %a : f32[4, 3] = aten.mul.Tensor(%t, 2)
      %b : f32[4, 3] = aten.add.Tensor(%y, %t)
      %c : f32[4, 3] = aten.add.Tensor(%a, %t)
      %d : f32[3, 4] = aten.t.default(%c)
      %e : f32[3, 4] = aten.exp.default(%d)
      return %a, %b, %c, %e as ($0, $1, $2, $3)
    }"""
    agree(text, [torch.randn(3, 4), torch.randn(4, 3)], rounding=1e-6)


def test_choices() -> None:
    text = """program "f" {
      input %x : f32[n] = "x"
      input %y : f32[n] = "y"
      %m : bool[n] = aten.gt.Tensor(%x, %y)
      %a : f32[n] = aten.where.self(%m, %x, %y)
      %b : f32[n] = aten.masked_fill.Scalar(%a, %m, 0.5)
      %c : f32[n] = aten.clamp.default(%b, -1.0, 1.0)
      %d : i64[n] = aten.to.dtype(%m, torch.int64)
      %e : f32[n] = aten.threshold_backward.default(%c, %x, 0)
      %g : f64[n] = aten._to_copy.default(%e, dtype=torch.float64)
      return %a, %b, %c, %d, %e, %g as ($0, $1, $2, $3, $4, $5)
    }"""
    agree(text, [torch.randn(50), torch.randn(50)], [_values(torch.float32), _values(torch.float32).flip(0)])


@pytest.mark.parametrize("whole", [torch.int64, torch.int32])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_a_number_that_is_cut_to_nothing_has_no_sign(dtype: torch.dtype, whole: torch.dtype) -> None:
    """There and back, -0.5 is 0.0: compilers that make one rounding of it keep the sign."""
    names = {torch.float32: "f32", torch.float64: "f64", torch.bfloat16: "bf16", torch.float16: "f16",
             torch.int64: "i64", torch.int32: "i32"}  # fmt: skip
    given, cut = names[dtype], names[whole]
    text = f"""program "f" {{
  input %x : {given}[n] = "x"
  %n : {cut}[n] = aten._to_copy.default(%x, dtype={whole})
  %y : {given}[n] = aten._to_copy.default(%n, dtype={dtype})
  %z : {given}[n] = aten.reciprocal.default(%y)
  return %z as $0
}}"""
    agree(text, *[[torch.linspace(-0.9, 0.9, n).to(dtype)] for n in (3, 50)])


def _laid(generator: random.Random, sizes: list[int]) -> torch.Tensor:
    """A tensor that broadcasts to some sizes, with its dimensions in any order, gaps, expanded dimensions."""
    order = generator.sample(range(len(sizes)), len(sizes))
    own = [size if generator.random() > 0.25 else 1 for size in sizes]
    whole = torch.randn([own[dim] + generator.choice([0, 0, 1]) for dim in order])
    laid = whole.permute([order.index(dim) for dim in range(len(sizes))])[tuple(slice(0, size) for size in own)]
    return laid.expand(sizes) if generator.random() < 0.2 else laid


def test_the_layout_of_results_is_told_as_tensoriterator_has_it() -> None:
    """Never another one; hardly ever none."""
    generator = random.Random(0)
    told = 0
    for _ in range(3000):
        sizes = [generator.choice([1, 2, 3, 4]) for _ in range(generator.randint(1, 4))]
        operands = [_laid(generator, sizes) for _ in range(generator.randint(1, 3))]
        made = (torch.exp, torch.add, torch.addcmul)[len(operands) - 1](*operands)
        given = [(tuple(one.shape), one.stride()) for one in operands]
        order = _iterated(given, tuple(made.shape))
        if order is None:
            continue
        told += 1
        step = 1
        for dim in reversed(order):
            assert made.shape[dim] == 1 or made.stride(dim) == step, (given, made.stride(), order)
            step *= made.shape[dim]
    assert told > 2900, told
