"""Tiny invalid programs, a file for each family of rules, each with the message it must give."""

from __future__ import annotations

from pathlib import Path

import numpy
import pytest
import torch

from runtime.errors import ProgramError
from runtime.ir import Block, Input, Operator, Program, TensorType, Variable
from runtime.ir.parser import parse_program
from runtime.ir.tree import Leaf
from runtime.ir.verify import verify

HERE = Path(__file__).parent
FLOATS = TensorType(torch.float32, (2,))


def cases() -> list:
    found = []
    for file in sorted((HERE / "invalid").glob("*.txt")):
        for case in file.read_text().split("=== ")[1:]:
            title, _, rest = case.partition("\n")
            text, _, message = rest.partition("\n--- ")
            found.append(pytest.param(text, message.rstrip("\n"), id=f"{file.stem}: {title}"))
    return found


@pytest.mark.parametrize(("text", "message"), cases())
def test_an_invalid_program_is_refused_with_its_message(text, message):
    program = parse_program(text)
    with pytest.raises(ProgramError) as caught:
        verify(program, results_used=())
    assert message and message in str(caught.value)


@pytest.mark.parametrize("file", sorted((HERE / "valid").glob("*.txt")), ids=lambda file: file.stem)
def test_a_valid_program_is_accepted(file):
    verify(parse_program(file.read_text()))


def one_operator(op: Operator, x: Variable) -> Program:
    block = Block([x], [op], list(op.outputs))
    return Program("f", block, [Input(x, "x")], output=Leaf(0))


def test_two_variables_of_one_name():
    x = Variable("x", FLOATS)
    program = one_operator(Operator("aten.relu.default", (x,), outputs=(Variable("x", FLOATS),)), x)
    with pytest.raises(ProgramError, match="rule 'unique-name': two Variables are called %x"):
        verify(program)


@pytest.mark.parametrize("value", [numpy.float64(1.0), torch.Size([2]), object(), torch.zeros(1), {1}, int])
def test_an_object_that_is_no_constant(value):
    x = Variable("x", FLOATS)
    program = one_operator(Operator("aten.add.Tensor", (x, value), outputs=(Variable("y", FLOATS),)), x)
    with pytest.raises(ProgramError, match="rule 'operand': an object of type .* is no operand"):
        verify(program)


def test_block_arguments_that_are_not_the_inputs():
    x = Variable("x", FLOATS)
    program = Program("f", Block([x], [], [x]), output=Leaf(0))
    with pytest.raises(ProgramError, match="rule 'program-args'"):
        verify(program)


def test_one_broken_rule_leaves_the_verifier_reusable():
    good = parse_program('program "f" { input %x : f32[2] = "x" return %x as $0 }')
    bad = parse_program('program "f" { input %x : f32[2] = "x" return %x, %x as $0 }')
    with pytest.raises(ProgramError):
        verify(bad, results_used=())
    verify(good)
    verify(good)
