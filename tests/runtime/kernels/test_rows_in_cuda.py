"""Softmax and norms as kernels that run on the CPU, a block a row: values, sizes, 16 bits, gradients."""

from __future__ import annotations

import re

import pytest
import torch

from runtime.kernels import launch
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


STAGES = text_of("f32", "x:a,n y:a,n", (
    "%u : T[a, n] = aten.add.Tensor(%x, %y)\n"
    "%s : T[a, n] = aten._softmax.default(%u, -1, False)\n"
    "%v : T[a, n] = aten.mul.Tensor(%s, %u)\n"
    "%t : T[a, n] = aten._softmax.default(%v, -1, False)\n"
    "%m : T[a, 1] = aten.sum.dim_IntList(%t, [1], True)\n"
    "%w : T[a, n] = aten.sub.Tensor(%t, %m)\n"
    "%z : T[a, n] = aten.mul.Tensor(%w, %v)"
), "%z")  # fmt: skip


def made_of(texts: str) -> tuple[int, int]:
    """How many rows the host would make memory for if they were long, and how many always."""
    return texts.count(" = None if "), len(re.findall(r"^ p\d+ = empty", texts, re.M))


@pytest.mark.parametrize("n", [3, 700, 2600, 3500, 5200, 11_000])
def test_rows_between_stages_stay_in_the_memory_of_a_block(host: Host, n: int) -> None:
    """As many of them as there is room for."""
    made = agree(STAGES, randoms(torch.float32, (3, n), (3, n)), rounding=1e-5, kernels=1)
    source = made.written.compiled[0].source
    assert made_of(source) == (4, 2)  # u, s and v, t; the sums of rows, and the result


def test_rows_share_a_place_once_they_are_read(host: Host) -> None:
    """t comes after s was read for the last time, and v is read until the end."""
    (kernel,) = agree(STAGES, randoms(torch.float32, (2, 9), (2, 9)), rounding=1e-5).written.compiled[0].kernels.kernels
    assert kernel.shared == (4, 8, 12)


