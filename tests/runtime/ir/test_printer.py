"""The text form: golden text, and what printing must never do."""

from __future__ import annotations

from pathlib import Path

import numpy
import pytest
import torch

from runtime.errors import ProgramError
from runtime.ir import ArrayType, Block, Input, ObjectType, Operator, Program, ScalarType, TensorType, Variable
from runtime.ir.parser import parse_program
from runtime.ir.printer import print_operand, print_operator, print_program, print_type
from runtime.ir.tree import Leaf

VALID = sorted((Path(__file__).parent / "valid").glob("*.txt"))


@pytest.mark.parametrize("file", VALID, ids=lambda file: file.stem)
def test_golden_text_prints_as_it_reads(file):
    text = file.read_text()
    assert print_program(parse_program(text)) == text
    assert str(parse_program(text)) == text


def test_without_locations_neither_places_nor_hints_are_printed():
    text = VALID[0].read_text()
    plain = print_program(parse_program(text), locations=False)
    assert "user.py" in text and "user.py" not in plain
    assert '"images"' in text and '"images"' not in plain
    assert print_program(parse_program(plain), locations=False) == plain


@pytest.mark.parametrize(
    ("type_", "text"),
    [
        (TensorType(torch.float32, (3, "s0")), "f32[3, s0]"),
        (TensorType(torch.bool, ()), "bool[]"),
        (ScalarType("bool"), "bool"),
        (TensorType(None, None), "?[*]"),
        (TensorType(torch.float8_e4m3fn, ("s0 + 1", "*")), 'float8_e4m3fn["s0 + 1", "*"]'),
        (ArrayType(ArrayType(TensorType(torch.complex64, (1,)))), "list<list<c64[1]>>"),
        (ObjectType(), "object"),
    ],
)
def test_types(type_, text):
    assert print_type(type_) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "True"), (1, "1"), (1.0, "1.0"), (-0.0, "-0.0"), (float("-inf"), "-inf"), (1e300, "1e+300"),
        (complex(-0.0, float("nan")), "complex(-0.0, nan)"), ("é\n\x00\ud800😀", '"é\\n\\x00\\ud800😀"'),
        (torch.device("cuda", 1), 'device("cuda:1")'), (torch.channels_last, "torch.channels_last"),
        (torch.sparse_csr, "torch.sparse_csr"), (torch.half, "torch.float16"), ((), "()"), ((1,), "(1,)"),
        ({"a": [None], 2: ()}, '{"a": [None], 2: ()}'), (slice(1, None, -1), "slice(1, None, -1)"),
        (Variable("a b", ObjectType()), '%"a b"'),
    ],
)  # fmt: skip
def test_operands(value, text):
    assert print_operand(value) == text


def test_printing_never_fails_but_says_what_cannot_be_read_back():
    x = Variable("x", ObjectType())
    op = Operator("print", (x, numpy.float64(1.0)))
    program = Program("f", Block([x], [op], [x]), [Input(x, "x")], output=Leaf(0))
    text = print_program(program)
    assert '!opaque "numpy.float64"' in text
    with pytest.raises(ProgramError, match="an object that the text form cannot hold"):
        parse_program(text)


def test_one_operator_with_its_blocks():
    op = parse_program('program "f" { input %x : bool[] = "x" cond(%x) { print(1) } { } return %x as $0 }').block.ops[0]
    assert print_operator(op) == "cond(%x) {\n  print(1)\n} {\n}"


def test_a_name_that_is_a_keyword_or_no_name():
    ops = [Operator("yield"), Operator("a b"), Operator("return", kwargs={"attrs": 1, "a b": 2}, attrs={"x y": 1})]
    text = print_program(Program("f", Block(ops=ops)))
    assert 'op "yield"()' in text and 'op "a b"()' in text and 'op "return"(attrs=1, "a b"=2) attrs {"x y": 1}' in text
    assert print_program(parse_program(text)) == text
