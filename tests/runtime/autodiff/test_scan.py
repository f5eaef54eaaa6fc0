"""The gradient of a scan: a scan in reverse, its residuals, and what is differentiated as a loop."""

from __future__ import annotations

import itertools

import pytest
import torch

from runtime.autodiff import Runner, gradient_path
from runtime.autodiff.derive import derive
from runtime.executor import compile_program
from runtime.ir import Program
from runtime.ir.parser import parse_program
from runtime.ir.verify import verify
from runtime.ops import scan

RECURRENT = """program "p" {
  input %x : f32[s0, 3] = "x"
  input %h : f32[3] = "h"
  input %w : f32[3, 3] = "w"
  %n : int = scalar.size(%x, 0)
  %last : f32[3], %all : f32[s0, 3], %sums : list<f32[]> = scan(%n, %h, %x) {
    ^(%i : int, %g : f32[3], %row : f32[3]):
      %m : f32[3] = aten.mv.default(%w, %g)
      %r : f32[3] = aten.mul.Tensor(%row, %row)
      %a : f32[3] = aten.add.Tensor(%m, %r)
      %t : f32[3] = aten.tanh.default(%a)
      %s : f32[] = aten.sum.default(%t)
      yield %t, ITEM, %s
  } attrs {carried: 1ATTRS}
  RETURN
}"""
ALL = "return %last, %all as ($0, $1)"
ONE = "%one : f32[] = array.get(%sums, 0) return %one as $0"
ROWS = "return %all as $0"
LAST = "return %last as $0"
TWICE = "%two : f32[s0, 3] = aten.mul.Tensor(%all, %all) return %two, %all as ($0, $1)"


def recurrent(returned: str, item: str = "%t", attrs: str = "") -> Program:
    text = RECURRENT.replace("RETURN", returned).replace("ITEM", item).replace("ATTRS", attrs)
    program = parse_program(text)
    verify(program)
    return program


def arguments(rows: int, needs) -> list[torch.Tensor]:
    torch.manual_seed(rows)
    made = torch.randn(rows, 3), torch.randn(3), torch.randn(3, 3)
    return [one.requires_grad_(need) for one, need in zip(made, needs)]


def names(program: Program) -> list[str]:
    return [op.name for op in program.block.walk()]


NEEDS = [needs for needs in itertools.product([True, False], repeat=3) if any(needs)]


def some(values, few):
    """Parameters, those that are not among the few slow."""
    return [pytest.param(one, marks=() if one in few else pytest.mark.slow, id=str(one)) for one in values]


@pytest.mark.parametrize("rows", some([1, 2, 4], [1, 4]))
@pytest.mark.parametrize("needs", some(NEEDS, [(True, True, True), (False, False, True)]))
@pytest.mark.parametrize("returned", [ALL, ONE, ROWS, LAST, TWICE], ids=["all", "one", "rows", "last", "twice"])
@pytest.mark.parametrize("item", some(["%t", "%g", "%row", "%m"], ["%t", "%g"]))
def test_gradients_are_autograds(rows, needs, returned, item):
    runner = Runner(recurrent(returned, item), compile_program)
    found = []
    for path in ("program", "autograd"):
        args = arguments(rows, needs)
        with gradient_path(path):
            outs = runner.run(args, [])
        loss = sum((one * one * (2 + at)).sum() for at, one in enumerate(outs) if one.requires_grad)
        leaves = [one for one in args if one.requires_grad]
        grads = torch.autograd.grad(loss, leaves, allow_unused=True) if isinstance(loss, torch.Tensor) else []
        found.append((outs, [one.requires_grad for one in outs], grads))
    (outs, need, grads), (theirs, needed, wanted) = found
    assert need == needed and [one is None for one in grads] == [one is None for one in wanted]
    torch.testing.assert_close(outs, theirs)
    for mine, other in zip(grads, wanted):
        if mine is not None:
            torch.testing.assert_close(mine, other)


