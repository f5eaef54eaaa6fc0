"""Comparisons in Python: which are, and that they answer as the operator does."""

import itertools
import math

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from runtime.executor import compile_program, tested
from runtime.ir import Operator, TensorType, Variable
from runtime.ops import aten


class Compared(TorchDispatchMode):
    """Counts the comparisons that operators make."""

    count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.count += func._schema.name.removeprefix("aten::") in tested.SIGNS
        return func(*args, **(kwargs or {}))


def run(program, *inputs, grad=False):
    executable = compile_program(program)
    with torch.set_grad_enabled(grad), Compared() as counter:
        results = executable.run(list(inputs), [])
    return counter.count, results


NUMBERS = [0, 1, -1, 3, 2**24 + 1, 2**53, 2**53 + 1, -(2**63), 2**63 - 1, 0.0, -0.0, 0.1, 1 / 3, 2.5, 1e-46, 1e30,
           16777217.0, 1e39, math.inf, -math.inf, math.nan]  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.int64])
@pytest.mark.parametrize("sign", sorted(tested.SIGNS))
def test_a_number_is_compared_as_the_operator_compares_it(dtype, sign):
    name = f"aten.{sign}.Scalar"
    x = Variable("x", TensorType(dtype, ()))
    decided = 0
    for number, held in itertools.product(NUMBERS, NUMBERS):
        if dtype == torch.int64 and type(held) is float:
            continue
        op = Operator(name, (x, number), {}, (Variable("c", TensorType(torch.bool, ())),))
        if tested._operands(op) is None:
            continue
        _, python, rounded = tested.operands(op)
        tensor = torch.tensor(held, dtype=dtype)
        for value in (tensor, torch.nextafter(tensor, tensor + 1)) if dtype.is_floating_point else (tensor,):
            found = eval(f"a {python} b", {"a": value.item(), "b": rounded})
            assert found is bool(aten.resolve(name)(value, number)), (value, number)
            decided += 1
    assert decided >= 60


@pytest.mark.parametrize("number, dtype", [
    (2.5, torch.int64), (1, torch.int32), (2**63, torch.int64), (True, torch.int64), (1, torch.bool),
    (0.5, torch.float16), (0.5, torch.bfloat16), (math.nan, torch.float32), (1e39, torch.float32),
    (2**60, torch.float32), (1, None),
])  # fmt: skip
def test_what_is_not_known_is_left_to_the_operator(number, dtype):
    x = Variable("x", TensorType(dtype, ()))
    op = Operator("aten.gt.Scalar", (x, number), {}, (Variable("c", TensorType(torch.bool, ())),))
    assert tested._operands(op) is None


LOOP = """
  input %x : f32[] = "x"
  %a : bool[] = aten.gt.Scalar(%x, 0.1)
  %b : bool = scalar.truth(%a)
  %f : bool, %y : f32[] = while_loop(%b, %x) {
    ^(%g : bool, %z : f32[]):
      yield %g
  } {
    ^(%h : bool, %w : f32[]):
      %v : f32[] = aten.mul.Tensor(%w, 0.5)
      %c : bool[] = aten.gt.Scalar(%v, 0.1)
      %t : bool = scalar.truth(%c)
      yield %t, %v
  }
  return %y as $0
"""


def test_a_loop_tests_without_operators(program):
    count, (y,) = run(program(LOOP), torch.tensor(1.0))
    assert count == 0 and y == 0.0625
    count, (y,) = run(program(LOOP), torch.tensor(0.1))
    assert count == 0 and y == torch.tensor(0.1)


def test_a_tensor_that_needs_a_gradient_is_compared_without_a_warning(program):
    count, (y,) = run(program(LOOP), torch.tensor(1.0, requires_grad=True))
    assert count == 0 and y == 0.0625


def test_with_gradients_the_operator_compares(program):
    count, _ = run(program(LOOP), torch.tensor(1.0, requires_grad=True), grad=True)
    assert count == 5


def test_under_autocast_the_operator_compares(program):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert run(program(LOOP), torch.tensor(1.0))[0] == 5


READ = {
    "yielded": ("%b : bool = scalar.truth(%a)", "%a as $0"),
    "an operand": ("%n : bool[] = aten.logical_not.default(%a)", "%n as $0"),
    "read in a Block": ("""
      %b : bool = scalar.truth(%a)
      %r : bool[] = cond(%b) { yield %a } { yield %a }
    """, "%r as $0"),
    "an operand in a Block": ("""
      %b : bool = scalar.truth(%a)
      %r : bool[] = cond(%b) {
        %n : bool[] = aten.logical_not.default(%a)
        yield %n
      } { yield %a }
    """, "%r as $0"),
}


@pytest.mark.parametrize("case", READ)
def test_what_more_than_a_test_reads_is_a_tensor(program, case):
    body, results = READ[case]
    p = program(f'input %x : f32[] = "x"\n%a : bool[] = aten.lt.Scalar(%x, 1)\n{body}\nreturn {results}')
    count, (found,) = run(p, torch.tensor(0.0))
    assert count == 1 and isinstance(found, torch.Tensor) and found.dtype == torch.bool


SWITCH = """
  input %x : f32[] = "x"
  input %n : int = "n"
  %c : bool[] = switch(%n) {
    %a : bool[] = aten.gt.Scalar(%x, 0)
    yield %a
  } {
    %b : bool[] = aten.lt.Scalar(%x, 0)
    yield %b
  }
  %t : bool = scalar.truth(%c)
  return %t as $0
"""


def test_a_choice_of_many_hands_on_what_is_tested(program):
    for number, expected in ((0, True), (1, False)):
        assert run(program(SWITCH), torch.tensor(1.0), number) == (0, [expected])


AND = """
  input %x : f32[] = "x"
  input %y : f32[] = "y"
  %a : bool[] = aten.gt.Scalar(%x, 0)
  %b : bool = scalar.truth(%a)
  %c : bool[] = cond(%b) {
    %d : bool[] = aten.gt.Scalar(%y, 0)
    yield %d
  } { yield %a }
  %e : bool = scalar.truth(%c)
  return {results}
"""


def test_a_test_behind_a_branch(program):
    for x, y in itertools.product([-1.0, 1.0], repeat=2):
        given = torch.tensor(x), torch.tensor(y)
        assert run(program(AND.replace("{results}", "%e as $0")), *given) == (0, [x > 0 and y > 0])
        count, (found,) = run(program(AND.replace("{results}", "%c as $0")), *given)
        assert count == 1 + (x > 0) and torch.equal(found, torch.tensor(x > 0 and y > 0))


def test_two_tensors(program):
    p = program("""
      input %x : i64[] = "x"
      input %y : i64[] = "y"
      %a : bool[] = aten.lt.Tensor(%x, %y)
      %b : bool = scalar.truth(%a)
      return %b as $0
    """)
    for x, y in [(2**53, 2**53 + 1), (1, 1), (2, 1)]:
        assert run(p, torch.tensor(x), torch.tensor(y)) == (0, [x < y])
