"""What is made ready is verified first."""

from __future__ import annotations

import pytest
import torch

from runtime.calling.prepare import Options, prepare
from runtime.errors import ProgramError
from runtime.ir import Operator
from runtime.ir.parser import parse_program

_TEXT = """program "f" {
  input %x : f32[2] = "x"
  %y : f32[2] = aten.tanh.default(%x)
  %z : f32[2] = aten.add.Tensor(%y, %x)
  return %z as $0
}"""


@pytest.mark.parametrize("backend", ["interpreter", "c", "cuda", "auto"])
def test_a_program_that_reads_what_is_not_there_yet(backend: str) -> None:
    program = parse_program(_TEXT)
    program.block.ops.reverse()
    with pytest.raises(ProgramError, match="dominance"):
        prepare(program, Options(backend=backend))


def test_a_variable_that_is_given_twice() -> None:
    program = parse_program(_TEXT)
    x, y = program.block.args[0], program.block.ops[0].outputs[0]
    program.block.ops.insert(1, Operator("aten.exp.default", (x,), {}, (y,)))
    with pytest.raises(ProgramError, match="assigned-once"):
        prepare(program, Options())


def test_sizes_are_not_refused() -> None:
    """A path may give others than its type says."""
    program = parse_program(_TEXT)
    program.block.ops[0].outputs[0].type = program.block.ops[0].outputs[0].type.__class__(torch.float32, (3,))
    assert prepare(program, Options()).run([torch.zeros(2)], [])[0].tolist() == [0.0, 0.0]
