"""How much memory a region holds at its highest point, in what PyTorch's allocator hands out."""

from __future__ import annotations

from typing import Any

import torch

from benchmarks.memory import allocated
from runtime.native import NativeExecutable
from runtime.native.stack import Stack
from tests.runtime.native.programs import agree, compiled, gave_up

SIDE = 512
PIECE = SIDE * SIDE * 4
"""Bytes of one tensor of the Programs here: more than C takes for itself."""


def pieces(made: NativeExecutable, *given: Any) -> float:
    """In tensors: the highest point of a run in C."""
    made.run([*given], [])
    highest = allocated(lambda: made.run([*given], []))
    assert not gave_up(made)
    return round(highest / PIECE, 2)


_KEPT = """program "f" {
  input %x : f32[n, n] = "x"
  input %n : int = "n"
  %xs : list<f32[n, n]> = array.new([])
  %go : bool = scalar.gt(%n, 0)
  %f : bool, %i : int, %s : f32[n, n], %ys : list<f32[n, n]> = while_loop(%go, %n, %x, %xs) {
    ^(%g : bool, %j : int, %t : f32[n, n], %zs : list<f32[n, n]>):
      yield %g
  } {
    ^(%h : bool, %k : int, %u : f32[n, n], %ws : list<f32[n, n]>):
      %v : f32[n, n] = aten.tanh.default(%u)
      %vs : list<f32[n, n]> = array.append(%ws, %v)
      %l : int = scalar.sub(%k, 1)
      %b : bool = scalar.gt(%l, 0)
      yield %b, %l, %v, %vs
  }
  return %ys as $0
}"""


def test_big_items_of_a_list_leave_as_they_are() -> None:
    """Rows of one tensor would be there beside what they are copied from."""
    made = compiled(_KEPT, kept=[0])
    assert pieces(made, torch.randn(SIDE, SIDE), 6) == 6
    (items,) = made.run([torch.zeros(SIDE, SIDE), 3], [])
    assert type(items) is list and [one.shape for one in items] == [(SIDE, SIDE)] * 3
    (rows,) = made.run([torch.zeros(8, 8), 3], [])
    assert type(rows) is Stack and len(rows) == 3


def test_what_nobody_uses_is_given_back_before_more_is_asked_for() -> None:
    """Memory of another size is of no use to what comes next: two at a time, whatever was there before."""
    text = """program "f" {
      input %x : f32[512, 512] = "x"
      %a : f32[512, 512] = aten.softmax.int(%x, -1)
      %b : f32[512, 1024] = aten.cat.default([%a, %a], 1)
      %c : f32[512, 1024] = aten.softmax.int(%b, -1)
      %d : f32[512, 1536] = aten.cat.default([%c, %a], 1)
      %e : f32[512, 1536] = aten.softmax.int(%d, -1)
      %s : f32[512] = aten.sum.dim_IntList(%e, [1])
      return %s as $0
    }"""
    x = torch.randn(SIDE, SIDE)
    made = agree(text, [x], rounding=1e-6)
    assert pieces(made, x) == 6
