"""Softmax and norms as kernels that run on the CPU, a block a row: values, sizes, 16 bits, gradients."""

from __future__ import annotations

import pytest
import torch

from tests import devices
from tests.runtime.kernels.host import Host
from tests.runtime.kernels.programs import agree, randoms
from tests.runtime.native import rows
from tests.runtime.native.rows import NOT_FINITE, layer_norm_backward, softmax, text_of, two_softmaxes

SIZES = [*rows.SIZES, (2, 1300)]
KINDS = {"f32": torch.float32, "f64": torch.float64, "bf16": torch.bfloat16, "f16": torch.float16}
ROUNDING = {"f32": 2e-6, "f64": 1e-12, "bf16": 1e-2, "f16": 2e-3}
ALL = pytest.mark.parametrize("kind", list(KINDS))


@ALL
@pytest.mark.parametrize("log", ["", "log_"])
def test_softmax(host: Host, kind: str, log: str) -> None:
    text = softmax(kind, KINDS[kind], log)
    agree(text, *(randoms(KINDS[kind], size, size) for size in SIZES), rounding=ROUNDING[kind] * 4, kernels=1)


def test_softmax_of_what_is_not_finite(host: Host) -> None:
    agree(two_softmaxes(), [NOT_FINITE], rounding=2e-6)


@ALL
@pytest.mark.parametrize("given", ["%w, %b", "%w, None", "None, %b", "None, None"])
def test_layer_norm(host: Host, kind: str, given: str) -> None:
    facts = "f32" if devices.on_cuda() and "16" in kind else "T"  # the means' dtype on a device
    text = text_of(kind, "x:a,n w:n b:n", (
        "%v : T[a, n] = aten.mul.Tensor(%x, 2.0)\n"
        f"%y : T[a, n], %m : {facts}[a, 1], %r : {facts}[a, 1] = "
        f"aten.native_layer_norm.default(%v, [%n], {given}, 1e-05)\n"
        f"%z : T[a, n] = aten.layer_norm.default(%v, [%n], {given})"
    ), "%y, %m, %r, %z").replace("  %v :", '  %n : int = scalar.size(%x, 1)\n  %v :', 1)  # fmt: skip
    calls = [randoms(KINDS[kind], (a, n), (n,), (n,)) for a, n in SIZES if n]
    agree(text, *calls, rounding=ROUNDING[kind] * 8, in_kernels=3, kernels=1)


@ALL
@pytest.mark.parametrize("mask", ["[True, True, True]", "[True, False, False]", "[False, True, True]"])
def test_layer_norm_backward(host: Host, kind: str, mask: str) -> None:
    text = layer_norm_backward(kind, mask)
    calls = []
    for a, n in SIZES:
        if n and a:
            g, x, w, b = randoms(KINDS[kind], (a, n), (a, n), (n,), (n,))
            _, m, r = torch.native_layer_norm(x, [n], w, b, 1e-5)
            calls.append([g, x, m, r, w, b])
    agree(text, *calls, rounding={"f32": 1e-4, "f64": 1e-10, "bf16": 0.06, "f16": 1e-2}[kind], in_kernels=1)


@ALL
def test_rms_norm(host: Host, kind: str) -> None:
    text = text_of(kind, "x:a,b,6 w:6", "%z : T[a, b, 6] = aten.rms_norm.default(%x, [6], %w, 0.25)\n"
                 "%y : T[a, b, 6] = aten.rms_norm.default(%x, [6], None, 1e-6)", "%y, %z")  # fmt: skip
    agree(text, randoms(KINDS[kind], (2, 3, 6), (6,)), randoms(KINDS[kind], (1, 1, 6), (6,)), rounding=ROUNDING[kind])


def test_rows_of_what_is_computed(host: Host) -> None:
    """What a row reads is computed before, and what it gives is read after it, by the same block."""
    text = text_of("f32", "x:a,n y:a,n", (
        "%u : T[a, n] = aten.add.Tensor(%x, %y)\n"
        "%s : T[a, n] = aten._softmax.default(%u, -1, False)\n"
        "%v : T[a, n] = aten.mul.Tensor(%s, %u)\n"
        "%w : T[a, n] = aten.exp.default(%v)"
    ), "%w")  # fmt: skip
    agree(text, *(randoms(torch.float32, size, size) for size in SIZES), rounding=1e-5, kernels=1)


_OTHER_ROWS = """program "f" {
  input %x : f32[a, a, n] = "x"
  %u : f32[a, a, n] = aten.mul.Tensor(%x, 2.0)
  %m : f32[a, a] = aten.sum.dim_IntList(%u, [2])
  %s : f32[a, a, n] = aten._softmax.default(%u, -1, False)
  LINE
  return %v as $0
}"""


@pytest.mark.parametrize("line,kernels", [
    ("%v : f32[a, a, a] = aten.add.Tensor(%s, %m)", 2),
    ("%v : f32[a, a, a] = aten.mul.Tensor(%s, %s)", 1),
    ("%k : f32[a, a, 1] = aten.sum.dim_IntList(%s, [2], True)\n  %v : f32[a, a, n] = aten.sub.Tensor(%s, %k)", 1),
    ("%k : f32[a] = aten.sum.dim_IntList(%s, [1, 2])\n  %v : f32[a, a, a] = aten.sub.Tensor(%s, %k)", 3),
])  # fmt: skip
def test_what_another_row_has_is_read_in_another_kernel(host: Host, line: str, kernels: int) -> None:
    """A block knows when its own row is there, and of no other."""
    text = _OTHER_ROWS.replace("LINE", line)
    agree(text, randoms(torch.float32, (4, 4, 4)), rounding=1e-5, kernels=kernels)
