"""Reading the text form: the exact inverse of printing, for any Program; and errors with line and column."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.errors import ProgramError
from runtime.ir import (
    UNDEF,
    ArrayType,
    Assume,
    Block,
    Input,
    Location,
    ObjectType,
    Operator,
    Parameter,
    Program,
    ScalarType,
    TensorType,
    Variable,
    Write,
)
from runtime.ir.compare import difference
from runtime.ir.constants import TORCH_CONSTANTS
from runtime.ir.parser import parse_program
from runtime.ir.printer import print_program
from runtime.ir.tree import Leaf, Record

text = st.text(st.characters(exclude_categories=()), max_size=6)
words = st.one_of(st.sampled_from(["yield", "grad", "in", "x", "attrs", "inf", "record"]), text)
sizes = st.one_of(st.integers(0, 2**70), words)
dtypes = st.sampled_from([value for value in TORCH_CONSTANTS.values() if isinstance(value, torch.dtype)])
types = st.recursive(
    st.one_of(
        st.builds(TensorType, st.none() | dtypes, st.none() | st.lists(sizes, max_size=3).map(tuple)),
        st.sampled_from([ScalarType("int"), ScalarType("bool"), ScalarType("str"), ObjectType()]),
    ),
    lambda inner: st.builds(ArrayType, inner),
    max_leaves=3,
)
constants = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.builds(lambda bits: -(2**bits), st.sampled_from([64, 14_000, 20_000])),
    st.floats(),
    st.complex_numbers(),
    text,
    st.sampled_from(sorted(TORCH_CONSTANTS)).map(TORCH_CONSTANTS.__getitem__),
    st.sampled_from([torch.device("cpu"), torch.device("cuda:3"), torch.device("meta")]),
)
keys = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), text, st.tuples(text))


def operands(leaf):
    return st.recursive(
        leaf,
        lambda inner: st.one_of(
            st.lists(inner, max_size=3),
            st.lists(inner, max_size=3).map(tuple),
            st.dictionaries(keys, inner, max_size=2),
            st.builds(slice, inner, inner, inner),
        ),
        max_leaves=5,
    )


def trees(results):
    leaf = st.one_of(constants, st.builds(Leaf, st.integers(0, results)))
    return st.recursive(
        leaf,
        lambda inner: st.one_of(
            st.lists(inner, max_size=3).map(tuple),
            st.dictionaries(keys, inner, max_size=2),
            st.builds(Record, text, text, st.lists(st.tuples(words, inner), max_size=2).map(tuple)),
        ),
        max_leaves=4,
    )


locations = st.none() | st.builds(Location, text, st.integers(0), st.integers(-1, 99), text, text)
modes = st.none() | st.lists(st.tuples(text, st.booleans(), text), max_size=2).map(tuple)


@st.composite
def programs(draw) -> Program:
    names: set[str] = set()

    def variable() -> Variable:
        stem = draw(words)
        name = stem if stem not in names else f"{stem}.{len(names)}"
        while name in names:
            name += "_"
        names.add(name)
        return Variable(name, draw(types), draw(st.sampled_from(["", "h", "x", "x y"])))

    def variables(count: int) -> list[Variable]:
        return [variable() for _ in range(draw(st.integers(0, count)))]

    def leaf(visible):
        return st.one_of(constants, st.sampled_from(visible)) if visible else constants

    def block(args, visible, depth):
        visible = [*visible, *args]
        result = Block(list(args))
        for _ in range(draw(st.integers(0, 3))):
            op = Operator(
                draw(st.one_of(st.sampled_from(["aten.add.Tensor", "cond", "grad", "in", "scalar.add"]), words)),
                tuple(draw(st.lists(operands(leaf(visible)), max_size=3))),
                draw(st.dictionaries(words, operands(leaf(visible)), max_size=2)),
                tuple(variables(2)),
                tuple(block(variables(2), visible, depth - 1) for _ in range(draw(st.integers(0, 2 if depth else 0)))),
                draw(st.dictionaries(words, operands(constants), max_size=2)),
                draw(st.sampled_from(["inherit", "on", "off"])),
                draw(modes),
                draw(locations),
            )
            visible += op.outputs
            result.ops.append(op)
        result.yields = draw(st.lists(st.one_of(leaf(visible), st.just(UNDEF)), max_size=3))
        return result

    inputs = [Input(var, draw(text)) for var in variables(2)]
    kinds = st.sampled_from(["parameter", "buffer", "constant"])
    params = [Parameter(var, draw(text), draw(kinds), draw(st.booleans())) for var in variables(2)]
    args = [item.var for item in inputs] + [param.var for param in params]
    main = block(args, [], 2)
    symbols = st.dictionaries(words, st.tuples(text, st.integers(0, 5)), max_size=2)
    assumes = draw(st.lists(st.builds(Assume, text, symbols, locations), max_size=2))
    writes = [Write(var, draw(st.integers(0, 3))) for var in args[:2]]
    return Program(draw(text), main, inputs, params, draw(trees(3)), writes, assumes)


@settings(max_examples=40, deadline=None)
@given(programs())
def test_any_program_reads_back_exactly(program):
    printed = print_program(program)
    again = parse_program(printed)
    assert difference(program, again) is None
    assert print_program(again) == printed
    bare = print_program(program, locations=False)
    assert difference(program, parse_program(bare), locations=False) is None


def test_white_space_and_comments_do_not_matter():
    source = next((Path(__file__).parent / "valid").glob("*.txt")).read_text()
    squeezed = " # a comment\n".join(line.strip() for line in source.splitlines())
    assert print_program(parse_program(squeezed)) == source


@pytest.mark.parametrize(
    ("source", "line", "column", "message"),
    [
        ("", 1, 1, "expected 'program', found 'the end of the text'"),
        ('program "f" {\n  return %x as $0\n}', 2, 10, "%x is never assigned"),
        ('program "f" {\n  input %x : f99[] = "x"\n', 2, 14, "'f99' is no dtype"),
        ('program "f" {\n  input %x : number = "x"\n', 2, 14, "expected a type, found 'number'"),
        ('program "f" {\n  input %x f32[] = "x"\n', 2, 12, "expected ':', found 'f32'"),
        ('program "f" { return (1) }', 1, 24, "a tuple of one needs a comma"),
        ('program "f" { return 1 as $0 } extra', 1, 32, "expected the end of the text, found 'extra'"),
        ('program "f" { print(a=1, 2) return }', 1, 26, "a positional argument after a keyword argument"),
        ('program "f" { print(a=1, a=2) return }', 1, 26, "argument 'a' is given twice"),
        ('program "f" { return "abc', 1, 22, "a string that is not closed"),
        ('program "f" { return "a\\qb" }', 1, 22, "unknown escape \\q"),
        ('program "f" { return "a\\x1" }', 1, 22, "\\x needs 2 hexadecimal digits"),
        ('program "f" { return ~1 }', 1, 22, "unexpected character '~'"),
        ('program "f" { return device("no such") }', 1, 22, "'no such' is no device"),
        ('program "f" { return slice(1) }', 1, 22, "these are not the parts of a slice"),
        ('program "f" { return exec }', 1, 22, "expected an operand, found 'exec'"),
        ('program "f" { return torch.load }', 1, 22, "expected an operand, found 'torch.load'"),
        ('program "f" { return {[]: 1} }', 1, 23, "a key must be hashable"),
        ('program "f" { return $0 }', 1, 22, "expected an operand, found '$0'"),
        ('program "f" { return 1 write %x = 1.5 }', 1, 35, "expected a whole number, found '1.5'"),
        ('program "f" { return ' + "9" * 5000 + " }", 1, 22, "too many decimal digits"),
        ('program "f" {\n %a : int = x()\n %a : bool = x() return }', 3, 2, "%a is assigned twice, with different"),
    ],
)  # fmt: skip
def test_errors_name_line_and_column(source, line, column, message):
    with pytest.raises(ProgramError) as caught:
        parse_program(source)
    assert message in caught.value.summary
    assert caught.value.summary.startswith(f"line {line}, column {column}: ")
    assert caught.value.location is not None and caught.value.location.line == line


def test_text_that_nests_without_end_is_refused():
    with pytest.raises(ProgramError, match="nests too deeply"):
        parse_program('program "f" { return ' + "[" * 100_000)
