"""Which values some paths do not have."""

from __future__ import annotations

import pytest

from runtime.ir.parser import parse_program
from runtime.ir.undefined import may_be_undefined
from runtime.ir.verify import verify

HEAD = """program "p" {
  input %x : f32[3] = "x"
  input %c : bool = "c"
"""
SOME = """  %some : f32[3], %all : f32[3] = cond(%c) {
    yield undef, %x
  } {
    yield %x, %x
  }
"""
CASES = [
    pytest.param(SOME, {"some"}, id="of a branch"),
    pytest.param(SOME + "  %y : f32[3] = aten.neg.default(%some)\n", {"some"}, id="what is computed of it exists"),
    pytest.param(SOME + """  %in : f32[3], %two : f32[3] = cond(%c) {
    yield %some, %all
  } {
    yield %x, %some
  }
""", {"some", "in", "two"}, id="handed on by a branch"),
    pytest.param("""  %last : f32[3], %kept : f32[3] = while_loop(undef, %x) {
    ^(%a : f32[3], %b : f32[3]):
      yield %c
  } {
    ^(%d : f32[3], %e : f32[3]):
      yield %x, %e
  }
""", {"last", "a", "d"}, id="before the first iteration"),
    pytest.param(SOME + """  %last : f32[3], %kept : f32[3] = while_loop(%x, %x) {
    ^(%a : f32[3], %b : f32[3]):
      yield %c
  } {
    ^(%d : f32[3], %e : f32[3]):
      yield %e, %some
  }
""", {"some", "last", "a", "d", "kept", "b", "e"}, id="through two iterations"),
    pytest.param(SOME + """  %u : f32[3] = update(%x) {
    ^(%m : f32[3]):
      %n : f32[3] = aten.neg_.default(%m)
      yield %m
  }
""", {"some"}, id="an update of what exists"),
    pytest.param("""  %r : f32[3] = recursion(%x, undef) {
    ^(%a : f32[3], %b : f32[3]):
      %s : f32[3] = cond(%c) {
        %t : f32[3] = recur(%a, %b) attrs {name: "f"}
        yield %t
      } {
        yield %b
      }
      yield %s
  } attrs {name: "f"}
""", {"b", "s", "t", "r"}, id="a recursion"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "expected"), CASES)
def test_what_has_no_value_on_some_path(body: str, expected: set[str]) -> None:
    program = parse_program(HEAD + body + "  return %x as $0\n}\n")
    verify(program)
    assert {var.name for var in may_be_undefined(program.block)} == expected