@pytest.mark.parametrize("returned", [ROWS, LAST])
def test_no_rows_give_no_gradient(returned):
    args = arguments(0, (True, True, True))
    out = Runner(recurrent(LAST), compile_program).run(args, [])[0]
    grads = torch.autograd.grad(out.sum(), args, allow_unused=True)
    assert grads[0] is None and grads[2] is None and torch.equal(grads[1], torch.ones(3))


def halves(program: Program, needs, rows: int = 4):
    made = derive(program, arguments(rows, needs), needs)
    for half in (made.forward, made.backward):
        verify(half)
    return made.forward, made.backward


def test_backward_is_a_scan_in_reverse_that_takes_slices_again():
    forward, backward = halves(recurrent(ROWS), (True, True, True))
    assert "while_loop" not in names(forward) + names(backward)
    back = next(op for op in backward.block.walk() if op.name == "scan")
    assert back.attrs["reverse"] and len(scan.columns(back)) == 4  # rows, their gradients, %t and %g
    kept = [out for op in forward.block.walk() if op.name == "scan" for out in op.outputs]
    assert len(kept) == 4  # the state and the rows, and %t and %g, which is what the formulas read beside the rows
    assert names(backward).count("grad.rows") == 1


def test_a_state_that_needs_a_gradient_from_the_second_iteration_on_is_a_scan():
    forward, backward = halves(recurrent(ALL), (False, False, True))
    assert "while_loop" not in names(forward) + names(backward) and "scalar.gt" in names(forward)


@pytest.mark.parametrize("needs", [(False, False, True), (True, False, False)])
def test_items_of_which_only_some_need_a_gradient_are_a_loop(needs):
    forward, backward = halves(recurrent(ROWS, "%g"), needs)
    assert "while_loop" in names(forward) and "scan" not in names(forward)


def test_a_program_that_writes_has_loops():
    written = """%new : f32[3] = update(%last) {
      ^(%b : f32[3]):
        %z : f32[3] = aten.mul_.Tensor(%b, 2)
        yield %b
    }
    return %all, %new as ($0, $1)"""
    forward, _ = halves(recurrent(written), (True, True, True))
    assert "while_loop" in names(forward) and "scan" not in names(forward)


def test_recomputed_residuals_are_not_kept():
    forward, backward = halves(recurrent(ROWS, attrs=", recompute: True"), (True, True, True))
    (made,) = [op for op in forward.block.walk() if op.name == "scan"]
    assert len(made.outputs) == 3 and "aten.tanh.default" in names(backward)  # %g is kept, and %t computed again


def test_gradients_of_gradients():
    runner = Runner(recurrent(ALL), compile_program, eager=True)
    args = arguments(3, (True, True, True))
    out = runner.run(args, [])
    (first,) = torch.autograd.grad(out[1].sum(), [args[2]], create_graph=True)
    (second,) = torch.autograd.grad(first.square().sum(), [args[2]])
    h, rows = args[1], []
    for row in args[0]:
        h = torch.tanh(args[2] @ h + row * row)
        rows.append(h)
    (wanted,) = torch.autograd.grad(torch.stack(rows).sum(), [args[2]], create_graph=True)
    torch.testing.assert_close(second, torch.autograd.grad(wanted.square().sum(), [args[2]])[0])


@pytest.mark.parametrize("rows", [0, 1, 3])
def test_a_scan_is_the_loop_that_it_says(rows):
    program, plain = recurrent(ALL), recurrent(ALL)
    place = next(at for at, op in enumerate(plain.block.ops) if op.name == "scan")
    ops = scan.expanded(plain.block.ops[place])
    for number, var in enumerate(var for op in ops for var in _assigned(op) if not var.name):
        var.name = f"made.{number}"
    plain.block.ops[place : place + 1] = ops
    verify(plain)
    args = arguments(rows, (False,) * 3)
    found = [compile_program(one).run(args, []) for one in (program, plain)]
    torch.testing.assert_close(found[0], found[1])


def _assigned(op):
    found = list(op.outputs)
    for block in op.blocks:
        found += block.args
        for inner in block.ops:
            found += _assigned(inner)
    return found
