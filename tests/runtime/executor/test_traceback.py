"""Errors at run time: Python's type and message, the user's line, nothing generated."""

import traceback

import pytest
import torch

from runtime.executor import compile_program

PROGRAM = """
  input %x : f32[2, 3] = "x"
  input %n : int = "n"
  %a : f32[2, 3] = aten.relu.default(%x)      @ "user.py":11:8 in "forward" "        a = x.relu()"
  %big : bool = scalar.gt(%n, 5)              @ "user.py":12:11 in "forward" "        if n > 5:"
  %y : f32[2, 2] = cond(%big) {
    %m : f32[2, 2] = aten.mm.default(%a, %a)  @ "user.py":13:12 in "helper" "            y = a @ a"
    yield %m
  } {
    %d : int = scalar.floordiv(1, %n)         @ "user.py":15:12 in "forward" "            d = 1 // n"
    assert(%d) attrs {exception: "AssertionError", message: "d is zero"} @ "user.py":16:12 in "forward" "      assert d"
    yield %x
  } @ "user.py":12:8 in "forward" "        if n > 5:"
  return %y as $0
"""


def failure(program, n):
    with pytest.raises(Exception) as caught:
        compile_program(program).run([torch.ones(2, 3), n], [])
    return caught.value


@pytest.mark.parametrize("n, kind, line, function", [
    (6, RuntimeError, 13, "helper"),
    (0, ZeroDivisionError, 15, "forward"),
    (3, AssertionError, 16, "forward"),
])  # fmt: skip
def test_the_users_line_is_the_last_frame(program, n, kind, line, function):
    error = failure(program(PROGRAM), n)
    assert type(error) is kind
    last = traceback.extract_tb(error.__traceback__)[-1]
    assert (last.filename, last.lineno, last.name) == ("user.py", line, function)
    assert error.__cause__ is None and error.__context__ is None


def test_messages_are_those_of_eager(program):
    error = failure(program(PROGRAM), 6)
    with pytest.raises(RuntimeError) as eager:
        torch.ones(2, 3) @ torch.ones(2, 3)
    assert str(error) == str(eager.value)
    assert str(failure(program(PROGRAM), 3)) == "d is zero"


def test_nothing_generated_is_shown(program):
    error = failure(program(PROGRAM), 0)
    text = "".join(traceback.format_exception(error))
    assert "<program" not in text and " g1" not in text
    frames = traceback.extract_tb(error.__traceback__)
    assert [frame.name for frame in frames].count("run") == 1


def test_the_source_line_is_shown_when_the_file_exists(program, tmp_path):
    file = tmp_path / "real.py"
    file.write_text("\n" * 12 + "            y = a @ a  # here\n")
    error = failure(program(PROGRAM.replace("user.py", str(file))), 6)
    text = "".join(traceback.format_exception(error))
    assert f'File "{file}", line 13, in helper\n    y = a @ a  # here' in text


def test_an_operator_without_a_location_still_raises(program):
    p = program("""
      input %n : int = "n"
      %y : int = scalar.floordiv(1, %n)
      return %y as $0
    """)
    with pytest.raises(ZeroDivisionError):
        compile_program(p).run([0], [])


def test_frames_of_called_python_are_kept(program):
    p = program("""
      input %n : int = "n"
      %y : int = py_func(%n) attrs {function: "f"} @ "user.py":7:0 in "top" "y = f(n)"
      return %y as $0
    """)

    def inner(n):
        raise KeyError(n)

    with pytest.raises(KeyError) as caught:
        compile_program(p, functions={"f": inner}).run([3], [])
    names = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert names[-2:] == ["top", "inner"]
