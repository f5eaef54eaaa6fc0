"""Every pass as text: a Program in, the same Program after it."""

from __future__ import annotations

import pytest
import torch

from runtime.errors import ProgramError
from runtime.executor import compile_program
from runtime.ir.parser import parse_program
from runtime.ir.printer import print_program
from runtime.ir.verify import verify
from runtime.passes import DEFAULT, PassManager, common_subexpressions, constants, dead_code, identities
from runtime.passes.manager import Pass
from tests.oracle import same

HEAD = """program "p" {
  input %x : f32[2] = "x"
  input %c : bool[] = "c"
  input %k : i64[] = "k"
  %n : int = scalar.item(%k)
"""


def text(body: str) -> str:
    lines = [f"  {line}" if line.strip() else line for line in body.strip("\n").splitlines()]
    return HEAD + "\n".join(lines) + "\n}\n"


CASES = [
    pytest.param(identities.PASS, """
%a : int = scalar.add(%n, 0)
%b : int = scalar.mul(1, %a)
return %b as $0
""", """
%a : int = scalar.add(%n, 0)
%b : int = scalar.mul(1, %n)
return %n as $0
""", id="neutral ints"),
    pytest.param(identities.PASS, """
%f : float = scalar.float(%n)
%a : float = scalar.add(%f, 0)
%b : float = scalar.float(%f)
return %a, %b as ($0, $1)
""", """
%f : float = scalar.float(%n)
%a : float = scalar.add(%f, 0)
%b : float = scalar.float(%f)
return %a, %f as ($0, $1)
""", id="a float plus 0 may change"),
    pytest.param(identities.PASS, """
%p : bool = scalar.gt(%n, 2)
%q : bool = scalar.not_(%p)
%r : bool = scalar.not_(%q)
%s : bool = scalar.not_(%n)
%t : bool = scalar.not_(%s)
return %r, %t as ($0, $1)
""", """
%p : bool = scalar.gt(%n, 2)
%q : bool = scalar.not_(%p)
%r : bool = scalar.not_(%q)
%s : bool = scalar.not_(%n)
%t : bool = scalar.not_(%s)
return %p, %t as ($0, $1)
""", id="not not of a bool"),
    pytest.param(identities.PASS, """
%p : bool = scalar.gt(%n, 2)
%a : bool = scalar.and_(%p, False)
%b : bool = scalar.and_(True, %p)
%o : bool = scalar.or_(True, %p)
%d : bool = scalar.or_(%p, False)
%e : int = scalar.and_(%n, True)
%f : bool = scalar.and_(%p, %a)
return %a, %b, %o, %d, %e, %f as ($0, $1, $2, $3, $4, $5)
""", """
%p : bool = scalar.gt(%n, 2)
%a : bool = scalar.and_(%p, False)
%b : bool = scalar.and_(True, %p)
%o : bool = scalar.or_(True, %p)
%d : bool = scalar.or_(%p, False)
%e : int = scalar.and_(%n, True)
%f : bool = scalar.and_(%p, False)
return False, %p, True, %p, %e, False as ($0, $1, $2, $3, $4, $5)
""", id="flags beside known ones"),
    pytest.param(identities.PASS, """
%y : f32[2], %z : f32[2] = cond(%c) {
  %r : f32[2] = aten.relu.default(%x)
  yield %x, %r
} {
  yield %x, %x
}
return %y, %z as ($0, $1)
""", """
%y : f32[2], %z : f32[2] = cond(%c) {
  %r : f32[2] = aten.relu.default(%x)
  yield %x, %r
} {
  yield %x, %x
}
return %x, %z as ($0, $1)
""", id="what all paths pass on"),
    pytest.param(constants.PASS, """
%a : int = scalar.add(2, 3)
%b : int = scalar.mul(%a, %n)
%c1 : int = scalar.floordiv(1, 0)
return %b, %c1 as ($0, $1)
""", """
%b : int = scalar.mul(5, %n)
%c1 : int = scalar.floordiv(1, 0)
return %b, %c1 as ($0, $1)
""", id="what raises stays"),
    pytest.param(constants.PASS, """
%y : f32[2] = cond(True) {
  %r : f32[2] = aten.relu.default(%x)
  yield %r
} {
  raise("no") attrs {exception: "ValueError"}
  yield undef
}
return %y as $0
""", """
%r : f32[2] = aten.relu.default(%x)
return %r as $0
""", id="a branch that is known"),
    pytest.param(constants.PASS, """
%y : f32[2] = switch(-1) {
  raise("no") attrs {exception: "ValueError"}
  yield undef
} {
  %r : f32[2] = aten.relu.default(%x)
  yield %r
}
return %y as $0
""", """
%r : f32[2] = aten.relu.default(%x)
return %r as $0
""", id="one of several that is known"),
    pytest.param(constants.PASS, """
%a : int = cond(True) {
  %b : int = scalar.add(2, 3)
  yield %b
} {
  yield %n
}
%c1 : bool, %d : int = cond(True) {
  %e : int = cond(False) {
    yield %n
  } {
    yield %a
  }
  yield False, %e
} {
  yield True, %n
}
%f : bool, %g : int = cond(%c1) {
  yield True, %n
} {
  yield %c1, %d
}
%h : int = scalar.add(%g, %n)
return %f, %h as ($0, $1)
""", """
%h : int = scalar.add(5, %n)
return False, %h as ($0, $1)
""", id="branches that give what was known before them"),
    pytest.param(common_subexpressions.PASS, """
%a : int = scalar.add(%n, 1)
%y : int = cond(%c) {
  %b : int = scalar.add(%n, 1)
  %d : int = scalar.add(%n, True)
  yield %b
} {
  %e : int = scalar.sub(%n, 1)
  yield %e
}
%g : int = scalar.sub(%n, 1)
return %y, %a, %g as ($0, $1, $2)
""", """
%a : int = scalar.add(%n, 1)
%y : int = cond(%c) {
  %d : int = scalar.add(%n, True)
  yield %a
} {
  %e : int = scalar.sub(%n, 1)
  yield %e
}
%g : int = scalar.sub(%n, 1)
return %y, %a, %g as ($0, $1, $2)
""", id="equal numbers"),
    pytest.param(common_subexpressions.PASS, """
%a : int = scalar.add(%n, 1)
%b : int = scalar.add(%n, 1)
%y : f32[2] = update(%x) {
  ^(%m : f32[2]):
    %w : f32[2] = aten.add_.Scalar(%m, %b)
    yield %m
}
return %y, %a as ($0, $1)
""", """
%a : int = scalar.add(%n, 1)
%y : f32[2] = update(%x) {
  ^(%m : f32[2]):
    %w : f32[2] = aten.add_.Scalar(%m, %a)
    yield %m
}
return %y, %a as ($0, $1)
""", id="read where memory is written"),
    pytest.param(common_subexpressions.PASS, """
%a : f32[2] = aten.relu.default(%x)
%b : f32[2] = aten.relu.default(%x)
return %a, %b as ($0, $1)
""", """
%a : f32[2] = aten.relu.default(%x)
%b : f32[2] = aten.relu.default(%x)
return %a, %b as ($0, $1)
""", id="two tensors stay two"),
    pytest.param(common_subexpressions.PASS, """
%a : float = scalar.add(0.0, %n)
%b : float = scalar.add(-0.0, %n)
%d : float = scalar.add(0.0, %n)
return %a, %b, %d as ($0, $1, $2)
""", """
%a : float = scalar.add(0.0, %n)
%b : float = scalar.add(-0.0, %n)
return %a, %b, %a as ($0, $1, $2)
""", id="zeros with signs"),
    pytest.param(dead_code.PASS, """
%a : f32[2] = aten.tanh.default(%x)
%i : int, %h : f32[2], %u : f32[2] = while_loop(0, %x, %x) {
  ^(%i1 : int, %h1 : f32[2], %u1 : f32[2]):
    %more : bool = scalar.lt(%i1, %n)
    yield %more
} {
  ^(%i2 : int, %h2 : f32[2], %u2 : f32[2]):
    %next : int = scalar.add(%i2, 1)
    %t : f32[2] = aten.tanh.default(%h2)
    %v : f32[2] = aten.tanh.default(%u2)
    yield %next, %t, %v
}
return %h as $0
""", """
%i : int, %h : f32[2] = while_loop(0, %x) {
  ^(%i1 : int, %h1 : f32[2]):
    %more : bool = scalar.lt(%i1, %n)
    yield %more
} {
  ^(%i2 : int, %h2 : f32[2]):
    %next : int = scalar.add(%i2, 1)
    %t : f32[2] = aten.tanh.default(%h2)
    yield %next, %t
}
return %h as $0
""", id="what a loop carries for nobody"),
    pytest.param(dead_code.PASS, """
%y : f32[2] = recursion(%x, %n) {
  ^(%a : f32[2], %k1 : int):
    %unread : f32[2] = aten.mul.Tensor(%a, 2)
    %more : bool = scalar.gt(%k1, 0)
    %b : f32[2] = cond(%more) {
      %j : int = scalar.sub(%k1, 1)
      %unread1 : int = scalar.add(%j, 1)
      %d : f32[2] = recur(%a, %j) attrs {name: "g"}
      yield %d
    } {
      yield %a
    }
    yield %b
} attrs {name: "g"}
return %x as $0
""", """
%y : f32[2] = recursion(%x, %n) {
  ^(%a : f32[2], %k1 : int):
    %more : bool = scalar.gt(%k1, 0)
    %b : f32[2] = cond(%more) {
      %j : int = scalar.sub(%k1, 1)
      %d : f32[2] = recur(%a, %j) attrs {name: "g"}
      yield %d
    } {
      yield %a
    }
    yield %b
} attrs {name: "g"}
return %x as $0
""", id="a recursion may raise: it stays, and what nothing in it reads does not"),
    pytest.param(common_subexpressions.PASS, """
%y : int = recursion(%n) {
  ^(%a : int):
    %b : int = scalar.add(%n, 1)
    %s : int = scalar.add(%a, 1)
    %more : bool = scalar.lt(%s, %b)
    %d : int = cond(%more) {
      %e : int = scalar.add(%a, 1)
      %f : int = recur(%e) attrs {name: "g"}
      %h : int = recur(%e) attrs {name: "g"}
      %i : int = scalar.add(%f, %h)
      yield %i
    } {
      yield %a
    }
    yield %d
} attrs {name: "g"}
return %y as $0
""", """
%y : int = recursion(%n) {
  ^(%a : int):
    %b : int = scalar.add(%n, 1)
    %s : int = scalar.add(%a, 1)
    %more : bool = scalar.lt(%s, %b)
    %d : int = cond(%more) {
      %f : int = recur(%s) attrs {name: "g"}
      %h : int = recur(%s) attrs {name: "g"}
      %i : int = scalar.add(%f, %h)
      yield %i
    } {
      yield %a
    }
    yield %d
} attrs {name: "g"}
return %y as $0
""", id="two calls stay two"),
]  # fmt: skip


