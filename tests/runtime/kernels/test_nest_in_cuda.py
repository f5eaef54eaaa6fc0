"""Operators on elements as kernels that run on the CPU: dtypes, special values, broadcasting, layouts, sizes, folds."""

from __future__ import annotations

import itertools

import pytest
import torch

from runtime.kernels.lowering import OF_HALVES
from runtime.native import activations
from runtime.native.pointwise import BINARY_NAMES, COMPARISONS, FLOAT_UNARY, ROUNDING, SAME_UNARY
from tests.runtime.kernels.host import Host
from tests.runtime.kernels.programs import agree, compiled, gave_up, randoms

_KINDS = {"f32": torch.float32, "f64": torch.float64, "bf16": torch.bfloat16, "f16": torch.float16,
          "i64": torch.int64, "i32": torch.int32, "bool": torch.bool}  # fmt: skip
_SPECIAL = [0.0, -0.0, 1.0, -1.5, 0.3, 88.0, -88.0, 1e-40, 3e38, float("inf"), float("-inf"), float("nan"), 2.5, 3.5]
_ONE = [*FLOAT_UNARY, *SAME_UNARY, *ROUNDING, "abs", "sign", "neg", "square", "isnan", "isinf", "isfinite",
        "logical_not"]  # fmt: skip
_FLAGS = ("isnan", "isinf", "isfinite", "logical_not")
_DEFAULT = ("maximum", "minimum", "logical_and", "logical_or", "logical_xor", "floor_divide", "tanh_backward",
            "sigmoid_backward")  # fmt: skip


def _values(dtype: torch.dtype) -> torch.Tensor:
    if dtype.is_floating_point:
        return torch.tensor(_SPECIAL, dtype=torch.float64).to(dtype)
    if dtype == torch.bool:
        return torch.tensor([True, False] * 7)
    return torch.tensor([0, 1, -1, 2, -2, 7, -7, 100, 2**30, -(2**30), 3, 4, 5, 6], dtype=dtype)


def _text(kind: str, lines: list[tuple[str, str]], inputs: str) -> str:
    """Each line is the kind of a result and what gives it."""
    body = "\n".join(f"  %r{place} : {out}[n] = {call}" for place, (out, call) in enumerate(lines))
    names = ", ".join(f"%r{place}" for place in range(len(lines)))
    places = ", ".join(f"${place}" for place in range(len(lines)))
    given = "\n".join(f'  input %{name} : {kind}[n] = "{name}"' for name in inputs.split())
    return f'program "f" {{\n{given}\n{body}\n  return {names} as ({places})\n}}'


@pytest.mark.parametrize("kind", ["f32", "f64", "bf16", "f16"])
def test_functions_of_one_float(host: Host, kind: str) -> None:
    """One kernel has them all."""
    names = [name for name in _ONE if kind in ("f32", "f64") or f"aten.{name}.default" in OF_HALVES]
    text = _text(kind, [("bool" if name in _FLAGS else kind, f"aten.{name}.default(%x)") for name in names], "x")
    rounding = {"f32": 1e-6, "f64": 1e-12, "bf16": 0.0, "f16": 0.0}[kind]
    x = torch.cat([_values(_KINDS[kind]), *randoms(_KINDS[kind], (300,))])
    agree(text, [x], [x[:1]], [x[:0]], rounding=rounding or 4e-3, kernels=1)
    assert host.launches


