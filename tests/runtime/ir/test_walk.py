"""Copying, counting and replacing."""

from __future__ import annotations

from pathlib import Path

import pytest

from runtime.ir import leaves
from runtime.ir.compare import difference
from runtime.ir.parser import parse_program
from runtime.ir.verify import verify
from runtime.ir.walk import Names, blocks, copy_block, copy_program, map_operand, substitute, uses, variables

TEXT = (Path(__file__).parent / "valid" / "every_operator.txt").read_text()


def test_a_copy_is_the_same_and_shares_nothing():
    program = parse_program(TEXT)
    copy = copy_program(program)
    assert difference(program, copy) is None
    verify(copy)
    assert not {id(var) for var in variables(program)} & {id(var) for var in variables(copy)}
    assert not {id(block) for block in blocks(program)} & {id(block) for block in blocks(copy)}
    read = {id(var) for op in copy.block.walk() for var in op.inputs}
    assert read <= {id(var) for var in variables(copy)}
    copy.block.ops[0].attrs["x"] = 1
    assert "x" not in program.block.ops[0].attrs


def test_a_block_copied_inside_its_own_program_under_new_names():
    program = parse_program(TEXT)
    names = Names(program)
    cond = program.block.ops[2]
    copy = copy_block(cond.blocks[0], {}, names.new)
    program.block.ops[3:3] = copy.ops
    verify(program)
    assert copy.ops[0].args == cond.blocks[0].ops[0].args


def test_uses_count_every_read():
    counts = {var.name: count for var, count in uses(parse_program(TEXT)).items()}
    assert counts["0"] == 4  # relu, a yield of cond, the body of the loop, a yield of switch
    assert counts["flag"] == 3
    assert counts["again"] == 0


def test_substitute_reaches_every_operand():
    program = parse_program(
        'program "f" { input %x : int = "x" input %y : int = "y" '
        "%0 : object = py_func([%x, (slice(%x, None, %x),)], {1: %x}) attrs {function: \"g\"} "
        "%1 : int = cond(%x) { yield %x } { yield %y } return %0, %1, %x as ($0, $1, $2) }"
    )  # fmt: skip
    x, y = program.block.args
    substitute(program.block, {x: y})
    assert not [op for op in program.block.walk() if x in op.inputs]
    assert x not in [var for block in blocks(program) for var in leaves(block.yields)]
    verify(program)


def test_map_operand_keeps_containers():
    assert map_operand((1, [2], {"a": slice(None, 3)}), lambda var: var) == (1, [2], {"a": slice(None, 3)})


@pytest.mark.parametrize(
    ("old", "new", "path"),
    [
        ("alpha=%i_3", "alpha=%i_2", "block.ops[3].blocks[1].ops[1].kwargs[0][1]"),
        ("1e-05, False)\n      yield", "1e-05, True)\n      yield", "block.ops[7].blocks[0].ops[0].args[8]"),
        ("max_iterations: 10", "max_iterations: True", "block.ops[3].attrs[0][1]"),
        ("%zero, 1.0", "%zero, 1", "block.ops[5].blocks[0].ops[2].args[1]"),
        ('"user.py":15:4', '"user.py":15:5', "block.ops[3].location.column"),
        ("%w : f32[3, 3]", "%w : f64[3, 3]", "params[0].var.type.dtype"),
        ('{"a": $0}', '{"a": $1}', "output[2][0][1].index"),
        ("write %mean = 3", "write %var = 3", "writes[0].target"),
    ],
)
def test_a_difference_is_found_where_it_is(old, new, path):
    assert old in TEXT
    found = difference(parse_program(TEXT), parse_program(TEXT.replace(old, new)))
    assert found is not None and (found == path or found.startswith((path, "block.args")))


def test_negative_zero_and_nan_differ():
    def program(value):
        return parse_program(f'program "f" {{ return {value} as $0 }}')

    assert difference(program("-0.0"), program("0.0")) == "block.yields[0]"
    assert difference(program("nan"), program("-nan")) == "block.yields[0]"
    assert difference(program("nan"), program("nan")) is None
    assert difference(program("complex(0.0, -0.0)"), program("complex(0.0, 0.0)")) == "block.yields[0]"