@pytest.mark.parametrize(("one", "before", "after"), CASES)
def test_a_pass(one, before, after):
    program = parse_program(text(before))
    verify(program)
    PassManager([one], verify=True).run(program)
    assert print_program(program) == text(after)


@pytest.mark.parametrize(("one", "before", "after"), CASES)
@pytest.mark.parametrize("flag", [True, False])
@pytest.mark.parametrize("number", [-1, 0, 4])
def test_results_stay_what_they_are(one, before, after, flag, number):
    def run(source, passes):
        program = parse_program(text(source))
        PassManager(passes, verify=True).run(program)
        try:
            arguments = [torch.tensor([0.5, -1.0]), torch.tensor(flag), torch.tensor(number)]
            return compile_program(program).run(arguments, [])
        except ZeroDivisionError as error:
            return [str(error)]

    expected = run(before, [])
    for found in (run(before, [one]), run(before, DEFAULT)):
        same(found, expected, bits=True)


@pytest.mark.parametrize(("one", "before", "after"), CASES)
def test_running_all_again_changes_nothing(one, before, after):
    program = parse_program(text(before))
    manager = PassManager(DEFAULT, verify=True)
    while manager.run(program).changes:
        pass
    once = print_program(program)
    assert manager.run(program).changes == 0 and print_program(program) == once