@pytest.mark.parametrize("kind", ["f32", "bf16", "f16"])
def test_halves_are_rounded_after_each_operator(host: Host, kind: str) -> None:
    """What is only added, multiplied and compared is eager's bit for bit."""
    text = _text(kind, [
        (kind, "aten.mul.Tensor(%x, %y)"), (kind, "aten.add.Tensor(%r0, %x)"), (kind, "aten.sub.Tensor(%r1, %y)"),
        (kind, "aten.div.Tensor(%r2, %y)"), (kind, "aten.mul.Tensor(%r3, 0.1)"),
        (kind, "aten.maximum.default(%r4, %x)"),
        ("bool", "aten.lt.Scalar(%r4, 0.1)"), (kind, "aten.where.self(%r6, %r4, %y)"), (kind, "aten.neg.default(%r7)"),
        (kind, "aten.relu.default(%r8)"), (kind, "aten.clone.default(%r9)"),
    ], "x y")  # fmt: skip
    x, y = randoms(_KINDS[kind], (700,), (700,))
    agree(text, [x, y], [x[:3], y[:3]], kernels=1)


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", [name for name in BINARY_NAMES if not name.startswith("__")])
def test_pairs_of_dtypes(host: Host, name: str) -> None:
    """Each pair of dtypes is computed as PyTorch computes it; what is not a kernel is PyTorch's."""
    overload = "default" if name in _DEFAULT else "Tensor"
    lines, inputs, given = [], [], []
    for place, (a, b) in enumerate(itertools.product(("f32", "i64", "bool", "bf16", "f64"), repeat=2)):
        x, y = _values(_KINDS[a]), _values(_KINDS[b]).flip(0)
        if name in ("remainder", "floor_divide"):
            y = torch.where(y == 0, torch.ones_like(y), y)
        try:
            result = getattr(getattr(torch.ops.aten, name), overload)(x, y)
        except (RuntimeError, NotImplementedError):
            continue
        kind = next((short for short, dtype in _KINDS.items() if dtype == result.dtype), None)
        if kind is None:
            continue
        inputs.append(f'  input %x{place} : {a}[n] = "x{place}"\n  input %y{place} : {b}[n] = "y{place}"')
        lines.append((f"%r{place}", f"  %r{place} : {kind}[n] = aten.{name}.{overload}(%x{place}, %y{place})"))
        given += [x, y]
    names = ", ".join(one for one, _ in lines)
    places = ", ".join(f"${place}" for place in range(len(lines)))
    text = "\n".join(['program "f" {', *inputs, *(line for _, line in lines), f"  return {names} as ({places})", "}"])
    made = compiled(text)
    agree(text, given, rounding=1e-6, in_kernels=len(made.in_kernels()))
    assert name in ("floor_divide", "remainder") or made.in_kernels()


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", *COMPARISONS])
@pytest.mark.parametrize("kind", ["f32", "bf16"])
def test_with_numbers(host: Host, name: str, kind: str) -> None:
    """Numbers known when it is written, and numbers that come as arguments."""
    out = "bool" if name in COMPARISONS else kind
    overload = "Scalar" if name in COMPARISONS else "Tensor"
    text = f"""program "f" {{
      input %x : {kind}[n] = "x"
      input %a : float = "a"
      input %b : int = "b"
      %y : {out}[n] = aten.{name}.{overload}(%x, %a)
      %z : {out}[n] = aten.{name}.{overload}(%x, %b)
      %w : {out}[n] = aten.{name}.{overload}(%x, 0.5)
      return %y, %z, %w as ($0, $1, $2)
    }}"""
    x = torch.cat([_values(_KINDS[kind]), *randoms(_KINDS[kind], (100,))])
    exact = kind == "f32" and name != "div"
    for a, b in [(0.25, 3), (float("inf"), -7), (float("nan"), 1), (-0.0, 2**40)]:
        agree(text, [x, a, b], rounding=0.0 if exact else 1e-2 if kind == "bf16" else 1e-6, kernels=1)
    made = compiled(text)
    with pytest.raises(OverflowError):
        made.run([x, 0.5, 2**70], [])
    assert gave_up(made) == 1, "an int beyond 64 bits is the interpreter's"


