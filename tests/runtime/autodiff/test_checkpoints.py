"""checkpoints: the gradients of a loop of which a few states are kept, bit for bit those of one that keeps all."""

from __future__ import annotations

import gc
import weakref

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from runtime.autodiff import Runner
from runtime.errors import ProgramError
from runtime.executor import compile_program
from runtime.ir import ArrayType
from runtime.ir.parser import parse_program
from runtime.ir.printer import print_program
from runtime.ir.verify import verify

LOOP = """program "f" {{
  input %x : f32[3] = "x"
  input %w : f32[3] = "w"
  input %n : i64[] = "n"
  %0 : int = scalar.item(%n)
  %i : int, %h : f32[3] = while_loop(0, %x) {{
    ^(%j : int, %g : f32[3]):
      %more : bool = scalar.lt(%j, %0)
      yield %more
  }} {{
    ^(%k : int, %a : f32[3]):
      {body}
      %next : int = scalar.add(%k, 1)
      yield %next, %b
  }} attrs {attrs}
  return %h as $0
}}"""
PLAIN = "%u : f32[3] = aten.mul.Tensor(%a, %w)\n      %b : f32[3] = aten.tanh.default(%u)"
DROPPING = (
    "%p : f32[3] = aten.rand_like.default(%a)\n      %u : f32[3] = aten.mul.Tensor(%a, %w)\n"
    "      %v : f32[3] = aten.mul.Tensor(%u, %p)\n      %b : f32[3] = aten.tanh.default(%v)"
)


def runner(attrs: str, body: str = PLAIN) -> Runner:
    program = parse_program(LOOP.format(attrs=attrs, body=body))
    verify(program)
    return Runner(program, compile_program)


def arguments(length: int) -> list[torch.Tensor]:
    torch.manual_seed(0)
    return [torch.randn(3, requires_grad=True), torch.randn(3, requires_grad=True), torch.tensor(length)]


def outcome(found: Runner, length: int) -> list[torch.Tensor]:
    args = arguments(length)
    (y,) = found.run(args, [])
    y.backward(torch.tensor([1.0, -2.0, 0.5]))
    grads = [torch.zeros(3) if one.grad is None else one.grad for one in args[:2]]
    return [y.detach(), *grads, torch.rand(2)]


@pytest.mark.parametrize("body", [PLAIN, DROPPING], ids=["plain", "random"])
@pytest.mark.parametrize("most", [1, 2, 3, 5])
def test_gradients_are_the_same_bit_for_bit(most, body):
    plain, checkpointed = runner("{}", body), runner(f"{{checkpoints: {most}}}", body)
    for length in (0, 1, most - 1, most, most + 1, 2 * most + 3, 40):
        for got, expected in zip(outcome(checkpointed, length), outcome(plain, length)):
            assert torch.equal(got, expected), length


def test_both_halves_print_parse_and_verify():
    found = runner("{checkpoints: 3}", DROPPING)
    outcome(found, 4)
    (halves,) = found._halves.values()
    for half in halves.derivative.programs():
        verify(half)
        text = print_program(half)
        assert "checkpoint." in text and "checkpoints: 3" in text
        assert print_program(parse_program(text)) == text


def test_what_is_kept_is_states_alone():
    found = runner("{checkpoints: 3}")
    outcome(found, 4)
    (halves,) = found._halves.values()
    derivative = halves.derivative
    kept = derivative.forward.block.yields[derivative.results + len(derivative.flags):]
    assert [str(one.type.element) for one in kept if isinstance(one.type, ArrayType)] == [
        "ScalarType(kind='int')", "TensorType(dtype=torch.float32, shape=(3,), device=None)"]  # fmt: skip


class Tangents(TorchDispatchMode):
    """Counts calls of ``tanh``, and how many of its results are alive at the same time."""

    def __init__(self):
        super().__init__()
        self.calls = self.most = 0
        self.alive = weakref.WeakSet()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        if func is torch.ops.aten.tanh.default:
            self.calls += 1
            self.alive.add(result)
            self.most = max(self.most, len(self.alive))
        return result


@pytest.mark.parametrize(("most", "length"), [(3, 60), (10, 500), (50, 500)])
def test_steps_and_states_are_as_few_as_promised(most, length):
    from tests.runtime.ops.test_checkpoint import steps_computed

    found = runner(f"{{checkpoints: {most}}}")
    outcome(found, 2)
    args = arguments(length)
    gc.collect()
    with Tangents() as counted:
        (y,) = found.run(args, [])
        y.sum().backward()
    # Backward computes the body that it goes back over once more.
    assert counted.calls == steps_computed(length, most) + length
    assert counted.most <= most + 2


def test_a_body_that_calls_python_is_refused():
    body = '%b : f32[3] = py_func(%a) attrs {function: "there"}'
    with pytest.raises(ProgramError, match="checkpoints.*must not call py_func"):
        runner("{checkpoints: 3}", body)


@pytest.mark.parametrize("most", [0, -1])
def test_there_is_a_state_at_least(most):
    with pytest.raises(ProgramError, match="'checkpoints' of while_loop must be at least 1"):
        runner(f"{{checkpoints: {most}}}")
