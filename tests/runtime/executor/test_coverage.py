"""Block coverage: which paths of a Program have run."""

import pytest

from runtime.executor import compile_program

PROGRAM = """
  input %n : int = "n"
  %i1 : int = while_loop(0) {
    ^(%i : int):
      %c : bool = scalar.lt(%i, %n)
      yield %c
  } {
    ^(%j : int):
      %odd : int = scalar.mod(%j, 2)
      %k : int = cond(%odd) {
        %a : int = scalar.add(%j, 1)
        yield %a
      } {
        %b : int = scalar.add(%j, 1)
        yield %b
      } @ "user.py":5:4 in "f" "    if j % 2:"
      yield %k
  } @ "user.py":4:0 in "f" "while i < n:"
  return %i1 as $0
"""


def test_counts(program):
    executable = compile_program(program(PROGRAM), coverage=True)
    executable.run([1], [])
    report = executable.coverage_report()
    assert [(str(block.location), block.what, block.runs) for block in report.blocks] == [
        ("None", "program p", 1), ("user.py:4", "while_loop test", 2), ("user.py:4", "while_loop body", 1),
        ("user.py:5", "cond true branch", 0), ("user.py:5", "cond false branch", 1),
    ]  # fmt: skip
    assert [block.what for block in report.missed] == ["cond true branch"]
    assert str(report).splitlines()[0] == "4 of 5 blocks ran"
    assert "       0  user.py:5: cond true branch" in str(report)
    executable.run([4], [])
    assert not executable.coverage_report().missed


def test_it_must_be_asked_for(program):
    executable = compile_program(program(PROGRAM))
    executable.run([1], [])
    with pytest.raises(ValueError, match="coverage=True"):
        executable.coverage_report()