@pytest.mark.parametrize("kind", ["f32", "f64", "bf16"])
def test_activations(host: Host, kind: str) -> None:
    calls = {
        "gelu": ["%x", '%x, approximate="tanh"'], "gelu_backward": ["%g, %x", '%g, %x, approximate="tanh"'],
        "silu": ["%x"], "silu_backward": ["%g, %x"], "elu": ["%x", "%x, 0.5, 2.0, 1.5"],
        "softplus": ["%x", "%x, 2, 1.0"],
        "softplus_backward": ["%g, %x, 2.0, 1.0"], "hardtanh": ["%x", "%x, -0.5, 2"], "relu6": ["%x"],
        "leaky_relu": ["%x"], "leaky_relu_backward": ["%g, %x, 0.1, False"], "addcmul": ["%x, %g, %x, value=0.5"],
        "addcdiv": ["%x, %g, %x, value=2"],
    }  # fmt: skip
    assert set(calls) == set(activations.NAMES)
    lines = [(kind, f"aten.{name}.default({given})") for name, ways in calls.items() for given in ways]
    text = _text(kind, lines, "x g")
    x, g = randoms(_KINDS[kind], (260,), (260,))
    edges = torch.tensor([0.0, -0.0, 30.0, -30.0, 100.0, -100.0, 6.0, 1.0, -1.0, float("nan")], dtype=_KINDS[kind])
    agree(text, [x * 3, g], [edges, torch.ones(10, dtype=_KINDS[kind])], kernels=1,
          rounding={"f32": 2e-6, "f64": 2e-6, "bf16": 8e-3}[kind])  # fmt: skip


_BROADCAST = """program "f" {
  input %x : f32[a, b, c] = "x"
  input %y : f32[b, 1] = "y"
  input %z : f32[] = "z"
  %u : f32[a, b, c] = aten.mul.Tensor(%x, %y)
  %v : f32[a, b, c] = aten.add.Tensor(%u, %z)
  %w : f32[b, 1] = aten.exp.default(%y)
  %q : f32[a, b, c] = aten.sub.Tensor(%v, %w)
  %s : f32[] = aten.mul.Tensor(%z, %z)
  return %q, %w, %s as ($0, $1, $2)
}"""


@pytest.mark.parametrize("shape", [(2, 3, 5), (1, 1, 1), (0, 3, 2), (2, 0, 2), (4, 1, 300), (70, 9, 1)])
def test_broadcasting(host: Host, shape: tuple[int, ...]) -> None:
    a, b, c = shape
    agree(_BROADCAST, randoms(torch.float32, (a, b, c), (b, 1), ()), rounding=1e-6)


def test_sizes_that_do_not_fit_raise_as_ever(host: Host) -> None:
    text = """program "f" {
      input %x : f32[a] = "x"
      input %y : f32[b] = "y"
      %z : f32[a] = aten.add.Tensor(%x, %y)
      %w : f32[a] = aten.mul.Tensor(%z, %z)
      return %w as $0
    }"""
    agree(text, *([torch.ones(a), torch.ones(b)] for a, b in [(3, 3), (3, 1), (1, 3), (3, 4), (1, 1)]))


@pytest.mark.parametrize("make", [
    lambda x: x.t().contiguous().t(), lambda x: x[:, ::2], lambda x: x[1:, 3:], lambda x: x[:1].expand(6, 8),
    lambda x: x.t(), lambda x: x[:, :1].expand(6, 8), lambda x: x.flatten()[2:].as_strided((6, 8), (1, 1)),
    lambda x: x.t()[::2],
])  # fmt: skip
def test_layouts(host: Host, make: object) -> None:
    """Results lie in memory as PyTorch's do."""
    assert callable(make)
    text = """program "f" {
      input %x : f32[a, b] = "x"
      input %y : f32[b] = "y"
      %z : f32[a, b] = aten.mul.Tensor(%x, %y)
      %w : f32[a, b] = aten.neg.default(%x)
      %v : f32[a, b] = aten.add.Tensor(%z, %w)
      return %v, %w as ($0, $1)
    }"""
    x = make(randoms(torch.float32, (6, 8))[0])
    agree(text, [x, torch.arange(float(x.shape[1]))])


