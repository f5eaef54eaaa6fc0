"""``custom_grad``: the backward Block is what torch.autograd runs."""

import traceback

import pytest
import torch

from runtime.executor import compile_program


def run(program, *inputs):
    return compile_program(program).run(list(inputs), [])


EXP = """
  input %x : f64[3] = "x"
  %y : f64[3] = custom_grad(%x, 10) {
    ^(%a : f64[3], %k : int):
      %e : f64[3] = aten.exp.default(%a)
      yield %e, %e, %k
  } {
    ^(%r : f64[3], %n : int, %g : f64[3]):
      %d : f64[3] = aten.mul.Tensor(%g, %r)
      %s : f64[3] = aten.mul.Scalar(%d, %n)
      yield %s, None
  } attrs {n_outputs: 1}
  %z : f64[3] = aten.mul.Scalar(%y, 2)
  return %z as $0
"""


def test_the_backward_block_is_used(program):
    x = torch.randn(3, dtype=torch.float64, requires_grad=True)
    (z,) = run(program(EXP), x)
    assert torch.equal(z, 2 * x.exp())
    z.sum().backward()
    assert torch.allclose(x.grad, 20 * x.detach().exp())


def test_without_gradients_it_is_just_its_forward(program):
    with torch.no_grad():
        (z,) = run(program(EXP), torch.zeros(3, dtype=torch.float64, requires_grad=True))
    assert z.tolist() == [2, 2, 2] and not z.requires_grad


def test_none_gradients_and_captures_and_several_outputs(program):
    p = program("""
      input %x : f64[3] = "x"
      input %w : f64[3] = "w"
      %k : f64[3] = aten.mul.Tensor(%w, %w)
      %y : f64[3], %i : i64[3] = custom_grad(%x, %w) {
        ^(%a : f64[3], %b : f64[3]):
          %e : f64[3] = aten.mul.Tensor(%a, %k)
          %s : i64[3] = aten.argsort.default(%b)
          yield %e, %s, %a
      } {
        ^(%r : f64[3], %g : f64[3], %gi : f64[3]):
          %d : f64[3] = aten.mul.Tensor(%g, %k)
          yield %d, None
      } attrs {n_outputs: 2}
      return %y, %i as ($0, $1)
    """)
    x = torch.randn(3, dtype=torch.float64, requires_grad=True)
    w = torch.randn(3, dtype=torch.float64, requires_grad=True)
    y, i = run(p, x, w)
    assert torch.equal(y, x * w * w) and torch.equal(i, w.argsort()) and not i.requires_grad
    y.sum().backward()
    assert torch.allclose(x.grad, (w * w).detach()) and w.grad is None


def test_control_flow_and_writes_inside(program):
    p = program("""
      input %x : f64[3] = "x"
      %y : f64[3] = custom_grad(%x) {
        ^(%a : f64[3]):
          %u : f64[3] = update(%a) {
            ^(%b : f64[3]):
              %r : f64[3] = aten.mul_.Scalar(%b, 3)
              yield %b
          }
          yield %u
      } {
        ^(%g : f64[3]):
          %m : f64[] = aten.sum.default(%g)
          %f : f64[3] = cond(%m) {
            %d : f64[3] = aten.mul.Scalar(%g, 3)
            yield %d
          } { yield %g }
          yield %f
      } attrs {n_outputs: 1}
      return %y as $0
    """)
    x = torch.ones(3, dtype=torch.float64, requires_grad=True)
    (y,) = run(p, x)
    y.sum().backward()
    assert x.detach().tolist() == [1, 1, 1] and y.tolist() == [3, 3, 3] and x.grad.tolist() == [3, 3, 3]
    assert torch.autograd.gradcheck(lambda t: run(p, t)[0], [x])


def test_an_error_in_backward_points_at_the_user(program):
    p = program("""
      input %x : f64[3] = "x"
      %y : f64[3] = custom_grad(%x) {
        ^(%a : f64[3]): yield %a
      } {
        ^(%g : f64[3]):
          %d : f64[3] = aten.view.default(%g, [7]) @ "model.py":41:4 in "backward" "    return g.view(7)"
          yield %d
      } attrs {n_outputs: 1}
      return %y as $0
    """)
    (y,) = run(p, torch.ones(3, dtype=torch.float64, requires_grad=True))
    with pytest.raises(RuntimeError, match="shape '\\[7\\]' is invalid") as caught:
        y.sum().backward()
    places = [(frame.filename, frame.lineno) for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert places[-1] == ("model.py", 41) and not any("<program" in file for file, _ in places)
