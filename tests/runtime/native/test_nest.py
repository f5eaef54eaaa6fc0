"""Nests: folds and copies that join the loops of what they read, and memory that results take over."""

from __future__ import annotations

import pytest
import torch

from tests.runtime.native.programs import agree


def _rand(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))


_FOLDS = """program "f" {
  input %x : f32[a, b, c] = "x"
  %y : f32[a, b, c] = aten.neg.default(%x)
  %s : f32[] = aten.sum.default(%y)
  %m : f32[a, b, 1] = aten.mean.dim(%y, [-1], True)
  %t : f32[a] = aten.sum.dim_IntList(%y, [1, 2])
  %k : f32[a, 1, 1] = aten.amax.default(%y, [2, 1], True)
  %l : f32[b, c] = aten.sum.dim_IntList(%y, [0])
  %n : f32[] = aten.linalg_vector_norm.default(%y)
  %z : f32[a, b, c] = aten.sub.Tensor(%y, %m)
  %q : f32[a, b, c] = aten.exp.default(%z)
  %r : f32[a, b] = aten.sum.dim_IntList(%q, [2])
  %u : f32[] = aten.add.Tensor(%s, %n)
  %v : f32[a, b, c] = aten.mul.Tensor(%q, %u)
  return %s, %m, %t, %k, %l, %n, %r, %u, %v as ($0, $1, $2, $3, $4, $5, $6, $7, $8)
}"""


@pytest.mark.parametrize("shape", [(2, 3, 5), (1, 1, 1), (4, 1, 64), (1, 33, 1), (3, 2, 17), (9, 8, 130)])
def test_folds_of_what_is_pending(shape: tuple[int, ...]) -> None:
    """Each reads an element that is never stored, or stored once; results that are late are there when read."""
    agree(_FOLDS, [_rand(*shape)], rounding=1e-4)


def test_folds_of_nothing() -> None:
    """Sums of no elements are 0; the largest of none is the interpreter's exception."""
    text = _FOLDS.replace("  %k : f32[a, 1, 1] = aten.amax.default(%y, [2, 1], True)\n", "")
    text = text.replace(", %k", "").replace("%v as ($0, $1, $2, $3, $4, $5, $6, $7, $8)",
                                            "%v as ($0, $1, $2, $3, $4, $5, $6, $7)")  # fmt: skip
    agree(text, [_rand(2, 0, 3)], [_rand(0, 2, 3)], [_rand(2, 3, 0)], rounding=1e-5)
    agree(_FOLDS, [_rand(2, 0, 3)], rounding=1e-5)


@pytest.mark.parametrize("fold", ["max", "min"])
def test_extremes_with_nan(fold: str) -> None:
    """A nan anywhere is the result, in whole vectors and after them."""
    text = f"""program "f" {{
  input %x : f32[n] = "x"
  %y : f32[n] = aten.mul.Scalar(%x, 2.0)
  %s : f32[] = aten.{fold}.default(%y)
  %t : f32[] = aten.{fold}.default(%x)
  return %s, %t as ($0, $1)
}}"""
    calls = []
    for count, at in [(1, 0), (40, 0), (40, 17), (40, 39), (5, 3)]:
        x = _rand(count)
        calls.append([x.clone()])
        x[at] = float("nan")
        calls.append([x])
    infinite = torch.tensor([float("-inf"), float("inf")])
    agree(text, *calls, [infinite[:1]], [infinite[1:]], [infinite])


_CAT = """program "f" {
  input %x : f32[a, b] = "x"
  %y : f32[a, b] = aten.neg.default(%x)
  %z : f32[a, b] = aten.mul.Tensor(%y, %y)
  %c : f32[a, d] = aten.cat.default([%y, %z, %y], DIM)
  %w : f32[a, b] = aten.exp.default(%z)
  %e : f32[a, d] = aten.cat.default([%w, %x, %z], DIM)
  %s : f32[a, d] = aten.add.Tensor(%c, %e)
  %o : f32[a, b] = aten.cat.default([%w], DIM)
  %p : f32[a, b] = aten.add.Tensor(%o, %w)
  return %c, %s, %o, %p, %z as ($0, $1, $2, $3, $4)
}"""


@pytest.mark.parametrize("shape", [(2, 3), (1, 1), (4, 40), (1, 0)])
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_cat_of_what_is_pending(shape: tuple[int, int], dim: int) -> None:
    """The parts go straight to their places; what reads the whole comes after them."""
    text = _CAT.replace("DIM", str(dim))
    if dim == 0:
        text = text.replace("f32[a, d]", "f32[d, b]")
    agree(text, [_rand(*shape)], rounding=1e-6)


_REUSE = """program "f" {
  input %x : f32[n] = "x"
  %a : f32[n] = aten.exp.default(%x)
  %s : f32[] = aten.amax.default(%x)
  %b : f32[n] = aten.sub.Tensor(%a, %s)
  %v : f32[m] = aten.slice.Tensor(%b, 0, 1, 9223372036854775807)
  %c : f32[n] = aten.mul.Tensor(%b, %b)
  %k : f32[] = aten.amax.default(%c)
  %d : f32[n] = aten.add.Tensor(%c, %k)
  %e : f32[n] = aten.add.Tensor(%d, %x)
  %h : f32[] = aten.amax.default(%e)
  %i : i64[n] = aten._to_copy.default(%e, dtype=torch.int64)
  %j : f32[n] = aten.div.Tensor(%e, %h)
  return %v, %d, %i, %j as ($0, $1, $2, $3)
}"""


@pytest.mark.parametrize("count", [8192, 100_000])
def test_memory_of_what_dies(count: int) -> None:
    """A result in an operand's place: not if a view of it lives on, not if it is an argument's."""
    x = _rand(count)
    before = x.clone()
    agree(_REUSE, [x], [x[:5000].clone()], rounding=1e-5)
    assert torch.equal(x, before)


_LOOP = """program "f" {
  input %x : f32[n] = "x"
  input %w : f32[k, k] = "w"
  input %m : f32[r, k] = "m"
  input %c : int = "c"
  %more : bool = scalar.lt(0, %c)
  %f : bool, %i : int, %y : f32[n], %h : f32[r, k] = while_loop(%more, %c, %x, %m) {
    ^(%f1 : bool, %i1 : int, %y1 : f32[n], %h1 : f32[r, k]):
      yield %f1
  } {
    ^(%f2 : bool, %i2 : int, %y2 : f32[n], %h2 : f32[r, k]):
      %a : f32[n] = aten.mul.Scalar(%y2, 0.5)
      %s : f32[] = aten.amax.default(%a)
      %b : f32[n] = aten.add.Tensor(%a, %s)
      %t : f32[k, k] = aten.t.default(%w)
      %g : f32[r, k] = aten.mm.default(%h2, %t)
      %u : f32[k, k] = aten.mm.default(%t, %w)
      %q : f32[r, k] = aten.mm.default(%g, %u)
      %d : f32[r, k] = aten.tanh.default(%q)
      %j : int = scalar.sub(%i2, 1)
      %l : bool = scalar.lt(0, %j)
      yield %l, %j, %b, %d
  }
  return %y, %h as ($0, $1)
}"""


@pytest.mark.parametrize("rows", [1, 3, 20])
def test_loops_keep_memory_and_turned_weights(rows: int) -> None:
    """Memory beyond what chunks give, and a weight whose transposed copy is made in the third iteration."""
    for count in (0, 1, 2, 3, 9):
        agree(_LOOP, [_rand(70_000), _rand(12, 12) / 4, _rand(rows, 12), count], rounding=1e-4)
