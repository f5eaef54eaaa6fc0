"""Softmax and norms: whole Programs in C against the interpreter, backward operators too."""

from __future__ import annotations

import pytest
import torch

from tests.runtime.native.programs import agree, randoms
from tests.runtime.native.rows import NOT_FINITE, SIZES, layer_norm_backward, softmax, text_of, two_softmaxes

DTYPES = pytest.mark.parametrize("dtype,kind", [("f32", torch.float32), ("f64", torch.float64)])


@DTYPES
@pytest.mark.parametrize("log", ["", "log_"])
def test_softmax(dtype: str, kind: torch.dtype, log: str) -> None:
    text = softmax(dtype, kind, log)
    agree(text, *(randoms(kind, size, size) for size in SIZES), rounding=2e-6)


def test_softmax_of_what_is_not_finite() -> None:
    agree(two_softmaxes(), [NOT_FINITE], rounding=2e-6)


@DTYPES
@pytest.mark.parametrize("given", ["%w, %b", "%w, None", "None, %b", "None, None"])
def test_layer_norm(dtype: str, kind: torch.dtype, given: str) -> None:
    text = text_of(dtype, "x:a,n w:n b:n", (
        f"%y : T[a, n], %m : T[a, 1], %r : T[a, 1] = aten.native_layer_norm.default(%x, [%n], {given}, 1e-05)\n"
        f"%z : T[a, n] = aten.layer_norm.default(%x, [%n], {given})"
    ), "%y, %m, %r, %z").replace("  %y :", '  %n : int = scalar.size(%x, 1)\n  %y :', 1)  # fmt: skip
    calls = [randoms(kind, (a, n), (n,), (n,)) for a, n in SIZES if n]
    agree(text, *calls, rounding=1e-5)


@DTYPES
@pytest.mark.parametrize("mask", ["[True, True, True]", "[True, False, False]"])
def test_layer_norm_backward(dtype: str, kind: torch.dtype, mask: str) -> None:
    text = layer_norm_backward(dtype, mask)
    calls = [randoms(kind, (a, n), (a, n), (a, 1), (a, 1), (n,), (n,)) for a, n in SIZES if n and a]
    agree(text, *calls, rounding=1e-4 if kind is torch.float32 else 1e-10)


def test_rms_norm() -> None:
    text = text_of("f32", "x:a,b,6 w:6", "%y : T[a, b, 6] = aten.rms_norm.default(%x, [6], %w)\n"
                 "%z : T[a, b, 6] = aten.rms_norm.default(%x, [6], None, 0.25)", "%y, %z")  # fmt: skip
    agree(text, randoms(torch.float32, (2, 3, 6), (6,)), randoms(torch.float32, (1, 1, 6), (6,)), rounding=2e-6)


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
    text = text_of(dtype, "x:n g:n", f"%y : T[n] = aten.{call}", "%y")
    x, g = randoms(kind, (75,), (75,))
    edges = torch.tensor([0.0, -0.0, 30.0, -30.0, 100.0, -100.0, 6.0, 1.0, -1.0, float("nan")], dtype=kind)
    agree(text, [x * 3, g], [edges, torch.ones(10, dtype=kind)], rounding=2e-6)
