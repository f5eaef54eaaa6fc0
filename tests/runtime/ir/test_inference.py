"""What results are, as definitions tell it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

import dy2static
from runtime.errors import ProgramError
from runtime.ir import Operator, ScalarType
from runtime.ir.inference import fits, infer, told
from runtime.ir.parser import parse_program
from runtime.ir.printer import print_program, print_type
from runtime.ir.verify import verify
from runtime.ir.walk import variables
from runtime.ops.registry import STRUCTURAL
from runtime.storage.document import Node
from runtime.storage.serde import program_from_document, program_to_document

HEAD = """program "p" {
  input %x : f32[s0, 3] = "x"
  input %y : f32[4, s0] = "y"
  input %u : ?[2] = "u"
  input %c : bool[] = "c"
  input %n : int = "n"
  input %f : float = "f"
  input %b : bool = "b"
  input %t : str = "t"
  input %a : list<f32[3]> = "a"
  input %m : list<int> = "m"
  %r : list<?[*]> = """

CASES = [
    ("scalar.add(%n, 1)", "int"), ("scalar.add(%n, 1.5)", "float"), ("scalar.add(%b, %b)", "int"),
    ("scalar.truediv(%n, %n)", "float"), ("scalar.pow(%n, 2)", "int"), ("scalar.pow(%n, -1)", "float"),
    ("scalar.pow(%n, %n)", None), ("scalar.lt(%n, %f)", "bool"), ("scalar.not_(%f)", "bool"),
    ("scalar.max(%n, 0)", "int"), ("scalar.max(%n, %f)", None), ("scalar.select(%b, %f, 1.0)", "float"),
    ("scalar.select(%b, %n, 1.0)", None), ("scalar.add(%t, %t)", "str"), ("scalar.mod(%t, %n)", "str"),
    ("scalar.item(%x)", "float"), ("scalar.item(%c)", "bool"), ("scalar.item(%u)", None),
    ("scalar.size(%x, 0)", "int"), ("scalar.truth(%u)", "bool"), ("scalar.str(%x)", "str"),
    ("scalar.is_none(%x)", "bool"), ("scalar.math.sqrt(%n)", "float"), ("scalar.math.floor(%f)", "int"),
    ("scalar.round(%f)", "int"), ("scalar.round(%f, 2)", "float"), ('scalar.expect(%n, "float")', "float"),
    ("array.new([])", None), ("array.new([%n, 2])", "list<int>"), ("array.new([%n, %x])", None),
    ("array.append(%a, %x)", "list<f32[3]>"), ("array.get(%a, 0)", "f32[3]"), ("array.len(%a)", "int"),
    ("array.fill(%a, 1)", "list<int>"), ("array.fill(%a, None)", None), ("array.rows(%a, [%m, %m])", "list<list<int>>"),
    ("array.pick(%m, [%m, %m])", "list<int>"), ("array.set_order([%m], False)", "list<int>"),
    ("grad.needed(%x)", "bool"), ("grad.history(%x)", "str"), ("grad.flags(%a, True)", "list<bool>"),
    ("grad.sum(%x, None)", None), ("grad.list_get(%a, 0)", "f32[3]"), ("grad.list_get(None, 0)", None),
    ("cond(%b) { yield %x } { yield undef }", "f32[s0, 3]"), ("cond(%b) { yield %x } { yield %y }", "f32[*]"),
    ("cond(%b) { yield 1 } { yield 2.0 }", None), ("switch(%n) { yield 1 } { yield 2 }", "int"),
    ("gradients([%x], [%y], None)", "f32[4, s0]"),
    ("aten.mm.default(%y, %x)", "f32[4, 3]"), ("aten.t.default(%x)", "f32[3, s0]"),
    ("aten.gt.Scalar(%x, 0)", "bool[s0, 3]"), ("aten.add.Tensor(%x, %n)", "f32[s0, 3]"),
    ("aten.sum.dim_IntList(%x, [1])", "f32[s0]"), ("aten.nonzero.default(%x)", 'i64["?1", 2]'),
    ("aten.cat.default([%x, %x])", 'f32["?1", 3]'), ("aten.mm.default(%x, %x)", "f32[3, 3]"),
    ("aten.mm.default(%x, %n)", None),
    ("aten.relu.default(%u)", None), ("aten.add_.Tensor(%x, %x)", None), ("aten.stack.default(%a)", None),
]  # fmt: skip


def _last(text: str) -> Operator:
    return parse_program(f"{HEAD}{text}\n  return %r\n}}").block.ops[-1]


@pytest.mark.parametrize(("text", "wanted"), CASES, ids=[text for text, _ in CASES])
def test_the_type_of_a_result(text, wanted):
    op = _last(text)
    (type_,) = infer(op) or [None]
    assert (None if type_ is None else print_type(type_)) == wanted
    if wanted is None:
        with pytest.raises(ProgramError, match="is not told by its operands"):
            told(op)
    else:
        assert told(op) == (type_,)


def test_what_has_no_results_is_told_none():
    for text in ('assert(%b) attrs {exception: "ValueError"}', "print(%x)"):
        op = parse_program(f"{HEAD}array.new([])\n  {text}\n  return %r\n}}").block.ops[-1]
        assert told(op) == ()


def test_operands_that_python_refuses():
    with pytest.raises(TypeError, match="unsupported operand"):
        infer(_last("scalar.sub(%t, %n)"))


VALID = Path(__file__).parent / "valid" / "every_operator.txt"


def test_all_that_is_told_fits_what_programs_declare():
    seen = set()
    for op in parse_program(VALID.read_text()).block.walk():
        for type_, out in zip(infer(op) or (), op.outputs):
            assert fits(type_, out.type)
            seen.add(op.name)
    assert {"cond", "switch", "while_loop", "update", "custom_grad", "array.pop", "scalar.add"} <= seen


def test_operators_with_results_tell_their_types():
    silent = {name for name, one in STRUCTURAL.items() if one.infer is None and not name.startswith("host.")}
    assert silent == {"py_func", "print", "warn", "log", "assert", "raise", "unchanged"}


def test_devices_are_told_and_held():
    text = """program "p" {
      input %x : f32[2] on "meta" = "x"
      %y : f32[2] = aten.relu.default(%x)
      %z : f32[2] = cond(True) { yield %x } { yield %x }
      return %z
    }"""
    program = parse_program(text)
    relu, cond = program.block.ops
    assert [print_type(told(op)[0]) for op in (relu, cond)] == ['f32[2] on "meta"'] * 2
    cond.outputs[0].type = replace(cond.outputs[0].type, device=torch.device("cuda:0"))
    with pytest.raises(ProgramError, match=r'the result of cond is f32\[2\] on "meta", not f32\[2\] on "cuda:0"'):
        verify(program)


def test_a_type_that_says_the_cpu_is_no_type():
    program = parse_program('program "p" { input %x : f32[2] on "cpu" = "x" return %x }')
    with pytest.raises(ProgramError, match="rule 'device': %x is on the CPU, of which types say nothing"):
        verify(program)


def test_devices_stand_in_texts_and_files():
    text = \
        'program "p" {\n  input %x : f32[s0] on "cuda:1" "here" = "x"\n  input %l : list<f32[*] on "meta"> = "l"\n' \
        "  return %x\n}\n"
    program = parse_program(text)
    assert print_program(program) == text
    document = program_to_document(program)
    read = program_from_document(Node(document, "p"), {0})
    assert print_program(read) == text and read.inputs[0].var.type.device == torch.device("cuda:1")
    document["inputs"][0]["var"][1] = {"tensor": ["float32", ["s0"]]}  # as files had it that said no device
    assert program_from_document(Node(document, "p"), {0}).inputs[0].var.type.device is None


def test_a_trace_says_where_its_tensors_are():
    def f(x, n):
        rows = []
        while n > 0:
            x, n = torch.tanh(x) * 2, n - 1
            rows.append(x)
        return torch.stack(rows)

    x = torch.zeros(2, device="meta", requires_grad=True)
    static = dy2static.to_static(f)
    out = static(x, torch.tensor(2))
    assert out.device == x.device and torch.autograd.grad(out.sum(), x)[0].device == x.device
    (program,) = static.programs
    types = {print_type(var.type) for var in variables(program) if not isinstance(var.type, ScalarType)}
    assert all('on "meta"' in one for one in types - {"i64[]", "bool[]"}) and "i64[]" in types
