"""Small Programs, written as text, run for many rows: each rule of ``runtime.batching`` against its rows one by one."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from runtime.batching.joining import MISSING, filled_in, joined
from runtime.batching.program import BatchedProgram
from runtime.batching.results import settled
from runtime.batching.rows import Domain, Mask, Rows
from runtime.errors import TraceError
from runtime.executor import compile_program
from runtime.ir.parser import parse_program
from runtime.torch_internals import batches


def run(text: str, *columns: torch.Tensor) -> Any:
    """A Program's one result for all rows."""
    program = parse_program(text)
    batched = BatchedProgram(program, compile_program)

    def row(*args: torch.Tensor) -> Any:
        values, domain = batched.run(args, [])
        return settled(program, program.output, values, domain)[0]

    return torch.vmap(row)(*columns)


def by_row(text: str, *columns: torch.Tensor) -> torch.Tensor:
    program = compile_program(parse_program(text))
    return torch.stack([torch.as_tensor(program.run(list(row), [])[0]) for row in zip(*columns)])


X = torch.tensor([[1.0, 2.0, 3.0], [-1.0, 0.5, -3.0], [0.25, 0.5, 0.125], [-9.0, 4.0, 2.0]])

PROGRAMS = {
    "cond": """program "f" {
  input %x : f32[3] = "x"
  %s : f32[] = aten.sum.default(%x)
  %p : bool[] = aten.gt.Scalar(%s, 0)
  %flag : bool = scalar.item(%p)
  %y : f32[3] = cond(%flag) {
    %a : f32[3] = aten.log.default(%x)
    yield %a
  } {
    yield %x
  }
  return %y as $0
}""",
    "cond of a tensor": """program "f" {
  input %x : f32[3] = "x"
  %s : f32[] = aten.sum.default(%x)
  %n : int = cond(%s) {
    yield 1
  } {
    yield 2
  }
  return %n as $0
}""",
    "switch": """program "f" {
  input %x : f32[3] = "x"
  %i : int64[] = aten.argmax.default(%x)
  %n : int = scalar.item(%i)
  %y : f32[3] = switch(%n) {
    yield %x
  } {
    %a : f32[3] = aten.mul.Tensor(%x, %n)
    yield %a
  } {
    %b : f32[3] = aten.neg.default(%x)
    yield %b
  }
  return %y as $0
}""",
    "while_loop": """program "f" {
  input %x : f32[3] = "x"
  %y : f32[3], %n : int = while_loop(%x, 0) {
    ^(%a : f32[3], %i : int):
      %m : f32[] = aten.max.default(%a)
      %q : bool[] = aten.gt.Scalar(%m, 1.0)
      %more : bool = scalar.item(%q)
      yield %more
  } {
    ^(%b : f32[3], %j : int):
      %h : f32[3] = aten.div.Tensor(%b, 2)
      %k : int = scalar.add(%j, 1)
      yield %h, %k
  }
  %z : f32[3] = aten.add.Tensor(%y, %n)
  return %z as $0
}""",
    "scan": """program "f" {
  input %x : f32[3] = "x"
  %zero : f32[] = aten.select.int(%x, 0, 0)
  %last : f32[], %all : f32[3] = scan(3, %zero, %x) {
    ^(%i : int, %c : f32[], %row : f32[]):
      %sum : f32[] = aten.add.Tensor(%c, %row)
      yield %sum, %sum
  } attrs {carried: 1}
  %y : f32[3] = aten.add.Tensor(%all, %last)
  return %y as $0
}""",
    "update": """program "f" {
  input %x : f32[3] = "x"
  %i : int64[] = aten.argmin.default(%x)
  %n : int = scalar.item(%i)
  %out : f32[3] = aten.zeros.default([3])
  %new : f32[3] = update(%out) {
    ^(%b : f32[3]):
      %place : f32[] = aten.select.int(%b, 0, %n)
      %s : f32[] = aten.sum.default(%x)
      %w : f32[] = aten.copy_.default(%place, %s)
      yield %b
  }
  return %new as $0
}""",
    "list": """program "f" {
  input %x : f32[3] = "x"
  %i : int64[] = aten.argmax.default(%x)
  %n : int = scalar.item(%i)
  %two : f32[3] = aten.mul.Tensor(%x, 2)
  %l : list<f32[3]> = array.new([%x, %two])
  %m : list<f32[3]> = array.append(%l, %x)
  %set : list<f32[3]> = array.set(%m, %n, %two)
  %k : int = scalar.sub(-1, %n)
  %y : f32[3] = array.get(%set, %k)
  return %y as $0
}""",
    "numbers": """program "f" {
  input %x : f32[3] = "x"
  %s : f32[] = aten.sum.default(%x)
  %v : float = scalar.item(%s)
  %n : int = scalar.int(%v)
  %big : int = scalar.pow(%n, 30)
  %same : int = scalar.mod(%big, 1000007)
  %r : float = scalar.round(%v, 1)
  %t : float = scalar.add(%r, %same)
  %y : f32[3] = aten.full.default([3], %t)
  return %y as $0
}""",
    "a number without a tensor's form": """program "f" {
  input %x : f32[3] = "x"
  %i : int64[] = aten.argmax.default(%x)
  %n : int = scalar.item(%i)
  %y : f32[3] = aten.roll.default(%x, [%n])
  return %y as $0
}""",
    "an operator without a rule": """program "f" {
  input %x : f32[3] = "x"
  %z : f32[3] = aten.abs.default(%x)
  %flag : bool = aten.equal.default(%x, %z)
  %y : f32[3] = cond(%flag) {
    yield %z
  } {
    %a : f32[3] = aten.neg.default(%z)
    yield %a
  }
  return %y as $0
}""",
    "a mask": """program "f" {
  input %x : f32[3] = "x"
  %m : bool[3] = aten.gt.Scalar(%x, 0.3)
  %c : f32[] = aten.sum.default(%x)
  %y : f32[3] = update(%x) {
    ^(%b : f32[3]):
      %w : f32[3] = aten.index_put_.default(%b, [%m], %c)
      yield %b
  }
  return %y as $0
}""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_for_many_rows_is_that_of_each(name: str) -> None:
    got, expected = run(PROGRAMS[name], X), by_row(PROGRAMS[name], X)
    assert got.dtype == expected.dtype
    torch.testing.assert_close(got, expected, equal_nan=True)
    one = X[:1].expand(3, 3)
    torch.testing.assert_close(run(PROGRAMS[name], one), by_row(PROGRAMS[name], one), equal_nan=True)


def test_an_error_stands_at_the_innermost_operator() -> None:
    text = PROGRAMS["list"].replace("array.get(%set, %k)", 'array.get(%set, 7)    @ "user.py":4:2 in "f" "y = l[7]"')
    with pytest.raises(IndexError) as caught:
        run(text, X)
    frames = [entry.path for entry in caught.traceback]
    assert any(str(path).endswith("user.py") for path in frames)


def test_a_limit_of_iterations_holds_for_each_row() -> None:
    end = "      yield %h, %k\n  }"
    text = PROGRAMS["while_loop"].replace(end, f"{end} attrs {{max_iterations: 2}}")
    torch.testing.assert_close(run(text, X[:3]), by_row(text, X[:3]))
    with pytest.raises(RuntimeError, match="goes on after max_iterations=1 iterations"):
        run(text.replace("max_iterations: 2", "max_iterations: 1"), X)


def domain() -> Domain:
    return Domain((), (3,))


def refuse(what: str, hint: str) -> Any:
    raise TraceError(what, hint=hint)


def test_rows_that_go_no_way_have_what_one_has_that_does() -> None:
    mask = Mask(domain(), [False, True, True])
    assert filled_in(mask, Rows([1, 2, 3])).values == [2, 2, 3]
    assert filled_in(Mask(domain(), [False, True, False]), Rows([1, 2, 3])) == 2
    assert filled_in(mask, ["a", Rows([0, 0.5, 0.5])]) == ["a", 0.5]


def test_values_meet() -> None:
    mask = Mask(domain(), [False, True, True])
    assert joined(mask, 1, 2, refuse).values == [2, 1, 1]
    assert joined(mask, 1, 1, refuse) == 1
    assert joined(mask, Rows([5, 1, 2]), Rows([7, 8, 9]), refuse).values == [7, 1, 2]
    assert joined(mask, [1, "a"], [1, "b"], refuse)[1].values == ["b", "a", "a"]
    assert joined(mask, None, [None, None], refuse) == joined(mask, [None, None], None, refuse) == [None, None]
    assert joined(mask, MISSING, 4, refuse) == joined(mask, 4, MISSING, refuse) == 4


@pytest.mark.parametrize(
    ("a", "b", "said"),
    [
        (1, True, "of type bool in one row and of type int"), (1, None, "of type NoneType"),
        ([1], [1, 2], "a list has 1 items in one row and 2 in another"), (1.0, torch.ones(()), "a tensor in one row"),
        (torch.ones(2), torch.ones(3), r"sizes \[2\] in one row and \[3\]"),
        (torch.ones(2), torch.ones(2, dtype=torch.int64), "torch.float32 on cpu in one row and torch.int64"),
    ],
)  # fmt: skip
def test_values_that_cannot_meet(a: Any, b: Any, said: str) -> None:
    with pytest.raises(TraceError, match=said):
        joined(Mask(domain(), [False, True, True]), a, b, refuse)


def test_rows_of_several_levels_are_counted_through() -> None:
    seen = []

    def inner(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        both = Domain.of([a, b])
        seen.append((both.sizes, both.numbers(a * 10 + b), both.numbers(b), both.row(a + b, 3).item()))
        back = both.tensor(both.numbers(a * 10 + b), torch.float32)
        assert batches.levels_of(back) == batches.levels_of(a + b)
        return back - (a * 10 + b)

    a, b = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0, 5.0])
    left = torch.vmap(torch.vmap(inner, (None, 0)), (0, None))(a, b)
    assert torch.equal(left, torch.zeros(2, 3))
    assert seen == [((2, 3), [13.0, 14.0, 15.0, 23.0, 24.0, 25.0], [3.0, 4.0, 5.0] * 2, 5.0)]
