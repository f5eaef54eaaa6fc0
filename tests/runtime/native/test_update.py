"""Writes: in place where nothing else refers to the memory, in a copy everywhere else, through views."""

from __future__ import annotations

import torch

from tests.runtime.native.programs import agree, compiled, gave_up

_LOOP = """program "f" {
  input %x : f32[4, 3] = "x"
  input %n : int = "n"
  %more : bool = scalar.gt(%n, 0)
  %f : bool, %i : int, %y : f32[4, 3] = while_loop(%more, 0, %x) {
    ^(%g : bool, %j : int, %s : f32[4, 3]):
      yield %g
  } {
    ^(%h : bool, %k : int, %t : f32[4, 3]):
      %old : f32[3] = aten.select.int(%t, 0, -1)
      %copy : f32[3] = aten.neg.default(%old)
      %u : f32[4, 3] = update(%t) {
        ^(%b : f32[4, 3]):
          %row : f32[3] = aten.select.int(%b, 0, %k)
          %p : f32[3] = aten.add_.Tensor(%row, %copy)
          %column : f32[4] = aten.select.int(%b, 1, 1)
          %q : f32[4] = aten.mul_.Tensor(%column, 2)
          yield %b
      }
      %l : int = scalar.add(%k, 1)
      %m : bool = scalar.lt(%l, %n)
      yield %m, %l, %u
  }
  return %y as $0
}"""


def test_rows_and_columns_in_a_loop() -> None:
    made = agree(_LOOP, *([torch.randn(4, 3), n] for n in (0, 1, 4)), in_c=compiled(_LOOP).share().in_c)
    assert not gave_up(made)


def test_the_arguments_memory_is_never_written() -> None:
    made = compiled(_LOOP)
    x = torch.ones(4, 3)
    made.run([x, 3], [])
    assert torch.equal(x, torch.ones(4, 3)) and not gave_up(made)


def test_who_still_reads_the_base_sees_what_was_there() -> None:
    text = """program "f" {
      input %x : f32[n] = "x"
      %a : f32[n] = aten.exp.default(%x)
      %v : f32[k] = aten.slice.Tensor(%a, 0, 1, 9223372036854775807)
      %b : f32[n] = update(%a) {
        ^(%c : f32[n]):
          %d : f32[n] = aten.mul_.Tensor(%c, %c)
          yield %c
      }
      %w : f32[k] = aten.neg.default(%v)
      %z : f32[n] = aten.add.Tensor(%a, %b)
      return %w, %z, %b as ($0, $1, $2)
    }"""
    made = agree(text, [torch.randn(5)], [torch.randn(1)], rounding=1e-6, in_c=compiled(text).share().in_c)
    assert not gave_up(made)


def test_what_is_written_from_itself_is_pythons() -> None:
    """PyTorch refuses memory that overlaps; the very same elements it takes."""
    text = """program "f" {
      input %x : f32[4, 3] = "x"
      %b : f32[4, 3] = update(%x) {
        ^(%c : f32[4, 3]):
          %low : f32[3, 3] = aten.slice.Tensor(%c, 0, 0, 3)
          %high : f32[3, 3] = aten.slice.Tensor(%c, 0, 1, 4)
          %d : f32[3, 3] = aten.add_.Tensor(%low, %high)
          yield %c
      }
      return %b as $0
    }"""
    made = agree(text, [torch.randn(4, 3)], in_c=compiled(text).share().in_c)
    assert gave_up(made) == 1


def test_fill_copy_and_dtypes() -> None:
    text = """program "f" {
      input %x : f64[n] = "x"
      input %y : f32[n] = "y"
      input %m : bool[n] = "m"
      %b : f64[n], %e : bool[n] = update(%x, %m) {
        ^(%c : f64[n], %k : bool[n]):
          %d : f64[n] = aten.copy_.default(%c, %y)
          %g : bool[n] = aten.fill_.Scalar(%k, True)
          %h : f64[n] = aten.sigmoid_.default(%c)
          yield %c, %k
      }
      return %b, %e as ($0, $1)
    }"""
    agree(text, [torch.randn(5, dtype=torch.float64), torch.randn(5), torch.zeros(5, dtype=torch.bool)], rounding=1e-12,
          in_c=compiled(text).share().in_c)  # fmt: skip
