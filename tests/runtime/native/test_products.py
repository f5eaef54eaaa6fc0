"""Products in C: every kernel, sizes around the vectors' widths, transposed operands."""

from __future__ import annotations

import re

import pytest
import torch

from runtime.executor import compile_program as interpreted
from runtime.ir.parser import parse_program
from runtime.native import NativeExecutable, compile_program
from tests.runtime.native.programs import agree, gave_up

_TEXT = """program "f" {
  input %a : DTYPE[SA] = "a"
  input %b : DTYPE[SB] = "b"
  input %c : DTYPE[n] = "c"
  %x : DTYPE[m, k] = LEFT
  %y : DTYPE[k, n] = RIGHT
  %z : DTYPE[m, n] = aten.mm.default(%x, %y)
  %s : DTYPE[m, n] = aten.addmm.default(%c, %x, %y)
  return %z, %s as ($0, $1)
}"""


@pytest.mark.sample(2)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("right", [False, True])
def test_matrices(dtype: torch.dtype, left: bool, right: bool) -> None:
    """One library serves all sizes."""
    turned = "aten.t.default({})"
    text = _TEXT.replace("DTYPE", "f32" if dtype is torch.float32 else "f64")
    text = text.replace("SA", "k, m" if left else "m, k").replace("SB", "n, k" if right else "k, n")
    text = text.replace("LEFT", turned.format("%a") if left else "aten.neg.default(%a)")
    text = text.replace("RIGHT", turned.format("%b") if right else "aten.neg.default(%b)")
    program = parse_program(text)
    mine, reference = compile_program(program), interpreted(program)
    assert isinstance(mine, NativeExecutable) and mine.share().in_c == 4
    generator = torch.Generator().manual_seed(0)
    for m, k, n in [(1, 1, 1), (1, 64, 70), (4, 16, 48), (3, 5, 7), (5, 33, 65), (2, 100, 130), (40, 50, 60), (0, 3, 2),
                    (3, 0, 2), (9, 70, 200), (37, 21, 1),
                    (5, 300, 10), (2, 70, 33)]:  # fmt: skip
        a = torch.randn((k, m) if left else (m, k), generator=generator, dtype=dtype)
        b = torch.randn((n, k) if right else (k, n), generator=generator, dtype=dtype)
        c = torch.randn(n, generator=generator, dtype=dtype)
        for got, expected in zip(mine.run([a, b, c], []), reference.run([a, b, c], [])):
            torch.testing.assert_close(got, expected, rtol=1e-5, atol=1e-5)
    assert all(not region.failures for region in mine.written.compiled)


_BATCHES = """program "f" {
  input %a : DTYPE[SA] = "a"
  input %b : DTYPE[SB] = "b"
  input %c : DTYPE[SC] = "c"
  %l : DTYPE[g, h, m, k] = LEFT
  %r : DTYPE[g, h, k, n] = RIGHT
  %y : DTYPE[g, h, m, n] = aten.matmul.default(%l, %r)
  %fl : DTYPE[h, m, k] = aten.select.int(%l, 0, 0)
  %fr : DTYPE[h, k, n] = aten.select.int(%r, 0, 0)
  %z : DTYPE[h, m, n] = aten.bmm.default(%fl, %fr)
  %s : DTYPE[h, m, n] = aten.baddbmm.default(%c, %fl, %fr)
  %e : DTYPE[k, n] = aten.select.int(%fr, 0, 0)
  %flat : DTYPE[h, m, n] = aten.matmul.default(%fl, %e)
  return %y, %z, %s, %flat as ($0, $1, $2, $3)
}"""


@pytest.mark.sample(3)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("left", ["aten.neg.default({})", "aten.transpose.int({}, 2, 3)", "aten.transpose.int({}, 1, 2)"
                                  ])
@pytest.mark.parametrize("right", ["aten.neg.default({})", "aten.transpose.int({}, 2, 3)",
                                   "aten.transpose.int({}, 0, 1)", "aten.expand.default({}, [2, -1, -1, -1])"])
