"""Donation: what is written in place, what is copied, and that nobody can tell."""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from runtime.executor import compile_program, ownership
from runtime.executor.ownership import Owner


class Clones(TorchDispatchMode):
    """Counts the copies made while it is on."""

    count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.count += func is torch.ops.aten.clone.default
        return func(*args, **(kwargs or {}))


def clones(program, *inputs, grad=True):
    executable = compile_program(program)
    with torch.set_grad_enabled(grad), Clones() as counter:
        results = executable.run(list(inputs), [])
    return counter.count, results


FILL = """
  input %x : f32[3] = "x"
  input %n : int = "n"
  {start}
  %i1 : int, %o1 : f32[8, 3] = while_loop(0, {first}) {{
    ^(%i : int, %o : f32[8, 3]):
      %c : bool = scalar.lt(%i, %n)
      yield %c
  }} {{
    ^(%j : int, %p : f32[8, 3]):
      {body}
      %k : int = scalar.add(%j, 1)
      yield %k, {last}
  }}
  return {results}
"""
WRITE = """
  %q : f32[8, 3] = update(%p) {
    ^(%b : f32[8, 3]):
      %v : f32[3] = aten.select.int(%b, 0, %j)
      %u : f32[3] = aten.copy_.default(%v, %x)
      yield %b
  }
"""
ZEROS = "%z : f32[8, 3] = aten.zeros.default([8, 3])"


def fill(program, start=ZEROS, first="%z", body=WRITE, last="%q", results="%o1 as $0"):
    return program(FILL.format(start=start, first=first, body=body, last=last, results=results))


@pytest.mark.parametrize("grad", [True, False])
def test_a_fill_loop_copies_nothing(program, grad):
    x = torch.ones(3, requires_grad=grad)
    count, (out,) = clones(fill(program), x, 6, grad=grad)
    assert count == 0
    assert torch.equal(out, torch.cat([torch.ones(6, 3), torch.zeros(2, 3)]))
    if grad:
        out.sum().backward()
        assert x.grad.tolist() == [6.0, 6.0, 6.0]


@pytest.mark.parametrize("grad", [True, False])
def test_a_fill_of_the_callers_tensor_copies_it_once_and_only_if_written(program, grad):
    text = FILL.format(start="", first="%y", body=WRITE, last="%q", results="%o1 as $0")
    p = program(text.replace('input %n : int = "n"', 'input %n : int = "n"\n input %y : f32[8, 3] = "y"'))
    y = torch.full((8, 3), 5.0)
    count, (out,) = clones(p, torch.ones(3), 6, y, grad=grad)
    assert count == 1 and (y == 5).all() and (out[:6] == 1).all() and (out[6:] == 5).all()
    count, (out,) = clones(p, torch.ones(3), 0, y, grad=grad)
    assert count == 0 and out is y


def test_a_fill_inside_a_branch_copies_nothing(program):
    body = """
      %even : int = scalar.mod(%j, 2)
      %q : f32[8, 3] = cond(%even) { yield %p } {
    """ + WRITE.replace("%q", "%w") + """
        yield %w
      }
    """
    count, (out,) = clones(fill(program, body=body), torch.ones(3), 6)
    assert count == 0 and out[:, 0].tolist() == [1, 0, 1, 0, 1, 0, 0, 0]


@pytest.mark.parametrize("grad", [True, False])
def test_nested_fills_copy_nothing(program, grad):
    body = """
      %i3 : int, %q : f32[8, 3] = while_loop(0, %p) {
        ^(%i4 : int, %o4 : f32[8, 3]):
          %c4 : bool = scalar.lt(%i4, 2)
          yield %c4
      } {
        ^(%i5 : int, %o5 : f32[8, 3]):
    """ + WRITE.replace("%q", "%q5").replace("(%p)", "(%o5)") + """
          %i6 : int = scalar.add(%i5, 1)
          yield %i6, %q5
      }
    """
    count, (out,) = clones(fill(program, body=body), torch.ones(3), 6, grad=grad)
    assert count == 0 and out.sum() == 18


def test_a_row_read_before_the_write_copies_nothing(program):
    body = """
      %row : f32[3] = aten.select.int(%p, 0, 0)
      %sum : f32[3] = aten.add.Tensor(%row, %x)
    """ + WRITE.replace("%x", "%sum")
    count, (out,) = clones(fill(program, body=body), torch.ones(3, requires_grad=True), 6)
    assert count == 0 and out[:6, 0].tolist() == [1, 2, 2, 2, 2, 2]


