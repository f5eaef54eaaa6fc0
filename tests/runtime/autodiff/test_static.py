"""``append_backward`` and ``gradients``: a Program extended by its own gradients."""

import pytest
import torch

import runtime
from runtime.errors import ProgramError
from runtime.executor import compile_program
from runtime.ir.parser import parse_program
from runtime.ir.tree import Leaf
from runtime.ir.verify import verify

TEXT = """program "f" {
  input %x : f64[3, s0] = "x"
  param %w : f64[s0, 4] = "w" parameter requires_grad
  param %v : f64[4, 4] = "v" parameter requires_grad
  param %u : f64[4, 4] = "u" parameter requires_grad
  param %k : f64[4] = "k" buffer
  %0 : f64[3, 4] = aten.matmul.default(%x, %w)
  %n : i64[] = aten.full.default([], 0, dtype=torch.int64)
  %1 : f64[3, 4], %2 : i64[] = while_loop(%0, %n) {
    ^(%a : f64[3, 4], %i : i64[]):
      %c : bool[] = aten.lt.Scalar(%i, 3)
      yield %c
  } {
    ^(%a.1 : f64[3, 4], %i.1 : i64[]):
      %3 : f64[3, 4] = aten.matmul.default(%a.1, %v)
      %4 : f64[3, 4] = aten.tanh.default(%3)
      %5 : i64[] = aten.add.Tensor(%i.1, 1)
      yield %4, %5
  }
  %6 : f64[3, 4] = aten.mul.Tensor(%1, %k)
  %loss : f64[] = aten.sum.default(%6)
  return %loss, %0 as ($0, $1)
}"""


@pytest.fixture
def program():
    made = parse_program(TEXT)
    verify(made)
    return made


@pytest.fixture
def values():
    torch.manual_seed(0)
    shapes = {"x": (3, 5), "w": (5, 4), "v": (4, 4), "u": (4, 4), "k": (4,)}
    return {
        name: torch.randn(shape, dtype=torch.float64, requires_grad=name in "xwv") for name, shape in shapes.items()
    }


def eager(values):
    h = first = values["x"] @ values["w"]
    for _ in range(3):
        h = torch.tanh(h @ values["v"])
    return (h * values["k"]).sum(), first


def run(program, values, *results):
    program.block.yields = [*program.block.yields[:2], *results]
    program.output = tuple(Leaf(index) for index in range(len(program.block.yields)))
    verify(program)
    again = parse_program(str(program))
    verify(again)
    assert str(again) == str(program)
    names = [item.name for item in [*again.inputs, *again.params]]
    with torch.no_grad():
        return compile_program(again).run([values[name] for name in names], [])


def named(program):
    return {item.name: item.var for item in [*program.inputs, *program.params]}


def test_append_backward(program, values):
    by_name, loss = named(program), program.block.yields[0]
    pairs = runtime.append_backward(loss, program=program)
    assert [param for param, _ in pairs] == [by_name["w"], by_name["v"]]  # the loss does not depend on u
    assert loss is program.block.yields[0]
    total, first, *found = run(program, values, *(grad for _, grad in pairs))
    wanted = torch.autograd.grad(eager(values)[0], [values["w"], values["v"]])
    torch.testing.assert_close(total, eager(values)[0])
    torch.testing.assert_close(found, list(wanted))


def test_chosen_by_name_and_blocked(program, values):
    pairs = runtime.append_backward(program.block.yields[0], ["x", "w"], no_grad_set=["w"], program=program)
    assert [param.name for param, _ in pairs] == ["x"]
    found = run(program, values, pairs[0][1])[2]
    torch.testing.assert_close(found, torch.autograd.grad(eager(values)[0], values["x"])[0])


def test_gradients_with_given_ones_and_in_between(program, values):
    by_name = named(program)
    loss, first = program.block.yields
    given = by_name["x"]
    weighted, none = runtime.gradients([loss], [first, by_name["u"]], program=program)
    assert none is None
    (second,) = runtime.gradients(first, by_name["x"], program=program)
    assert weighted is not None and second is not None and given is not None
    _, _, a, b = run(program, values, weighted, second)
    total, start = eager(values)
    torch.testing.assert_close(a, torch.autograd.grad(total, start, retain_graph=True)[0])
    torch.testing.assert_close(b, torch.autograd.grad(start.sum(), values["x"])[0])


def test_gradients_of_a_gradient(values):
    program = parse_program("""program "f" {
      input %x : f64[5] = "x"
      %0 : f64[5] = aten.pow.Tensor_Scalar(%x, 4)
      %1 : f64[] = aten.sum.default(%0)
      return %1, %0 as ($0, $1)
    }""")
    x = program.inputs[0].var
    (first,) = runtime.gradients(program.block.yields[0], x, program=program)
    (second,) = runtime.gradients(first, x, program=program)
    point = torch.arange(5.0, dtype=torch.float64)
    _, _, a, b = run(program, {"x": point}, first, second)
    torch.testing.assert_close(a, 4 * point**3)
    torch.testing.assert_close(b, 12 * point**2)


def test_mistakes(program):
    loss, first = program.block.yields
    with pytest.raises(ProgramError, match="no tensor of one element"):
        runtime.append_backward(first, program=program)
    with pytest.raises(ProgramError, match="no input or parameter called 'nobody'"):
        runtime.append_backward(loss, ["nobody"], program=program)
    inner = program.block.ops[2].blocks[1].args[0]
    with pytest.raises(ProgramError, match="not assigned in the main block"):
        runtime.gradients(loss, inner, program=program)
    with pytest.raises(ProgramError, match="1 targets, and 2 gradients"):
        runtime.gradients(loss, first, [None, None], program=program)
    program.params.clear()
    with pytest.raises(ProgramError, match="no parameter that needs a gradient"):
        runtime.append_backward(loss, program=program)


def test_random_numbers_in_a_backward_are_invalid():
    text = """program "f" {{
      input %x : f32[3] = "x"
      input %p : bool[] = "p"
      %y : f32[3] = cond(%p) {{
        %0 : f32[3] = aten.rand_like.default(%x)
        yield %0
      }} {{
        yield %x
      }} {attrs}
      return %y as $0
    }}"""
    verify(parse_program(text.format(attrs="")))
    with pytest.raises(ProgramError, match="backward-random.*aten.rand_like.default draws random numbers"):
        verify(parse_program(text.format(attrs="attrs {backward: True}")))
