"""How values go through Operators with Blocks, as their definitions tell it."""

from __future__ import annotations

from pathlib import Path

import pytest

from runtime.ir import Operator, Program
from runtime.ir.definition import definition_of
from runtime.ir.flow import First, Flow, Kind
from runtime.ir.parser import parse_program
from runtime.ir.ports import drop_ports, flow_of, handed_in, is_path, passed
from runtime.ir.printer import print_program
from runtime.ir.verify import verify
from runtime.ops.registry import STRUCTURAL

VALID = sorted((Path(__file__).parent / "valid").glob("*.txt"))


def _program(text: str) -> Program:
    program = parse_program(text)
    verify(program)
    return program


def _the(program: Program, name: str) -> Operator:
    return next(op for op in program.block.walk() if op.name == name)


LOOP = """
program "p" {
  input %x : f32[3] = "x"
  input %y : f32[3] = "y"
  %n : int, %a : f32[3], %b : f32[3], %c : f32[3] = while_loop(0, %x, %y, %x) {
    ^(%i : int, %a1 : f32[3], %b1 : f32[3], %c1 : f32[3]):
      %more : bool = scalar.lt(%i, 10)
      yield %more
  } {
    ^(%j : int, %a2 : f32[3], %b2 : f32[3], %c2 : f32[3]):
      %next : int = scalar.add(%j, 1)
      %t : f32[3] = aten.tanh.default(%c2)
      yield %next, %b2, %a2, %t
  }
  return %c
}
"""


@pytest.mark.parametrize("file", VALID, ids=lambda file: file.stem)
def test_ports_cover_what_goes_in_and_out(file):
    for op in parse_program(file.read_text()).block.walk():
        flow = flow_of(op)
        if flow.kind not in (Kind.BRANCH, Kind.LOOP, Kind.INLINE):
            continue
        ports = flow.ports(op)
        assert sorted(port.output for port in ports if port.output is not None) == list(range(len(op.outputs)))
        for port in ports:
            assert len(port.inner) in (0, len(op.blocks)) and len(port.yields) in (0, len(op.blocks))
        for index, block in enumerate(op.blocks):
            inner = [port.inner[index] for port in ports if port.inner and port.inner[index] is not None]
            assert sorted(inner) == list(range(len(block.args)))


def test_an_operator_with_blocks_says_how_they_run():
    with_blocks = {"cond", "switch", "while_loop", "scan", "update", "custom_grad", "recursion"}
    assert {name for name, one in STRUCTURAL.items() if one.flow.kind is not Kind.PLAIN} == with_blocks
    assert definition_of("cond").flow.name(1) == "false branch"
    assert [definition_of("custom_grad").flow.name(index) for index in range(3)] == ["forward", "backward", "backward"]
    assert [definition_of("switch").flow.name(index) for index in (0, 4)] == ["block 0", "block 4"]


def test_iterations_pass_values_from_name_to_name():
    program = _program(LOOP)
    loop = _the(program, "while_loop")
    x, y = (one.var for one in program.inputs)
    assert is_path(loop) and not is_path(program.block.ops[0].blocks[0].ops[0])
    assert passed(loop, 1) == {x, y}  # a and b change places
    tanh = loop.blocks[1].ops[1].outputs[0]
    assert passed(loop, 3) == {x, tanh}


NESTED = """
program "p" {
  input %x : f32[3] = "x"
  input %c : bool = "c"
  %h : f32[3] = aten.sin.default(%x)
  %l : list<f32[3]> = array.new([%x])
  %r : f32[3], %m : list<f32[3]> = cond(%c) {
    %a : f32[3] = cond(%c) {
      yield %h
    } {
      yield %x
    }
    %b : f32[3] = cond(%c) {
      %t : f32[3] = aten.tanh.default(%a)
      yield %t
    } {
      yield %a
    }
    %k : list<f32[3]> = array.append(%l, %b)
    yield %b, %k
  } {
    yield %x, %l
  }
  return %r, %m
}
"""