def test_a_next_row_waits_until_the_last_was_read(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    """A block with several rows has them in the same place."""
    monkeypatch.setattr(launch, "MOST_BLOCKS", 2)
    agree(STAGES, randoms(torch.float32, (7, 130), (7, 130)), rounding=1e-5, kernels=1)


@pytest.mark.parametrize("n", [9, 200])
def test_rows_of_several_sizes_of_elements(host: Host, n: int) -> None:
    """Rows of 8, 4, 2 and 1 bytes an element lie where their elements may; so do those of an odd number."""
    text = text_of("f32", "x:a,n y:a,n", (
        "%s : f32[a, n] = aten._softmax.default(%x, -1, False)\n"
        "%d : f64[a, n] = aten.to.dtype(%s, torch.float64)\n"
        "%b : bool[a, n] = aten.gt.Tensor(%s, %y)\n"
        "%h : bf16[a, n] = aten.to.dtype(%s, torch.bfloat16)\n"
        "%i : i64[a, n] = aten.to.dtype(%b, torch.int64)\n"
        "%k : f64[a, n] = aten.mul.Tensor(%d, %i)\n"
        "%t : f32[a, n] = aten._softmax.default(%s, -1, False)\n"
        "%p : f64[a, n] = aten.mul.Tensor(%d, %t)\n"
        "%q : f64[a, n] = aten.add.Tensor(%k, %h)\n"
        "%z : f64[a, n] = aten.where.self(%b, %p, %q)"
    ), "%z")  # fmt: skip
    made = agree(text, randoms(torch.float32, (3, n), (3, n)), rounding=1e-3, kernels=1)
    assert made.written.compiled[0].kernels.kernels[0].shared == (8, 16, 20, 24, 26, 27)


@ALL
@pytest.mark.parametrize("most", [3, *(pytest.param(one, marks=pytest.mark.slow) for one in (1, 1024))])
def test_sums_down_columns_of_few_and_many_blocks(host: Host, kind: str, most: int, monkeypatch: pytest.MonkeyPatch
                                                  ) -> None:  # fmt: skip
    """Each block adds up its own rows, however many those are; what is computed before and after is the same kernel."""
    monkeypatch.setattr(launch, "MOST_PARTS", most)
    text = text_of(kind, "h:a,n x:a,n m:a,1 r:a,1 w:n b:n", (
        "%n : int = scalar.size(%x, 1)\n"
        "%g : T[a, n] = aten.mul.Tensor(%h, 0.5)\n"
        "%d : T[a, n], %u : T[n], %v : T[n] = aten.native_layer_norm_backward.default("
        "%g, %x, [%n], %m, %r, %w, %b, [True, True, True])\n"
        "%e : T[a, n] = aten.mul.Tensor(%d, 2.0)\n"
        "%t : T[n] = aten.neg.default(%u)"
    ), "%e, %t, %v")  # fmt: skip
    calls = []
    for a, n in [(11, 5), (1, 70), *([(5, 6000), (3, 11_000)] if kind == "f32" else [])]:
        g, x, w, b = randoms(KINDS[kind], (a, n), (a, n), (n,), (n,))
        _, m, r = torch.native_layer_norm(x, [n], w, b, 1e-5)
        calls.append([g, x, m, r, w, b])
    rounding = {"f32": 1e-4, "f64": 1e-10, "bf16": 0.06, "f16": 1e-2}[kind]
    agree(text, *calls, rounding=rounding, in_kernels=4, kernels=3)  # rows, what the blocks have, and neg


@pytest.mark.parametrize("kind", ["f32", "bf16"])
def test_the_sums_of_no_rows_are_zero(host: Host, kind: str) -> None:
    """The gradients of a norm's weights for a batch of none."""
    text = layer_norm_backward(kind, "[True, True, True]")
    g, x, w, b = randoms(KINDS[kind], (0, 6), (0, 6), (6,), (6,))
    m, r = torch.empty(0, 1), torch.empty(0, 1)
    if kind == "bf16" and not devices.on_cuda():
        m, r = m.bfloat16(), r.bfloat16()
    agree(text, [g, x, m, r, w, b], in_kernels=1)


def test_a_norm_over_all_dimensions(host: Host) -> None:
    """One row: its sums have the row's own sizes, and are there only after it."""
    text = text_of("f32", "g:a,n x:a,n m:1,1 r:1,1 w:a,n b:a,n", (
        "%a : int = scalar.size(%x, 0)\n"
        "%n : int = scalar.size(%x, 1)\n"
        "%d : T[a, n], %u : T[a, n], %v : T[a, n] = aten.native_layer_norm_backward.default("
        "%g, %x, [%a, %n], %m, %r, %w, %b, [True, True, True])\n"
        "%t : T[a, n] = aten.add.Tensor(%d, %u)\n"
        "%s : T[a, n] = aten.mul.Tensor(%t, %v)"
    ), "%s")  # fmt: skip
    g, x, w, b = randoms(torch.float32, (3, 5), (3, 5), (3, 5), (3, 5))
    _, m, r = torch.native_layer_norm(x, [3, 5], w, b, 1e-5)
    agree(text, [g, x, m, r, w, b], rounding=1e-4, in_kernels=3)


def test_two_norms_of_the_same_rows_in_one_kernel(host: Host) -> None:
    """Their sums are begun in one kernel, and ended in one."""
    text = text_of("f32", "g:a,n x:a,n m:a,1 r:a,1 w:n", (
        "%n : int = scalar.size(%x, 1)\n"
        "%d : T[a, n], %u : T[n], %v : T[n] = aten.native_layer_norm_backward.default("
        "%g, %x, [%n], %m, %r, %w, %w, [True, True, True])\n"
        "%e : T[a, n], %s : T[n], %t : T[n] = aten.native_layer_norm_backward.default("
        "%d, %x, [%n], %m, %r, %w, %w, [True, True, True])"
    ), "%e, %u, %v, %s, %t")  # fmt: skip
    g, x, w = randoms(torch.float32, (5, 40), (5, 40), (40,))
    _, m, r = torch.native_layer_norm(x, [40], w, w, 1e-5)
    agree(text, [g, x, m, r, w], rounding=1e-4, in_kernels=2, kernels=2)


def test_many_norms_of_the_same_rows(host: Host) -> None:
    """What a kernel ends has room in a block's memory, however many sums one kernel began."""
    lines = "\n".join(f"%d{k + 1} : T[a, n], %u{k} : T[n], %v{k} : T[n] = aten.native_layer_norm_backward.default("
                      f"%{'g' if not k else f'd{k}'}, %x, [%n], %m, %r, %w, %w, [True, True, True])"
                      for k in range(5))  # fmt: skip
    results = ", ".join(f"%u{k}, %v{k}" for k in range(5))
    text = text_of("f64", "g:a,n x:a,n m:a,1 r:a,1 w:n", f"%n : int = scalar.size(%x, 1)\n{lines}", f"%d5, {results}")
    g, x, w = randoms(torch.float64, (5, 40), (5, 40), (40,))
    _, m, r = torch.native_layer_norm(x, [40], w, w, 1e-5)
    agree(text, [g, x, m, r, w], rounding=1e-8, in_kernels=5, kernels=4)
