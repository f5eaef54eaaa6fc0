"""Softmax and norms: whole Programs in C against the interpreter, backward operators too."""

from __future__ import annotations

import pytest
import torch

from tests.runtime.native.programs import agree

SIZES = [(3, 5), (2, 64), (1, 1), (4, 0), (0, 3), (7, 130)]


def _text(dtype: str, inputs: str, lines: str, results: str) -> str:
    given = "\n".join(f'  input %{name} : {dtype}[{shape}] = "{name}"' for name, shape in
                      (one.split(":") for one in inputs.split()))  # fmt: skip
    names = results.split(", ")
    body = "\n".join(f"  {line}" for line in lines.replace("T[", f"{dtype}[").split("\n"))
    places = ", ".join(f"${place}" for place in range(len(names)))
    returned = f"return {results} as ({places})" if len(names) > 1 else f"return {results} as $0"
    return f'program "f" {{\n{given}\n{body}\n  {returned}\n}}'


def _randoms(dtype: torch.dtype, *shapes: tuple[int, ...]) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(sum(map(sum, shapes)))
    return [torch.randn(shape, generator=generator, dtype=dtype) for shape in shapes]


DTYPES = pytest.mark.parametrize("dtype,kind", [("f32", torch.float32), ("f64", torch.float64)])


@DTYPES
@pytest.mark.parametrize("log", ["", "log_"])
def test_softmax(dtype: str, kind: torch.dtype, log: str) -> None:
    name = "float32" if dtype == "f32" else "float64"
    text = _text(dtype, "x:a,n g:a,n", (
        f"%y : T[a, n] = aten._{log}softmax.default(%x, -1, False)\n"
        f"%z : T[a, n] = aten.{log}softmax.int(%g, 1)\n"
        f"%d : T[a, n] = aten._{log}softmax_backward_data.default(%g, %y, -1, torch.{name})"
    ), "%y, %z, %d")  # fmt: skip
    agree(text, *(_randoms(kind, size, size) for size in SIZES), rounding=2e-6)


def test_softmax_of_what_is_not_finite() -> None:
    text = _text("f32", "x:a,n", "%y : T[a, n] = aten._softmax.default(%x, -1, False)\n"
                 "%z : T[a, n] = aten._log_softmax.default(%x, -1, False)", "%y, %z")  # fmt: skip
    inf, nan = float("inf"), float("nan")
    agree(text, [torch.tensor([[-inf, 0.0, 1.0], [-inf, -inf, -inf], [nan, 0.0, 1.0], [0.0, nan, 1.0], [inf, 0.0, 1.0],
                               [200.0, -200.0, 0.0]])], rounding=2e-6)  # fmt: skip


@DTYPES
@pytest.mark.parametrize("given", ["%w, %b", "%w, None", "None, %b", "None, None"])
def test_layer_norm(dtype: str, kind: torch.dtype, given: str) -> None:
    text = _text(dtype, "x:a,n w:n b:n", (
        f"%y : T[a, n], %m : T[a, 1], %r : T[a, 1] = aten.native_layer_norm.default(%x, [%n], {given}, 1e-05)\n"
        f"%z : T[a, n] = aten.layer_norm.default(%x, [%n], {given})"
    ), "%y, %m, %r, %z").replace("  %y :", '  %n : int = scalar.size(%x, 1)\n  %y :', 1)  # fmt: skip
    calls = [_randoms(kind, (a, n), (n,), (n,)) for a, n in SIZES if n]
    agree(text, *calls, rounding=1e-5)


@DTYPES
@pytest.mark.parametrize("mask", ["[True, True, True]", "[True, False, False]"])
def test_layer_norm_backward(dtype: str, kind: torch.dtype, mask: str) -> None:
    results = "%d, %u, %v" if "False" not in mask else "%d"
    text = _text(dtype, "g:a,n x:a,n m:a,1 r:a,1 w:n b:n", (
        "%n : int = scalar.size(%x, 1)\n"
        f"%d : T[a, n], %u : T[n], %v : T[n] = aten.native_layer_norm_backward.default("
        f"%g, %x, [%n], %m, %r, %w, %b, {mask})"
    ), results)  # fmt: skip
    calls = [_randoms(kind, (a, n), (a, n), (a, 1), (a, 1), (n,), (n,)) for a, n in SIZES if n and a]
    agree(text, *calls, rounding=1e-4 if kind is torch.float32 else 1e-10)


def test_rms_norm() -> None:
    text = _text("f32", "x:a,b,6 w:6", "%y : T[a, b, 6] = aten.rms_norm.default(%x, [6], %w)\n"
                 "%z : T[a, b, 6] = aten.rms_norm.default(%x, [6], None, 0.25)", "%y, %z")  # fmt: skip
    agree(text, _randoms(torch.float32, (2, 3, 6), (6,)), _randoms(torch.float32, (1, 1, 6), (6,)), rounding=2e-6)


@pytest.mark.sample(3)
@DTYPES
@pytest.mark.parametrize("call", [
    "gelu.default(%x)", 'gelu.default(%x, approximate="tanh")', "gelu_backward.default(%g, %x)",
    'gelu_backward.default(%g, %x, approximate="tanh")', "silu.default(%x)", "silu_backward.default(%g, %x)",
    "elu.default(%x)", "elu.default(%x, 0.5, 2.0, 1.5)", "softplus.default(%x)", "softplus.default(%x, 2, 1.0)",
    "softplus_backward.default(%g, %x, 2.0, 1.0)", "hardtanh.default(%x)", "hardtanh.default(%x, -0.5, 2)",
    "relu6.default(%x)", "leaky_relu.default(%x)", "leaky_relu_backward.default(%g, %x, 0.1, False)",
    "addcmul.default(%x, %g, %x)", "addcmul.default(%x, %g, %x, value=0.5)", "addcdiv.default(%x, %g, %x, value=2)",
])  # fmt: skip
def test_activations(dtype: str, kind: torch.dtype, call: str) -> None:
    text = _text(dtype, "x:n g:n", f"%y : T[n] = aten.{call}", "%y")
    x, g = _randoms(kind, (75,), (75,))
    edges = torch.tensor([0.0, -0.0, 30.0, -30.0, 100.0, -100.0, 6.0, 1.0, -1.0, float("nan")], dtype=kind)
    agree(text, [x * 3, g], [edges, torch.ones(10, dtype=kind)], rounding=2e-6)
