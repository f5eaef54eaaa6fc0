"""Grad mode and autocast: each Operator runs in the modes it was recorded in, however deep it stands."""

import pytest
import torch

from runtime.executor import compile_program


def run(program, *inputs, **kwargs):
    return compile_program(program, **kwargs).run(list(inputs), [])


def test_a_region_without_gradients(program):
    p = program("""
      input %x : f32[] = "x"
      %a : f32[] = aten.mul.Tensor(%x, %x) grad off
      %b : f32[] = aten.mul.Tensor(%a, %x)
      return %b as $0
    """)
    x = torch.tensor(3.0, requires_grad=True)
    run(p, x)[0].backward()
    assert x.grad == 9.0


def test_a_region_with_gradients_forced(program):
    p = program("""
      input %x : f32[] = "x"
      %a : f32[] = aten.mul.Tensor(%x, %x) grad on
      %b : f32[] = aten.mul.Tensor(%a, %x)
      return %a, %b as ($0, $1)
    """)
    with torch.no_grad():
        a, b = run(p, torch.tensor(3.0, requires_grad=True))
    assert a.requires_grad and not b.requires_grad


@pytest.mark.parametrize("grad", [True, False])
def test_inherit_is_the_callers_mode_inside_a_forced_branch(program, grad):
    p = program("""
      input %x : f32[] = "x"
      %a : f32[], %b : f32[], %c : f32[] = cond(True) {
        %a1 : f32[] = aten.mul.Tensor(%x, %x)
        %b1 : f32[] = aten.mul.Tensor(%x, %x) grad off
        %c1 : f32[] = aten.mul.Tensor(%x, %x) grad on
        yield %a1, %b1, %c1
      } { yield %x, %x, %x } grad off
      return %a, %b, %c as ($0, $1, $2)
    """)
    with torch.set_grad_enabled(grad):
        a, b, c = run(p, torch.tensor(3.0, requires_grad=True))
    assert (a.requires_grad, b.requires_grad, c.requires_grad) == (grad, False, True)


def test_one_switch_for_neighbours_and_for_a_whole_loop(program):
    p = program("""
      input %x : f32[] = "x"
      %a : f32[] = aten.exp.default(%x) grad off
      %n : int = scalar.add(1, 1)
      %b : f32[] = aten.exp.default(%a) grad off
      %i1 : int, %h1 : f32[] = while_loop(0, %b) {
        ^(%i : int, %h : f32[]):
          %c : bool = scalar.lt(%i, %n)
          yield %c
      } {
        ^(%j : int, %g : f32[]):
          %e : f32[] = aten.exp.default(%g) grad off
          %k : int = scalar.add(%j, 1)
          yield %k, %e
      }
      return %h1 as $0
    """)
    executable = compile_program(p)
    assert executable.source(grad=True).count("with ") == 1
    assert executable.source(grad=False).count("with ") == 0
    with torch.enable_grad():
        assert not executable.run([torch.tensor(0.0, requires_grad=True)], [])[0].requires_grad


AUTOCAST = 'autocast [["cpu", True, "torch.bfloat16"]]'


def test_autocast_regions(program):
    from runtime.ir import Block, Input, Operator, Program, TensorType, Variable

    f32 = TensorType(torch.float32, (2, 2))
    x, a, b, c = (Variable(name, f32) for name in "xabc")
    on = (("cpu", True, "torch.bfloat16"),)
    off = (("cpu", False, "torch.bfloat16"),)
    p = Program("p", Block([x], [
        Operator("aten.mm.default", (x, x), outputs=(a,), autocast=on),
        Operator("aten.mm.default", (x, x), outputs=(b,)),
        Operator("aten.mm.default", (x, x), outputs=(c,), autocast=off),
    ], [a, b, c]), [Input(x, "x")])
    value = torch.randn(2, 2)
    dtypes = [one.dtype for one in run(p, value)]
    assert dtypes == [torch.bfloat16, torch.float32, torch.float32]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        dtypes = [one.dtype for one in run(p, value)]
    assert dtypes == [torch.bfloat16, torch.bfloat16, torch.float32]


def test_modes_are_restored_after_an_error(program):
    p = program("""
      input %x : f32[2, 3] = "x"
      %a : f32[2, 2] = aten.mm.default(%x, %x) grad off
      return %a as $0
    """)
    with torch.enable_grad(), pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        run(p, torch.ones(2, 3))
    assert torch.is_grad_enabled()


def test_inference_mode(program):
    p = program("""
      input %x : f32[] = "x"
      %a : f32[] = aten.mul.Tensor(%x, %x)
      return %a as $0
    """)
    with torch.inference_mode():
        (a,) = run(p, torch.tensor(2.0))
    assert a.is_inference() and a == 4
