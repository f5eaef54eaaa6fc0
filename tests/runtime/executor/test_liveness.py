"""Memory: a value is gone after its last use, on every path. Tested by what is alive, not by how much."""

import weakref

import pytest
import torch

from runtime.executor import compile_program


class Watch:
    """``watch(x)`` in a Program remembers a tensor; ``alive()`` says how many of those still exist."""

    def __init__(self):
        self.seen = []
        self.log = []

    def __call__(self, value):
        self.seen.append(weakref.ref(value))
        return 0

    def count(self):
        self.log.append(sum(ref() is not None for ref in self.seen))
        return 0


def alive(program, *inputs, grad=False):
    watch = Watch()
    executable = compile_program(program, functions={"watch": watch, "count": watch.count})
    with torch.set_grad_enabled(grad):
        results = executable.run(list(inputs), [])
    return watch.log, results


def test_a_straight_line_keeps_one_value_at_a_time(program):
    lines = ["%v0 : f32[2] = aten.exp.default(%x)"]
    for i in range(5):
        lines.append(f'%w{i} : int = py_func(%v{i}) attrs {{function: "watch"}}')
        lines.append(f"%v{i + 1} : f32[2] = aten.exp.default(%v{i})")
        lines.append(f'%c{i} : int = py_func() attrs {{function: "count"}}')
    p = program('input %x : f32[2] = "x"\n' + "\n".join(lines) + "\nreturn %v5 as $0")
    assert alive(p, torch.ones(2))[0] == [0, 0, 0, 0, 0]


@pytest.mark.parametrize("flag", [True, False])
def test_a_value_dies_on_the_path_that_does_not_need_it(program, flag):
    p = program("""
      input %x : f32[2] = "x"
      input %flag : bool = "flag"
      %v : f32[2] = aten.exp.default(%x)
      %w : int = py_func(%v) attrs {function: "watch"}
      %y : f32[2] = cond(%flag) {
        %c1 : int = py_func() attrs {function: "count"}
        yield %x
      } {
        %c2 : int = py_func() attrs {function: "count"}
        %e : f32[2] = aten.exp.default(%v)
        %c3 : int = py_func() attrs {function: "count"}
        yield %e
      }
      return %y as $0
    """)
    assert alive(p, torch.ones(2), flag)[0] == ([0] if flag else [1, 0])


def test_a_loop_keeps_what_the_next_round_needs(program):
    p = program("""
      input %x : f32[2] = "x"
      %v : f32[2] = aten.exp.default(%x)
      %w : int = py_func(%v) attrs {function: "watch"}
      %i1 : int, %h1 : f32[2] = while_loop(0, %v) {
        ^(%i : int, %h : f32[2]):
          %c : bool = scalar.lt(%i, 4)
          yield %c
      } {
        ^(%j : int, %g : f32[2]):
          %e : f32[2] = aten.exp.default(%g)
          %c1 : int = py_func() attrs {function: "count"}
          %w1 : int = py_func(%e) attrs {function: "watch"}
          %k : int = scalar.add(%j, 1)
          yield %k, %e
      }
      %z : f32[2] = aten.exp.default(%h1)
      %c2 : int = py_func() attrs {function: "count"}
      return %z as $0
    """)
    assert alive(p, torch.ones(2))[0] == [0, 0, 0, 0, 0]


def test_an_unread_result_dies_at_once(program):
    p = program("""
      input %x : f32[2] = "x"
      %v : f32[2] = aten.exp.default(%x)
      %w : int = py_func(%v) attrs {function: "watch"}
      %c : int = py_func() attrs {function: "count"}
      return %x as $0
    """)
    assert alive(p, torch.ones(2))[0] == [0]


def test_an_update_does_not_keep_the_old_value(program):
    p = program("""
      input %x : f32[2] = "x"
      %v : f32[2] = aten.exp.default(%x)
      %w : int = py_func(%v) attrs {function: "watch"}
      %u : f32[2] = update(%v) {
        ^(%b : f32[2]):
          %r : f32[2] = aten.add_.Tensor(%b, %x)
          %c : int = py_func() attrs {function: "count"}
          yield %b
      }
      return %u as $0
    """)
    assert alive(p, torch.ones(2))[0] == [0]


def test_results_are_the_only_references_left(program):
    p = program("""
      input %x : f32[2] = "x"
      %v : f32[2] = aten.exp.default(%x)
      return %v as $0
    """)
    _, results = alive(p, torch.ones(2))
    ref = weakref.ref(results[0])
    del results
    assert ref() is None