def test_batches(dtype: torch.dtype, left: str, right: str) -> None:
    """Batches of matrices, transposed, in any place of memory, and one for all."""

    def given(sizes: list[str], form: str) -> list[str]:
        places = {"2, 3": (2, 3), "1, 2": (1, 2), "0, 1": (0, 1)}
        a, b = next((places[text] for text in places if text in form), (0, 0))
        sizes[a], sizes[b] = sizes[b], sizes[a]
        return ["1", *sizes[1:]] if "expand" in form else sizes

    known = {"g": 2, "h": 3}
    first, second = given(["g", "h", "m", "k"], left), given(["g", "h", "k", "n"], right)
    text = _BATCHES.replace("DTYPE", "f32" if dtype is torch.float32 else "f64").replace("SC", "h, m, n")
    text = text.replace("SA", ", ".join(first)).replace("SB", ", ".join(second))
    text = text.replace("LEFT", left.format("%a")).replace("RIGHT", right.format("%b"))
    for name, size in known.items():
        text = re.sub(rf"(?<=[\[ ]){name}(?=[,\]])", str(size), text)
    program = parse_program(text)
    mine, reference = compile_program(program), interpreted(program)
    assert isinstance(mine, NativeExecutable)
    generator = torch.Generator().manual_seed(0)
    for m, k, n in [(1, 1, 1), (3, 5, 7), (40, 33, 20), (4, 16, 48), (0, 3, 2), (3, 0, 2), (70, 64, 65)]:
        sizes = {**known, "m": m, "k": k, "n": n, "1": 1}
        a, b = (torch.randn([sizes[one] for one in names], generator=generator, dtype=dtype)
                for names in (first, second))  # fmt: skip
        c = torch.randn(known["h"], m, n, generator=generator, dtype=dtype)
        for got, expected in zip(mine.run([a, b, c], []), reference.run([a, b, c], [])):
            torch.testing.assert_close(got, expected, rtol=1e-5, atol=1e-5)
    names = {"aten.matmul.default", "aten.bmm.default", "aten.baddbmm.default"}
    assert not names & set(mine.in_python()) and all(not region.failures for region in mine.written.compiled)


@pytest.mark.parametrize("bias", ["m, n", "n", "1, n", "m, 1"])
@pytest.mark.parametrize(("alpha", "beta"), [(2.0, 1.0), (1.0, 0.0), (0.5, -3.0), (0.0, 1.0), (2, 3)])
@pytest.mark.parametrize("batch", ["", "b, "])
def test_factors(bias: str, alpha: float, beta: float, batch: str) -> None:
    """Of the product and of what it is added to; a bias with factor 0 may be no number."""
    name = "baddbmm" if batch else "addmm"
    text = f"""program "f" {{
      input %c : f32[{bias}] = "c"
      input %x : f32[{batch}m, k] = "x"
      input %y : f32[{batch}k, n] = "y"
      %z : f32[{batch}m, n] = aten.{name}.default(%c, %x, %y, beta={beta}, alpha={alpha})
      return %z as $0
    }}"""
    for b, m, k, n in ((2, 3, 5, 7), (1, 1, 4, 1), (3, 20, 33, 40)):
        sizes = {"m": m, "n": n, "1": 1}
        c = torch.randn([sizes[one] for one in bias.split(", ")])
        if beta == 0:
            c.fill_(float("nan"))
        lead = (b,) if batch else ()
        call = [c, torch.randn(*lead, m, k), torch.randn(*lead, k, n)]
        made = agree(text, call, rounding=1e-5)
        assert not gave_up(made)


def test_operands_that_lie_anywhere() -> None:
    """Expanded and strided operands, of three dimensions and of two."""
    text = """program "f" {
      input %x : f32[b, m, k] = "x"
      input %y : f32[k, n] = "y"
      %t : f32[m, b, k] = aten.transpose.int(%x, 0, 1)
      %u : f32[m, 1, b, k] = aten.unsqueeze.default(%t, 1)
      %e : f32[m, 3, b, k] = aten.expand.default(%u, [-1, 3, -1, -1])
      %s : f32[m, 3, k, b] = aten.transpose.int(%e, 2, 3)
      %p : f32[m, 3, b, b] = aten.matmul.default(%e, %s)
      %z : f32[m, b, n] = aten.matmul.default(%t, %y)
      return %z, %p as ($0, $1)
    }"""
    made = agree(text, *([torch.randn(b, m, k), torch.randn(k, n)] for b, m, k, n in ((2, 3, 4, 5), (4, 2, 33, 20))),
                 rounding=1e-5)  # fmt: skip
    assert not gave_up(made)


