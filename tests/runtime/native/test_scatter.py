"""Gradients of slices: made where they are read, added in their place where a loop adds them up."""

from __future__ import annotations

import pytest
import torch

from tests.runtime.native.programs import agree, gave_up

_LOOP = """program "f" {
  input %x : f32[a, b] = "x"
  input %g : f32[b] = "g"
  input %h : f32[c, d] = "h"
  input %n : int = "n"
  %a : int = scalar.size(%x, 0)
  %b : int = scalar.size(%x, 1)
  %more : bool = scalar.lt(0, %n)
  %f : bool, %i : int, %t : f32[a, b], %u : f32[4, 6] = while_loop(%more, %n, FIRST, FIRST) {
    ^(%f1 : bool, %i1 : int, %t1 : f32[a, b], %u1 : f32[4, 6]):
      yield %f1
  } {
    ^(%f2 : bool, %i2 : int, %t2 : f32[a, b], %u2 : f32[4, 6]):
      %j : int = scalar.sub(%i2, 1)
      %k : f32[b] = aten.mul.Scalar(%g, 0.5)
      %s : f32[a, b] = aten.select_backward.default(%k, [%a, %b], 0, %j)
      %p : f32[4, 6] = aten.slice_backward.default(%h, [4, 6], 1, 2, 5, 1)
      %t3 : f32[a, b] = grad.accumulate(%t2, %s)
      %u3 : f32[4, 6] = grad.accumulate(%u2, %p)
      MORE
      %l : bool = scalar.lt(0, %j)
      yield %l, %j, %t3, %u3
  }
  return %t, %u as ($0, $1)
}"""


@pytest.mark.parametrize("first", ["None", "given"])
@pytest.mark.parametrize("more", ["", "%v : f32[a, b] = aten.exp.default(%s)"])
def test_added_up_in_a_loop(first: str, more: str) -> None:
    """Also where the whole gradient is read besides, and where the total is an argument."""
    text = _LOOP.replace("MORE", more)
    if first == "None":
        text = text.replace("FIRST", "None")
    else:
        totals = "  %t0 : f32[a, b] = aten.exp.default(%x)\n  %u0 : f32[4, 6] = aten.zeros.default([4, 6])\n"
        text = text.replace("FIRST, FIRST", "%t0, %u0").replace("  %a : int", totals + "  %a : int", 1)
    generator = torch.Generator().manual_seed(0)
    given = [torch.randn(size, generator=generator) for size in ((5, 3), (3,), (4, 3))]
    made = agree(text, *([*given, count] for count in (0, 1, 2, 5)), rounding=1e-6)
    assert not gave_up(made)
    with pytest.raises(IndexError):
        made.run([*given, 6], [])


def test_read_as_it_is() -> None:
    """Zeros but for the slice."""
    text = """program "f" {
  input %g : f32[2, 3] = "g"
  input %i : int = "i"
  %s : f32[2, 4, 3] = aten.select_backward.default(%g, [2, 4, 3], 1, %i)
  %p : f32[5, 3] = aten.slice_backward.default(%g, [5, 3], 0, -3, 4, 1)
  return %s, %p as ($0, $1)
}"""
    g = torch.randn(2, 3)
    agree(text, [g, 0], [g, -1], [g, 3], [g, 4])
