"""Loops that become scans, and loops that stay, as text."""

from __future__ import annotations

import pytest
import torch

from runtime.executor import compile_program
from runtime.ir.parser import parse_program
from runtime.ir.printer import print_program
from runtime.ir.verify import verify
from runtime.passes import PassManager, scan

HEAD = """program "p" {
  input %x : f32[s0, 2] = "x"
  input %y : f32[s0, 2] = "y"
  input %h : f32[2] = "h"
  input %n : int = "n"
"""


def text(body: str) -> str:
    return HEAD + "\n".join(f"  {line}" for line in body.strip("\n").splitlines()) + "\n}\n"


def loop(
    item: str = "%t",
    end: str = "%all : f32[m, 2] = aten.stack.default(%list, 0)\nreturn %all, %last as ($0, $1)",
    more: str = "scalar.lt(%next, %size)", first: str = "array.new([])", size: str = "scalar.size(%x, 0)",
    inside: str = "", attrs: str = "", whole: str = "%x", out: str = "%flag", extra: str = "", row: str = "%row",
) -> str:
    return f"""
%size : int = {size}
%go : bool = scalar.gt(%size, 0)
%none : list<f32[*]> = {first}
%flag : bool, %number : int, %last : f32[2], %list : list<f32[*]> = while_loop(%go, 0, %h, %none) {{
  ^(%f : bool, %i : int, %g : f32[2], %l : list<f32[*]>):
    yield %f
}} {{
  ^(%f1 : bool, %j : int, %k : f32[2], %p : list<f32[*]>):
    %next : int = scalar.add(%j, 1)
    %row : f32[2] = aten.select.int({whole}, 0, %j)
    %t : f32[2] = aten.add.Tensor({row}, %k)
{inside}    %grown : list<f32[*]> = array.append(%p, {item})
    %again : bool = {more}
    yield %again, %next, %t, %grown
}}{attrs}
{end}
"""


SCANNED = """
%size : int = scalar.size(%x, 0)
%go : bool = scalar.gt(%size, 0)
%last : f32[2], %all : f32[m, 2] = scan(%size, %h, %x) {
  ^(%j : int, %k : f32[2], %row : f32[2]):
    %t : f32[2] = aten.add.Tensor(%row, %k)
    yield %t, %t
} attrs {carried: 1}
assert(%go) attrs {exception: "RuntimeError", message: "stack expects a non-empty TensorList"}
return %all, %last as ($0, $1)
"""


def scanned(*changes: tuple[str, str]) -> str:
    result = SCANNED
    for old, new in changes:
        assert old in result
        result = result.replace(old, new)
    return result


LIST = ("%all : f32[m, 2] = scan", "%list : list<f32[*]> = scan")
NO_ASSERT = (SCANNED.splitlines()[8] + "\n", "")
NO_ROWS = (
    ("scan(%size, %h, %x)", "scan(%size, %h)"), ("%k : f32[2], %row : f32[2]", "%k : f32[2]"),
)  # fmt: skip

CASES = [
    pytest.param(loop(), SCANNED, id="stacked"),
    pytest.param(loop(end="return %list as $0"), scanned(LIST, NO_ASSERT, ("return %all, %last as ($0, $1)",
                 "return %list as $0")), id="the list is a result"),
    pytest.param(loop(end="%z : f32[m, 2] = aten.stack.default(%list)\n%len : int = array.len(%list)\nreturn %z, %len"),
                 scanned(("%all : f32", "%z : f32"), ("return %all, %last as ($0, $1)",
                 "%len : int = scalar.max(%size, 0)\nreturn %z, %len")), id="its length"),
    pytest.param(loop(end="%z : f32[2] = array.get(%list, 0)\n%all : f32[m, 2] = aten.stack.default(%list)\n"
                          "return %z, %all"),
                 scanned(LIST, NO_ASSERT, ("return %all, %last as ($0, $1)", "%z : f32[2] = array.get(%list, 0)\n"
                 "%all : f32[m, 2] = aten.stack.default(%list)\nreturn %z, %all")), id="an item"),
    pytest.param(loop(end="%all : f32[2, m] = aten.stack.default(%list, 1)\nreturn %all"),
                 scanned(LIST, NO_ASSERT, ("return %all, %last as ($0, $1)",
                 "%all : f32[2, m] = aten.stack.default(%list, 1)\nreturn %all")), id="another dimension"),
    pytest.param(loop(whole="%y"), scanned(("%h, %x)", "%h, %y)")), id="as many rows"),
    pytest.param(loop(size="scalar.min(%n, %m)").replace("%size", "%m : int = scalar.size(%x, 0)\n%size", 1),
                 scanned(("%size : int = scalar.size(%x, 0)", "%m : int = scalar.size(%x, 0)\n"
                 "%size : int = scalar.min(%n, %m)")), id="no more than the rows"),
    pytest.param(loop(size="scalar.max(%n, 0)"), scanned(*NO_ROWS, ("scalar.size(%x, 0)", "scalar.max(%n, 0)"),
                 ("    %t : f32", "    %row : f32[2] = aten.select.int(%x, 0, %j)\n    %t : f32")), id="any number"),
    pytest.param(loop(item="%row"), scanned(*NO_ROWS, ("yield %t, %t", "yield %t, %row"),
                 ("    %t : f32", "    %row : f32[2] = aten.select.int(%x, 0, %j)\n    %t : f32")),
                 id="a row that leaves"),
    pytest.param(loop(more="scalar.gt(%size, %next)"), SCANNED, id="the other way round"),
    pytest.param(loop(attrs=" attrs {recompute: True}"), scanned(("{carried: 1}", "{carried: 1, recompute: True}")),
                 id="recomputed"),
    pytest.param(loop(item="%v", inside="    %v : f32[2] = aten.add.Tensor(%t, %next)\n"),
                 scanned(("    %t : f32", "    %next : int = scalar.add(%j, 1)\n    %t : f32"), ("    yield %t, %t",
                 "    %v : f32[2] = aten.add.Tensor(%t, %next)\n    yield %t, %v")), id="the next number is read"),
]  # fmt: skip

