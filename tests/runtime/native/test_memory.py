"""How much memory a region holds at its highest point, in what PyTorch's allocator hands out."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from benchmarks.memory import allocated
from runtime.executor import compile_program as interpreted
from runtime.ir.parser import parse_program
from runtime.native import NativeExecutable
from runtime.native.serving import Call
from runtime.native.stack import Stack
from tests.runtime.native.programs import agree, compiled, gave_up

SIDE = 512
PIECE = SIDE * SIDE * 4
"""Bytes of one tensor of the Programs here: more than C takes for itself."""


def pieces(made: NativeExecutable, *given: Any, new: int = 0) -> float:
    """In tensors: the highest point of a run in C. ``new``: how many arguments are made for each run."""
    def run() -> None:
        made.run([*given, *(torch.ones(SIDE, SIDE) for _ in range(new))], [])

    run()
    highest = allocated(run)
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


_BACKWARD = """program "f" {
  input %w : f32[512, 512] = "w"
  input %a : f32[512, 512] = "a"
  input %b : f32[512, 512] = "b"
  input %c : f32[512, 512] = "c"
  %g : f32[512, 512] = aten.mm.default(%w, %a)
  %h : f32[512, 512] = aten.threshold_backward.default(%g, %b, 0)
  %i : f32[512, 512] = aten.mm.default(%w, %h)
  %j : f32[512, 512] = aten.mul.Tensor(%i, %c)
  return %g, %i, %j as ($0, $1, $2)
}"""


def test_arguments_are_let_go_after_their_last_use() -> None:
    """Results take the place of what a backward half was given; nobody else has to have kept that."""
    w = torch.ones(SIDE, SIDE)
    assert pieces(compiled(_BACKWARD.replace("512", "n"), consuming=True), w, new=3) == 4, "sizes are tested first"
    made = compiled(_BACKWARD, consuming=True)
    (one,) = made.written.compiled
    assert one.lets_go and len(one.inputs) == 4
    assert pieces(made, w, new=3) == 4, "what was given and g; g, h, i and c; g, i, c and j"
    assert pieces(compiled(_BACKWARD), w, new=3) == 6, "the caller has them"
    for _ in range(30):
        given = [torch.randn(SIDE, SIDE) for _ in range(4)]
        kept = [tensor.clone() for tensor in given]
        found = made.run(given, [])
        assert not given
    for mine, other in zip(found, interpreted(parse_program(_BACKWARD)).run(kept, [])):
        assert torch.allclose(mine, other, rtol=1e-4, atol=1e-2)


def test_a_result_keeps_the_argument_that_it_is_a_view_of() -> None:
    made = compiled("""program "f" {
      input %x : f32[512, 512] = "x"
      input %y : f32[512, 512] = "y"
      %v : f32[512] = aten.select.int(%x, 0, 1)
      %z : f32[512, 512] = aten.mul.Tensor(%y, %v)
      %e : f32[512, 512] = aten.exp.default(%z)
      %s : f32[512] = aten.sum.dim_IntList(%e, [1])
      return %v, %s as ($0, $1)
    }""", consuming=True)
    x, y = torch.rand(SIDE, SIDE), torch.rand(SIDE, SIDE)
    row = x[1].tolist()
    v, s = made.run([x, y], [])
    assert v.tolist() == row and v._base is x and not gave_up(made)
    assert torch.allclose(s, (y * x[1]).exp().sum(1))


_MAY_GIVE_UP = """program "f" {
  input %x : f32[512, 512] = "x"
  input %n : int = "n"
  %y : f32[512, 512] = aten.exp.default(%x)
  %z : f32[512, 512] = aten.softmax.int(%y, -1)
  %r : f32[512] = aten.select.int(%z, 0, %n)
  %t : f32[512] = aten.neg.default(%r)
  return %t as $0
}"""


def test_nothing_is_let_go_that_python_may_have_to_begin_again_with() -> None:
    made = compiled(_MAY_GIVE_UP, consuming=True)
    x = torch.randn(SIDE, SIDE)
    (found,) = made.run([x, 3], [])
    assert torch.allclose(found, -x.exp().softmax(-1)[3]) and not gave_up(made)
    with pytest.raises(IndexError):
        made.run([x, 700], [])
    assert gave_up(made) == 1


def test_no_memory_is_an_exception_where_arguments_are_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing can run again then; where all is there, Python tries."""
    asked: list[int] = []
    ask = Call.result

    def refuse(call: Call, address: int) -> None:
        asked.append(address)
        if len(asked) == last:
            raise RuntimeError("no memory")
        ask(call, address)

    made = compiled(_BACKWARD, consuming=True)
    monkeypatch.setattr(Call, "result", refuse)
    last = 1
    assert len(made.run([torch.ones(SIDE, SIDE) for _ in range(4)], [])) == 3 and gave_up(made) == 1
    last = 3
    with pytest.raises(RuntimeError, match="no memory"):
        made.run([torch.ones(SIDE, SIDE) for _ in range(4)], [])


_PRODUCTS = """program "f" {
  input %w : f32[k, k] = "w"
  input %h : f32[8, k] = "h"
  input %n : int = "n"
  %go : bool = scalar.gt(%n, 0)
  %f : bool, %i : int, %s : f32[8, k] = while_loop(%go, %n, %h) {
    ^(%g : bool, %j : int, %t : f32[8, k]):
      yield %g
  } {
    ^(%e : bool, %k : int, %u : f32[8, k]):
      %v : f32[8, k] = aten.linear.default(%u, %w)
      %l : int = scalar.sub(%k, 1)
      %b : bool = scalar.gt(%l, 0)
      yield %b, %l, %v
  }
  return %s as $0
}"""


def test_a_large_weight_is_not_copied() -> None:
    """It is packed a part at a time, each time; where sizes are known, nothing asks for a copy."""
    w, h = torch.randn(SIDE, SIDE) / 20, torch.randn(8, SIDE)
    assert pieces(agree(_PRODUCTS, [w, h, 6], rounding=1e-4), w, h, 6) < 0.1
    for size, copied in ((512, False), (16, True)):
        text = _PRODUCTS.replace("[k, k]", f"[{size}, {size}]").replace("[8, k]", f"[8, {size}]")
        assert ("turn_f(" in compiled(text).c_source()) is copied
