"""``recursion`` as Python code: a function that calls itself, what it captures, and what ends it."""

from __future__ import annotations

import sys

import pytest
import torch

from dy2static import Limits, StorageError, load, save
from runtime.executor import compile_program
from runtime.executor.emitter import MAX_NESTING

HALVED = """
  input %x : f32[3] = "x"
  input %w : f32[3] = "w"
  %y : f32[3] = recursion(%x) {
    ^(%a : f32[3]):
      %s : f32[] = aten.sum.default(%a)
      %g : bool[] = aten.gt.Scalar(%s, 1)
      %t : bool = scalar.truth(%g)
      %b : f32[3] = cond(%t) {
        %c : f32[3] = aten.div.Tensor(%a, 2)
        %d : f32[3] = recur(%c) attrs {name: "halve"}
        %e : f32[3] = aten.add.Tensor(%d, %w)
        yield %e
      } {
        yield %a
      }
      yield %b
  } attrs {name: "halve"}
  return %y
"""


def halved(x, w):
    return halved(x / 2, w) + w if x.sum() > 1 else x


@pytest.mark.parametrize("size", [0.1, 1.0, 30.0])
def test_a_block_that_runs_itself_again(program, size):
    x, w = torch.full((3,), size), torch.arange(3.0)
    (found,) = compile_program(program(HALVED)).run([x, w], [])
    assert torch.equal(found, halved(x, w))


def test_without_a_call_the_argument_itself_comes_out(program):
    x = torch.zeros(3)
    (found,) = compile_program(program(HALVED)).run([x, torch.ones(3)], [])
    assert found is x


SUM = """
  input %n : int = "n"
  %r : int = recursion(%n) {
    ^(%k : int):
      %more : bool = scalar.gt(%k, 0)
      %s : int = cond(%more) {
        %j : int = scalar.sub(%k, 1)
        %t : int = recur(%j) attrs {name: "total"}
        %u : int = scalar.add(%t, %k)
        yield %u
      } {
        yield 0
      }
      yield %s
  } attrs {name: "total"}
  return %r
"""


def test_the_recursion_limit_holds(program):
    run = compile_program(program(SUM)).run
    assert run([50], []) == [50 * 51 // 2]
    with pytest.raises(RecursionError):
        run([sys.getrecursionlimit() + 10], [])
    assert run([3], []) == [6]


def nested(depth: int) -> str:
    """A recursion whose call of itself stands in many loops, more than one function may have."""
    heads = "\n".join(
        f"%i{k} : int, %v{k} : f32[2] = while_loop(0, %v{k - 1}i) {{ ^(%a{k} : int, %b{k} : f32[2]): "
        f"%m{k} : bool = scalar.lt(%a{k}, 1) yield %m{k} }} {{ ^(%c{k} : int, %v{k}i : f32[2]): "
        for k in range(1, depth + 1)
    )
    tails = ""
    for k in reversed(range(1, depth + 1)):
        inner = "%d" if k == depth else f"%v{k + 1}"
        tails += f"%n{k} : int = scalar.add(%c{k}, 1) yield %n{k}, {inner} }}\n"
    return f"""
  input %x : f32[2] = "x"
  input %w : f32[2] = "w"
  input %n : int = "n"
  %y : f32[2] = recursion(%x, %n) {{
    ^(%v0i : f32[2], %k : int):
      %more : bool = scalar.gt(%k, 0)
      %b : f32[2] = cond(%more) {{
        {heads}
        %j : int = scalar.sub(%k, 1)
        %e : f32[2] = recur(%v{depth}i, %j) attrs {{name: "g"}}
        %d : f32[2] = aten.add.Tensor(%e, 1)
        {tails}
        yield %v1
      }} {{
        %z : f32[2] = aten.mul.Tensor(%v0i, %w)
        yield %z
      }}
      yield %b
  }} attrs {{name: "g"}}
  return %y
"""


@pytest.mark.parametrize("depth", [1, MAX_NESTING + 3])
def test_what_it_captures_reaches_calls_of_itself_in_other_functions(program, depth):
    x, w = torch.ones(2), torch.tensor([2.0, 3.0])
    (found,) = compile_program(program(nested(depth))).run([x, w, 3], [])
    assert torch.equal(found, x * w + 3)


INSIDE = """
  input %x : f32[2] = "x"
  input %n : int = "n"
  %y : f32[2] = recursion(%x, %n) {
    ^(%a : f32[2], %k : int):
      %more : bool = scalar.gt(%k, 0)
      %b : f32[2] = cond(%more) {
        %j : int = scalar.sub(%k, 1)
        %c : f32[2] = recursion(%a, %j) {
          ^(%d : f32[2], %i : int):
            %again : bool = scalar.gt(%i, 0)
            %e : f32[2] = cond(%again) {
              %h : int = scalar.sub(%i, 1)
              %f : f32[2] = recur(%d, %h) attrs {name: "inner"}
              %g : f32[2] = aten.add.Tensor(%f, %a)
              yield %g
            } {
              %l : f32[2] = recur(%d, %j) attrs {name: "outer"}
              yield %l
            }
            yield %e
        } attrs {name: "inner"}
        yield %c
      } {
        yield %a
      }
      yield %b
  } attrs {name: "outer"}
  return %y
"""


def test_one_inside_another_calls_both(program):
    def outer(a, k):
        def inner(d, i):
            return inner(d, i - 1) + a if i > 0 else outer(d, k - 1)

        return inner(a, k - 1) if k > 0 else a

    x = torch.tensor([1.0, 2.0])
    run = compile_program(program(INSIDE)).run
    for n in range(6):
        assert torch.equal(run([x, n], [])[0], outer(x, n))


def test_every_call_is_counted(program):
    executable = compile_program(program(HALVED), coverage=True)
    executable.run([torch.full((3,), 1.0), torch.zeros(3)], [])
    assert [(one.what, one.runs) for one in executable.coverage_report().blocks] == [
        ("program p", 1), ("recursion body", 3), ("cond true branch", 2), ("cond false branch", 1)]  # fmt: skip


def test_frames_hold_anything(program):
    run = compile_program(program("""
  input %x : f32[2] = "x"
  %f : object = frame.new(%x, 3, None)
  %g : object = frame.new(%f, %x)
  %h : object = frame.get(%g, 0)
  %y : f32[2] = frame.get(%h, 0)
  %n : int = frame.get(%h, 1)
  return %y, %n as ($0, $1)
""")).run
    x = torch.ones(2)
    found = run([x], [])
    assert found[0] is x and found[1] == 3


def down(x):
    return down(x - 1) if x > 0 else x


def test_calls_are_iterations_to_limits(tmp_path):
    save(down, tmp_path / "f", [torch.tensor(1.0)])
    assert load(tmp_path / "f", limits=Limits(max_iterations=20))(torch.tensor(10.0)) == 0
    with pytest.raises(StorageError, match="D2S524"):
        load(tmp_path / "f", limits=Limits(max_iterations=20))(torch.tensor(50.0))