_VECTORS = """program "f" {
  input %a : DTYPE[N, K] = "a"
  input %x : DTYPE[K] = "x"
  input %r : DTYPE[m, K] = "r"
  input %n : int = "n"
  %more : bool = scalar.gt(%n, 0)
  %z : DTYPE[N] = aten.matmul.default(%a, %x)
  %f : bool, %i : int, %y : DTYPE[K], %s : DTYPE[N] = while_loop(%more, %n, %x, %z) {
    ^(%g : bool, %j : int, %u : DTYPE[K], %q : DTYPE[N]):
      yield %g
  } {
    ^(%h : bool, %k : int, %v : DTYPE[K], %t : DTYPE[N]):
      %w : DTYPE[N] = aten.matmul.default(%a, %v)
      %p : DTYPE[m, N] = aten.linear.default(%r, %a)
      %c : DTYPE[N] = aten.sum.dim_IntList(%p, [0])
      %d : DTYPE[N] = aten.add.Tensor(%w, %c)
      %e : DTYPE[N] = aten.add.Tensor(%t, %d)
      %b : DTYPE[K] = aten.mul.Tensor(%v, 0.5)
      %l : int = scalar.sub(%k, 1)
      %o : bool = scalar.gt(%l, 0)
      yield %o, %l, %b, %e
  }
  return %s, %y as ($0, $1)
}"""


@pytest.mark.parametrize("kind", ["f32", "f64"])
@pytest.mark.parametrize(("n", "k"), [(16, 16), (64, 33), (15, 16), (100, 1), (70, 70)])
def test_a_matrix_that_a_loop_multiplies_with_vectors(kind: str, n: int, k: int) -> None:
    """Small ones are transposed once, also where the loop multiplies the same matrix with few rows, or with many."""
    dtype = torch.float32 if kind == "f32" else torch.float64
    text = _VECTORS.replace("DTYPE", kind).replace("N", str(n)).replace("K", str(k))
    generator = torch.Generator().manual_seed(n + k)
    a, x = (torch.randn(shape, generator=generator, dtype=dtype) for shape in ((n, k), (k,)))
    calls = [[a, x, torch.randn(m, k, generator=generator, dtype=dtype), count] for m, count in
             ((1, 0), (1, 2), (1, 9), (4, 7), (9, 6), (0, 5))]  # fmt: skip
    made = agree(text, *calls, rounding=1e-4 if kind == "f32" else 1e-12)
    assert not gave_up(made)


_FROZEN = """program "f" {
  input %x : DTYPE[m, 33] = "x"
  param %w : DTYPE[70, 33] "w" = "w" parameter
  param %v : DTYPE[70, 40] "v" = "v" parameter
  param %b : DTYPE[40] "b" = "b" parameter
  %y : DTYPE[m, 70] = aten.linear.default(%x, %w)
  %z : DTYPE[m, 40] = aten.addmm.default(%b, %y, %v)
  %a : DTYPE[m, 33] = aten.mm.default(%y, %w)
  %s : DTYPE[70, 70] = aten.linear.default(%w, %w)
  return %z, %a, %s as ($0, $1, $2)
}"""


@pytest.mark.parametrize("kind", ["f32", "f64"])
@pytest.mark.parametrize("threads", [1, 3])
def test_matrices_that_never_change_are_packed_once(kind: str, threads: int) -> None:
    """Turned and as they lie, for any number of rows; what gives up takes the matrix itself."""
    dtype = torch.float32 if kind == "f32" else torch.float64
    program = parse_program(_FROZEN.replace("DTYPE", kind))
    mine, reference = compile_program(program, frozen=True), interpreted(program)
    assert isinstance(mine, NativeExecutable) and not mine.in_python()
    generator = torch.Generator().manual_seed(0)
    params = [torch.randn(shape, generator=generator, dtype=dtype) / 5 for shape in ((70, 33), (70, 40), (40,))]
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        for m in (1, 2, 5, 6, 13, 40, 300, 0, 7):
            x = torch.randn(m, 33, generator=generator, dtype=dtype)
            for got, expected in zip(mine.run([x], list(params)), reference.run([x], list(params))):
                torch.testing.assert_close(got, expected, rtol=1e-5, atol=1e-5)
    finally:
        torch.set_num_threads(before)
    (region,) = mine.written.compiled
    assert len(region.packed) == 3 and not region.failures
    x = torch.randn(4, 33, dtype=dtype).t().contiguous().t()
    for got, expected in zip(mine.run([x], list(params)), reference.run([x], list(params))):
        torch.testing.assert_close(got, expected, rtol=1e-5, atol=1e-5)


def test_what_may_change_is_not_packed() -> None:
    program = parse_program(_FROZEN.replace("DTYPE", "f32"))
    mine = compile_program(program)
    assert isinstance(mine, NativeExecutable)
    params = [torch.randn(shape) for shape in ((70, 33), (70, 40), (40,))]
    x = torch.randn(7, 33)
    first = mine.run([x], list(params))[0].clone()
    for one in params:
        one.data.mul_(2)
    assert not any(region.packed for region in mine.written.compiled)
    assert not torch.allclose(first, mine.run([x], list(params))[0])
