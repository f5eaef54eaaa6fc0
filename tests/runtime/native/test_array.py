"""Lists and gradients that may be None: in C, into C and out of it."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from dy2static import to_static
from runtime.native.stack import Stack, listed
from runtime.native.values import GONE
from tests.oracle import same
from tests.runtime.native.programs import agree, compiled, gave_up

_GROWS = """program "f" {
  input %x : f32[n, 3] = "x"
  %z : int = scalar.size(%x, 0)
  %more : bool = scalar.gt(%z, 0)
  %e : list<f32[3]> = array.new([])
  %f : bool, %i : int, %ys : list<f32[3]> = while_loop(%more, 0, %e) {
    ^(%g : bool, %j : int, %s : list<f32[3]>):
      yield %g
  } {
    ^(%h : bool, %k : int, %t : list<f32[3]>):
      %row : f32[3] = aten.select.int(%x, 0, %k)
      %y : f32[3] = aten.exp.default(%row)
      %u : list<f32[3]> = array.append(%t, %y)
      %v : list<f32[3]> = array.append(%u, %row)
      %l : int = scalar.add(%k, 1)
      %m : bool = scalar.lt(%l, %z)
      yield %m, %l, %v
  }
  return %ys as $0
}"""


def test_a_list_that_grows() -> None:
    made = agree(_GROWS, *([torch.randn(n, 3)] for n in (0, 1, 9)), rounding=1e-6)
    assert not gave_up(made)
    x = torch.zeros(2, 3)
    (items,) = made.run([x], [])
    x[1] = 4.0
    assert items[3].tolist() == [4.0] * 3, "a row of an argument is a view of it"


def test_a_list_that_only_backward_reads_leaves_as_rows() -> None:
    made = compiled(_GROWS, kept=[0])
    (found,) = made.run([torch.zeros(2, 3)], [])
    assert type(found) is Stack and len(found) == 4
    assert [one.tolist() for one in listed(found)] == [[1.0] * 3, [0.0] * 3] * 2
    taker = compiled("""program "g" {
      input %xs : list<f32[3]> = "xs"
      input %n : int = "n"
      %i : int, %s : f32[3] = while_loop(%n, undef) {
        ^(%j : int, %t : f32[3]):
          %m : bool = scalar.gt(%j, 0)
          yield %m
      } {
        ^(%k : int, %u : f32[3]):
          %l : int = scalar.sub(%k, 1)
          %y : f32[3] = array.get(%xs, %l)
          yield %l, %y
      }
      return %s as $0
    }""")
    assert taker.run([found, 4], [])[0].tolist() == [1.0] * 3
    assert taker.run([listed(found), 3], [])[0].tolist() == [1.0] * 3 and not gave_up(taker)
    assert taker.run([found, 0], []) == [None]
    for given in (found, listed(found)):
        try:
            taker.run([given, 5], [])
        except IndexError as error:
            assert str(error) == "list index out of range"
        else:
            raise AssertionError("no such item")


def test_items_are_changed_in_a_list_of_ones_own() -> None:
    text = """program "f" {
      input %xs : list<int> = "xs"
      input %i : int = "i"
      %n : int = array.len(%xs)
      %ys : list<int> = array.set(%xs, %i, 7)
      %zs : list<int>, %last : int = array.pop(%ys)
      %x : int = array.get(%xs, %i)
      return %xs, %ys, %zs, %last, %x, %n as ($0, $1, $2, $3, $4, $5)
    }"""
    agree(text, [[1, 2, 3], 1], [[1, 2, 3], -1], [[1, 2, 3], 3], [[], 0])


def test_sums_of_gradients_that_may_be_none() -> None:
    text = """program "f" {
      input %a : f32[n] = "a"
      input %b : f32[n] = "b"
      %s : f32[n] = grad.sum(%a, %b)
      %none : bool = scalar.is_none(%s)
      %t : f32[n] = grad.accumulate(%s, %b)
      return %s, %none as ($0, $1)
    }"""
    x, y = torch.randn(3), torch.randn(3)
    for call in ([x, y], [x, None], [None, y], [None, None]):
        made = compiled(text)
        got = made.run(list(call), [])
        given = [one for one in call if one is not None]
        assert got[1] is (not given) and not gave_up(made)
        assert got[0] is None if not given else torch.equal(got[0], sum(given))
        if len(given) == 1:
            assert got[0] is given[0]


def test_stack_and_cat() -> None:
    text = """program "f" {
      input %a : f32[n, 3] = "a"
      input %b : f32[n, 2] = "b"
      %c : f32[n, 5] = aten.cat.default([%a, %b], 1)
      %d : f32[m, 3] = aten.cat.default([%a, %a])
      %e : f32[2, n, 3] = aten.stack.default([%a, %a])
      %z : f32[n, 5] = aten.neg.default(%c)
      return %c, %d, %e, %z as ($0, $1, $2, $3)
    }"""
    agree(text, *([torch.randn(n, 3), torch.randn(n, 2)] for n in (0, 1, 4)))


_NUMBERS = """program "f" {
  input %xs : list<KIND> = "xs"
  input %i : int = "i"
  %n : int = array.len(%xs)
  %y : KIND = array.get(%xs, %i)
  %ys : list<KIND> = array.append(%xs, %y)
  %zs : list<KIND> = array.append(%ys, None)
  %none : bool = scalar.is_none(%y)
  return %ys, %zs, %n, %none as ($0, $1, $2, $3)
}"""


@pytest.mark.parametrize(("kind", "items"), [
    ("int", [3, None, -1, 0]), ("float", [0.5, None, -0.0, float("inf")]), ("bool", [True, None, False, True]),
    ("int", [GONE, 1, 2, 3]), ("int", [None] * 4), ("float", [float("nan"), 1.0, None, 2.0]), ("bool", [True] * 4),
])  # fmt: skip
def test_numbers_that_may_be_none(kind: str, items: list[Any]) -> None:
    """From outside, within, and to outside; where an int is the word for None, Python runs it."""
    calls = [[items, i] for i in (0, 1, 2, -1)]
    made = agree(_NUMBERS.replace("KIND", kind), *calls)
    assert not gave_up(made)


def test_numbers_of_a_path_that_a_loop_keeps_for_its_gradient() -> None:
    """A loop with a break: its last iteration has not all that the others have."""

    def f(x: torch.Tensor, most: torch.Tensor) -> torch.Tensor:
        steps = 0
        while x.sum() < 50:
            if x.sum() > most:
                break
            k = 3 if x[0] > 1 else 2
            x = x * k if x[1] > 0 else x + k
            steps += 1
        return x * steps

    static = to_static(f, backend="c")
    for start, most in ((0.1, 20.0), (2.0, 1000.0), (0.5, 0.1), (-0.3, 30.0)):
        found = []
        for call in (static, f):
            x = torch.tensor([start, 0.2, 0.4], requires_grad=True)
            y = call(x, torch.tensor(most))
            (gradient,) = torch.autograd.grad(y.sum(), [x]) if y.requires_grad else (None,)
            found.append((y, gradient))
        same(*found, tolerance=1e-6)


@pytest.mark.parametrize("items", ["int", "f32[2]"])
@pytest.mark.parametrize("step", [None, 1, 2, 3, -1, -2])
def test_a_part_of_a_list_is_what_python_takes(step: int | None, items: str) -> None:
    text = f"""program "f" {{
      input %xs : list<{items}> = "xs"
      input %a : int = "a"
      input %b : int = "b"
      %both : list<{items}> = array.slice(%xs, slice(%a, %b, {step}))
      %from : list<{items}> = array.slice(%xs, slice(%a, None, {step}))
      %to : list<{items}> = array.slice(%xs, slice(None, %b, {step}))
      %all : list<{items}> = array.slice(%xs, slice(None, None, {step}))
      return %both, %from, %to, %all as ($0, $1, $2, $3)
    }}"""
    ends = (0, 1, 4, 5, 9, -1, -5, -6, -9)
    lists = [[torch.full([2], float(one)) if items == "f32[2]" else one for one in range(n)] for n in (0, 1, 5)]
    agree(text, *([items, a, b] for items in lists for a in ends for b in ends))


@pytest.mark.parametrize(("items", "item"), [("int", "7"), ("float", "%w"), ("bool", "True"), ("f32[2]", "%x"),
                                             ("int", "None"), ("float", "None"), ("f32[2]", "None")])  # fmt: skip
def test_a_list_of_one_item_is_as_long_as_another(items: str, item: str) -> None:
    text = f"""program "f" {{
      input %xs : list<int> = "xs"
      input %x : f32[2] = "x"
      input %w : float = "w"
      %ys : list<{items}> = array.fill(%xs, {item})
      return %ys as $0
    }}"""
    agree(text, *([[3] * n, torch.ones(2), 0.5] for n in (0, 1, 4)))


@pytest.mark.parametrize("table", [[2, 0, 1], [None, 5, -7], [None, None, None], [3, 3, 2**40]])
def test_numbers_are_looked_up_in_a_table(table: list[int | None]) -> None:
    text = f"""program "f" {{
      input %xs : list<int> = "xs"
      %ys : list<int> = array.lookup(%xs, {table})
      return %ys as $0
    }}"""
    agree(text, *([xs] for xs in ([], [0], [2, 1, 0, 0], [1, None, 2])))