STAY = [
    pytest.param(loop(more="scalar.le(%next, %size)"), id="one more"),
    pytest.param(loop().replace("scalar.gt(%size, 0)", "scalar.gt(%size, 1)", 1), id="begins otherwise"),
    pytest.param(loop(first="array.new([%h])"), id="not empty"),
    pytest.param(loop(attrs=" attrs {max_iterations: 3}"), id="a limit"),
    pytest.param(loop(end="return %list, %number"), id="the counter is read"),
    pytest.param(loop(end="return %list, %flag"), id="the flag is read"),
    pytest.param(loop(inside="    %len : int = array.len(%p)\n"), id="the list is read inside"),
    pytest.param(loop(end="return %list, %none"), id="the empty list is read"),
    pytest.param(loop(end="%w : f32[2] = update(%h) {\n  ^(%b : f32[2]):\n    %z : f32[2] = aten.zero_.default(%b)\n"
                          "    yield %b\n}\nreturn %list, %w"), id="something is written"),
    pytest.param(loop(more="scalar.lt(%next, %j)"), id="a length of its own"),
    pytest.param(loop().replace("yield %again, %next, %t, %grown", "yield %again, %next, %t, %p"), id="never appended"),
    pytest.param(loop().replace("while_loop(%go, 0", "while_loop(%go, 1"), id="counts from another number"),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after"), CASES)
def test_a_loop_becomes_a_scan(before, after):
    program = parse_program(text(before))
    verify(program)
    PassManager([scan.PASS], verify=True).run(program)
    assert print_program(program) == text(after)
    assert PassManager([scan.PASS], verify=True).run(program).changes == 0


@pytest.mark.parametrize("before", STAY)
def test_a_loop_stays(before):
    program = parse_program(text(before))
    verify(program)
    assert scan.rewrite(program) == 0
    assert print_program(program) == text(before)


def test_items_whose_sizes_the_loop_makes_are_a_list():
    sized = loop(item="%v", inside="    %v : f32[u, 2] = aten.expand.default(%t, [%j, -1])\n",
                 end="%all : f32[m, u, 2] = aten.stack.default(%list, 0)\nreturn %all")  # fmt: skip
    program = parse_program(text(sized))
    assert scan.rewrite(program) == 1
    assert "%list : list<f32[*]> = scan" in print_program(program)


@pytest.mark.parametrize("rows", [0, 1, 2, 5])
@pytest.mark.parametrize(("before", "after"), CASES)
def test_results_stay_what_they_are(before, after, rows):
    arguments = [torch.randn(rows, 2), torch.randn(rows, 2), torch.randn(2), rows]
    found = []
    for passes in ([], [scan.PASS]):
        program = parse_program(text(before))
        PassManager(passes).run(program)
        for grad in (False, True):
            with torch.set_grad_enabled(grad):
                try:
                    found.append(compile_program(program).run(arguments, []))
                except (RuntimeError, IndexError) as error:
                    found.append([type(error), str(error)])
    first, *others = found
    for other in others:
        torch.testing.assert_close(other, first, rtol=0, atol=0) if rows else None
        assert [type(value) for value in other] == [type(value) for value in first]
        assert rows or str(other) == str(first)