def test_paths_inside_of_paths_and_lists():
    program = _program(NESTED)
    h, new, cond = program.block.ops
    outer = {program.inputs[0].var, h.outputs[0], new.outputs[0]}
    assert passed(cond, 0) & outer == {program.inputs[0].var, h.outputs[0]}
    assert passed(cond, 1) & outer == {new.outputs[0]}
    assert passed(cond, 1, held=True) & outer == outer


def test_a_port_is_taken_out_on_its_whole_way():
    program = _program(LOOP)
    loop = _the(program, "while_loop")
    ports = flow_of(loop).ports(loop)
    drop_ports(loop, ports[1:3])
    verify(program)
    text = print_program(program)
    assert "%a1" not in text and "%b2" not in text and "yield %next, %t\n" in text


SCAN = """
program "p" {
  input %x : f32[4, 3] = "x"
  input %h : f32[3] = "h"
  %a : f32[3], %b : f32[3], %c : f32[4, 3], %d : list<f32[3]> = scan(4, %h, %h, %x, %x) {
    ^(%i : int, %g : f32[3], %k : f32[3], %r : f32[3], %s : f32[3]):
      %t : f32[3] = aten.add.Tensor(%g, %r)
      yield %t, %g, %s, %t
  } attrs {carried: 2}
  return %b
}
"""


def test_a_scan_counts_what_it_carries_again_when_ports_are_taken_out():
    program = _program(SCAN)
    scan = _the(program, "scan")
    own, a, b, x, y, c, d = flow_of(scan).ports(scan)
    assert own.is_own and not x.is_own and not c.is_own and [x.whole, c.whole, a.whole] == [False, False, True]
    tanh = scan.blocks[0].ops[0].outputs[0]
    assert passed(scan, 1) == {program.inputs[1].var, tanh} and passed(scan, 2) == set()
    assert passed(scan, 3) == set() and passed(scan, 3, held=True) == {tanh}
    drop_ports(scan, [y, c, d])
    verify(program)
    drop_ports(scan, [b])
    assert scan.attrs == {"carried": 1} and [len(scan.args), len(scan.outputs)] == [3, 1]


def test_what_decides_and_what_a_loop_begins_with():
    loop = _the(_program(LOOP), "while_loop")
    flow = flow_of(loop)
    (more,) = loop.blocks[0].yields
    assert list(flow.decides(loop)) == [more] and flow.first(loop) is None  # the test computes something
    assert handed_in(loop) == set(loop.inputs)
    scan = _the(_program(SCAN), "scan")
    assert list(flow_of(scan).decides(scan)) == [4] and flow_of(scan).first(scan) == First(True)
    counted = _the(_program(SCAN.replace("scan(4, ", "scan(%n, ").replace(
        'input %h', 'input %n : int = "n"\n  input %h')), "scan")  # fmt: skip
    length = counted.args[0]
    assert flow_of(counted).first(counted) == First(length, is_count=True)
    assert handed_in(counted) == set(counted.inputs) - {length}


FLAGGED = """
program "p" {
  input %x : f32[3] = "x"
  input %go : bool = "go"
  %f : bool, %a : f32[3] = while_loop(%go, %x) {
    ^(%g : bool, %b : f32[3]):
      yield %g
  } {
    ^(%h : bool, %c : f32[3]):
      %t : f32[3] = aten.tanh.default(%c)
      yield False, %t
  }
  %y : f32[3] = cond(%f) { yield %a } { yield %x }
  return %y
}
"""


def test_a_flag_that_a_loop_begins_with():
    program = _program(FLAGGED)
    loop, cond = program.block.ops
    assert flow_of(loop).first(loop) == First(program.inputs[1].var)
    assert list(flow_of(cond).decides(cond)) == [loop.outputs[0]]
    assert handed_in(cond) == set() and flow_of(cond).first(cond) is None
    loop.attrs["max_iterations"] = 0
    assert flow_of(loop).first(loop) is None  # it raises before an iteration


def test_a_branch_or_loop_must_say_what_decides():
    with pytest.raises(ValueError, match="a loop must say what decides"):
        Flow(Kind.LOOP, ("body",))