ROWS = """
      %row : f32[3] = aten.select.int(%p, 0, 0)
      %mul : f32[3] = aten.mul.Tensor(%row, %x)
      %sum : f32[3] = aten.add.Tensor(%mul, %x)
    """ + WRITE.replace("%x", "%sum")


def test_a_copy_counts_as_a_write_for_backward(program):
    x = torch.full((3,), 2.0, requires_grad=True)
    _, (out,) = clones(fill(program, body=ROWS), x, 3)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()


def test_what_backward_needs_is_copied(program, uncounted):
    p = fill(program, body=ROWS)
    x = torch.full((3,), 2.0, requires_grad=True)
    count, (out,) = clones(p, x, 3)
    assert count == 3
    out.sum().backward()
    y = torch.full((3,), 2.0, requires_grad=True)  # rows: y, y*y + y, y*y + y
    (y + 2 * (y * y + y)).sum().backward()
    assert torch.equal(x.grad, y.grad)
    assert clones(p, x.detach(), 3, grad=False)[0] == 0


@pytest.mark.parametrize("grad", [True, False])
def test_an_activation_in_place_copies_nothing(program, grad):
    p = program("""
      input %x : f32[2, 3] = "x"
      param %w : f32[3, 3] = "w" parameter requires_grad
      %h : f32[2, 3] = aten.linear.default(%x, %w, None)
      %y : f32[2, 3] = update(%h) {
        ^(%b : f32[2, 3]):
          %r : f32[2, 3] = aten.relu_.default(%b)
          yield %b
      }
      return %y as $0
    """)
    x, w = torch.randn(2, 3), torch.randn(3, 3, requires_grad=True)
    count, (y,) = clones(p, x, w, grad=grad)
    assert count == 0 and torch.equal(y, (x @ w.t()).relu())
    if grad:
        (got,) = torch.autograd.grad(y.sum(), w)
        (wanted,) = torch.autograd.grad((x @ w.t()).relu().sum(), w)
        assert torch.equal(got, wanted)


def test_a_value_read_later_is_copied(program):
    p = program("""
      %z : f32[3] = aten.zeros.default([3])
      %y : f32[3] = update(%z) {
        ^(%b : f32[3]):
          %r : f32[3] = aten.add_.Scalar(%b, 1)
          yield %b
      }
      return %z, %y as ($0, $1)
    """)
    count, (z, y) = clones(p)
    assert count == 1 and z.tolist() == [0, 0, 0] and y.tolist() == [1, 1, 1]


def test_a_view_read_later_means_a_copy(program):
    p = program("""
      %z : f32[3] = aten.zeros.default([3])
      %v : f32[1, 3] = aten.view.default(%z, [1, 3])
      %y : f32[3] = update(%z) {
        ^(%b : f32[3]):
          %r : f32[3] = aten.add_.Scalar(%b, 1)
          yield %b
      }
      return %v, %y as ($0, $1)
    """)
    for grad in (True, False):
        count, (v, y) = clones(p, grad=grad)
        assert count == 1 and v.tolist() == [[0, 0, 0]] and y.tolist() == [1, 1, 1]


def test_a_tensor_in_a_list_means_a_copy(program):
    p = program("""
      %z : f32[3] = aten.zeros.default([3])
      %l : list<f32[3]> = array.new([%z])
      %y : f32[3] = update(%z) {
        ^(%b : f32[3]):
          %r : f32[3] = aten.add_.Scalar(%b, 1)
          yield %b
      }
      return %l, %y as ($0, $1)
    """)
    count, ((z,), y) = clones(p, grad=False)
    assert count == 1 and z.tolist() == [0, 0, 0] and y.tolist() == [1, 1, 1]


def test_a_loop_that_carries_one_tensor_twice(program):
    p = program("""
      %z : f32[3] = aten.zeros.default([3])
      %i1 : int, %a1 : f32[3], %b1 : f32[3] = while_loop(0, %z, %z) {
        ^(%i : int, %a : f32[3], %b : f32[3]):
          %c : bool = scalar.lt(%i, 3)
          yield %c
      } {
        ^(%j : int, %d : f32[3], %e : f32[3]):
          %u : f32[3] = update(%d) {
            ^(%w : f32[3]):
              %r : f32[3] = aten.add_.Scalar(%w, 1)
              yield %w
          }
          %k : int = scalar.add(%j, 1)
          yield %k, %u, %e
      }
      return %a1, %b1 as ($0, $1)
    """)
    count, (a, b) = clones(p)
    assert count == 1 and a.tolist() == [3, 3, 3] and b.tolist() == [0, 0, 0]