def test_a_branch_that_raises_stays():
    before = """
%r : f32[2] = aten.relu.default(%x)
%y : f32[2] = switch(2) {
  yield %x
} {
  yield %r
}
return %y as $0
"""
    program = parse_program(text(before))
    PassManager([constants.PASS], verify=True).run(program)
    assert print_program(program) == text(before)
    with pytest.raises(IndexError, match="list index out of range"):
        compile_program(program).run([torch.ones(2), torch.tensor(True), torch.tensor(1)], [])


def test_a_program_that_is_broken_before_is_no_fault_of_a_pass():
    program = parse_program(text(CASES[0].values[1]))
    program.block.ops.clear()
    PassManager(DEFAULT, verify=True).run(program)
    with pytest.raises(ProgramError, match="] rule 'dominance'"):
        verify(program)


def test_the_report_says_what_each_pass_did():
    program = parse_program(text(CASES[0].values[1]))
    report = PassManager(DEFAULT, verify=True).run(program)
    names = ["identities", "constants", "common_subexpressions", "dead_code", "scan"]
    assert [one.name for one in report.applied] == names
    assert str(report.applied[0]) == "identities: 2 changes, 3 -> 3 operators"
    assert report.applied[-1].after == 1


def test_a_pass_that_breaks_a_program_is_named():
    def wreck(program):
        program.block.ops.clear()
        return 1

    with pytest.raises(Exception, match="the pass 'wreck' broke the Program"):
        PassManager([Pass("wreck", "", wreck)], verify=True).run(parse_program(text(CASES[0].values[1])))


def test_programs_are_dumped_before_and_after(tmp_path, monkeypatch):
    monkeypatch.setenv("DY2STATIC_DUMP_PASSES", str(tmp_path / "dumps"))
    folded = next(case for case in CASES if "scalar.add(2, 3)" in case.values[1])
    PassManager(DEFAULT).run(parse_program(text(folded.values[1])))
    names = sorted(file.name for file in (tmp_path / "dumps").iterdir())
    assert names == ["p.0.before.txt", "p.2.constants.txt"]
    assert "scalar.add(2, 3)" in (tmp_path / "dumps" / "p.0.before.txt").read_text()