def test_strided_arguments_are_read_where_they_lie(host: Host) -> None:
    """They are no reason to give up, and each layout is written once."""
    text = """program "f" {
      input %x : f32[a, b] = "x"
      %y : f32[a, b] = aten.exp.default(%x)
      %z : f32[a, b] = aten.mul.Tensor(%y, %x)
      return %z as $0
    }"""
    made = compiled(text)
    whole = randoms(torch.float32, (6, 8))[0]
    for x in (whole, whole.t(), whole[:, 1:], whole[:, 2:], whole.t()[1:]):
        torch.testing.assert_close(made.run([x], [])[0], x.exp() * x)
        assert gave_up(made) == 0
    (region,) = made.written.compiled
    assert len(region.variants) == 2


_FOLDS = """program "f" {
  input %x : f32[a, b, c] = "x"
  %y : f32[a, b, c] = aten.mul.Tensor(%x, 2.0)
  %m : f32[a, b, 1] = aten.mean.dim(%y, [-1], True)
  %k : f32[a, b] = aten.amax.default(%y, [2])
  %l : f32[a, b] = aten.amin.default(%y, [2])
  %n : f32[a, b] = aten.linalg_vector_norm.default(%y, 2, [2])
  %s : f32[a, b] = aten.sum.dim_IntList(%y, [2])
  %z : f32[a, b, c] = aten.sub.Tensor(%y, %m)
  %t : f32[a] = aten.sum.dim_IntList(%z, [1, 2])
  return %m, %k, %l, %n, %s, %z, %t as ($0, $1, $2, $3, $4, $5, $6)
}"""


@pytest.mark.parametrize("shape", [(2, 3, 5), (1, 1, 1), (4, 1, 64), (1, 33, 1), (3, 2, 700)])
def test_folds_of_what_is_computed(host: Host, shape: tuple[int, ...]) -> None:
    agree(_FOLDS, randoms(torch.float32, shape), rounding=1e-4, kernels=2)


def test_folds_with_nan_and_of_nothing(host: Host) -> None:
    x = torch.randn(3, 2, 70)
    x[0, 0, 69], x[1, 1, 0], x[2, 0, 33] = float("nan"), float("inf"), float("-inf")
    agree(_FOLDS, [x], [torch.ones(2, 0, 3)], [torch.ones(2, 3, 0)], rounding=1e-4)


def test_folds_of_whole_numbers(host: Host) -> None:
    text = """program "f" {
      input %x : i64[a, b] = "x"
      %y : i64[a, b] = aten.mul.Tensor(%x, 3)
      %s : i64[a] = aten.sum.dim_IntList(%y, [1])
      %t : i64[a, 1] = aten.sum.dim_IntList(%y, [1], True)
      %z : i64[a, b] = aten.sub.Tensor(%y, %t)
      return %s, %z as ($0, $1)
    }"""
    agree(text, [torch.arange(90).view(9, 10)], [torch.full((2, 300), 2**61)], kernels=1)


def test_what_is_not_read_is_not_stored(host: Host) -> None:
    text = _text("f32", [("f32", "aten.exp.default(%x)"), ("f32", "aten.mul.Tensor(%r0, %r0)"),
                         ("f32", "aten.neg.default(%r1)")], "x").replace("return %r0, %r1, %r2 as ($0, $1, $2)",
                                                                         "return %r2 as $0")  # fmt: skip
    made = agree(text, [torch.randn(40)], rounding=1e-6, kernels=1)
    assert made.cuda_source().count("] = e") == 1


@pytest.mark.parametrize("conversion", ["to.device(%a, device(\"cpu\"), torch.float64)",
                                        "to.dtype_layout(%a, dtype=torch.float64, device=device(\"cpu\"))",
                                        "_to_copy.default(%a, dtype=torch.float64, device=device(\"cpu\"))"])
def test_a_device_that_is_named_is_pytorchs(host: Host, conversion: str) -> None:
    """It may be another one: only conversions that name none are kernels."""
    text = f"""program "f" {{
      input %x : f32[n] = "x"
      %a : f32[n] = aten.neg.default(%x)
      %b : f64[n] = aten.{conversion}
      %c : f64[n] = aten.to.dtype(%a, torch.float64)
      return %b, %c as ($0, $1)
    }}"""
    agree(text, randoms(torch.float32, (5,)), in_kernels=2)