def test_an_expanded_base_becomes_dense(program):
    p = program("""
      input %x : f32[3] = "x"
      %y : f32[2, 3] = aten.expand.default(%x, [2, 3])
      %z : f32[2, 3] = update(%y) {
        ^(%b : f32[2, 3]):
          %v : f32[3] = aten.select.int(%b, 0, 0)
          %r : f32[3] = aten.zero_.default(%v)
          yield %b
      }
      return %z as $0
    """)
    _, (z,) = clones(p, torch.ones(3))
    assert z.tolist() == [[0, 0, 0], [1, 1, 1]]


def test_strides_survive_the_copy(program):
    p = program("""
      input %x : f32[4, 3] = "x"
      %z : f32[4, 3] = update(%x) {
        ^(%b : f32[4, 3]):
          %r : f32[4, 3] = aten.zero_.default(%b)
          yield %b
      }
      return %z as $0
    """)
    _, (z,) = clones(p, torch.ones(3, 4).t())
    assert z.stride() == (1, 4)


def test_a_write_without_gradients_keeps_the_history_of_its_base(program):
    p = program("""
      input %x : f32[3] = "x"
      %y : f32[3] = aten.mul.Tensor(%x, %x)
      %z : f32[3] = update(%y) {
        ^(%b : f32[3]):
          %r : f32[3] = aten.add_.Scalar(%b, 1) grad off
          yield %b
      } grad off
      return %z as $0
    """)
    x = torch.full((3,), 3.0, requires_grad=True)
    _, (z,) = clones(p, x)
    z.sum().backward()
    assert z.tolist() == [10, 10, 10] and x.grad.tolist() == [6, 6, 6]


def test_running_statistics(program):
    p = program("""
      input %x : f32[4, 2] = "x"
      param %m : f32[2] = "m" buffer
      param %v : f32[2] = "v" buffer
      %m1 : f32[2], %v1 : f32[2], %y : f32[4, 2] = update(%m, %v) {
        ^(%a : f32[2], %b : f32[2]):
          %o : f32[4, 2] = aten.batch_norm.default(%x, None, None, %a, %b, True, 0.1, 1e-05, False)
          yield %a, %b, %o
      }
      return %y as $0
      write %m = 1
      write %v = 2
    """.replace("return %y as $0", "return %y, %m1, %v1 as $0"))
    layer = torch.nn.BatchNorm1d(2, affine=False)
    mean, var = torch.zeros(2), torch.ones(2)
    x = torch.randn(4, 2, requires_grad=True)
    y, mean1, var1 = compile_program(p).run([x], [mean, var])
    assert torch.equal(y, layer(x)) and torch.equal(mean1, layer.running_mean) and torch.equal(var1, layer.running_var)
    assert not mean.any() and (var == 1).all()
    y.square().sum().backward()


def test_a_list_that_grows_in_a_loop_is_extended_in_place(program):
    p = program("""
      %a : list<int> = array.new([])
      %i1 : int, %a1 : list<int> = while_loop(0, %a) {
        ^(%i : int, %b : list<int>):
          %c : bool = scalar.lt(%i, 3)
          yield %c
      } {
        ^(%j : int, %d : list<int>):
          %e : list<int> = array.append(%d, %j)
          %k : int = scalar.add(%j, 1)
          yield %k, %e
      }
      return %a1 as $0
    """)
    executable = compile_program(p)
    assert executable.run([], []) == [[0, 1, 2]] and executable.run([], []) == [[0, 1, 2]]
    decisions = ownership.analyse(p, executable._live, grad=True).donated
    assert list(decisions.values()) == [Owner.YES]


def test_an_old_list_stays_as_it_was(program):
    p = program("""
      %a : list<int> = array.new([1])
      %b : list<int> = array.append(%a, 2)
      %c : list<int> = array.append(%b, 3)
      %d : list<int> = array.append(%b, 4)
      return %a, %c, %d as ($0, $1, $2)
    """)
    assert compile_program(p).run([], []) == [[1], [1, 2, 3], [1, 2, 4]]
