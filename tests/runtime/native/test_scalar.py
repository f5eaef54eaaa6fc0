"""Python's numbers in C: floor division, signs of remainders, powers, ints beyond 64 bits."""

from __future__ import annotations

import itertools

import pytest

from tests.runtime.native.programs import agree, gave_up

_TWO = """program "f" {
  input %a : KA = "a"
  input %b : KB = "b"
  %c : KC = scalar.NAME(%a, %b)
  return %c as $0
}"""
_INTS = [0, 1, -1, 2, -2, 3, 7, -7, 10, 63, 2**31, -(2**31), 2**53 + 1, 2**62, -(2**63), 2**63 - 1]
_FLOATS = [0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -2.5, 7.0, 1e-300, 1e300, float("inf"), float("-inf"), float("nan"), 2.0**53]


@pytest.mark.parametrize("name", ["add", "sub", "mul", "floordiv", "mod", "truediv", "lt", "eq", "ge", "and_", "or_",
                                  "xor", "min", "max"])  # fmt: skip
def test_two_ints(name: str) -> None:
    kind = {"truediv": "float", "lt": "bool", "eq": "bool", "ge": "bool"}.get(name, "int")
    text = _TWO.replace("KA", "int").replace("KB", "int").replace("KC", kind).replace("NAME", name)
    agree(text, *itertools.product(_INTS, _INTS))


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", ["add", "sub", "mul", "floordiv", "mod", "truediv", "lt", "eq", "ge"])
@pytest.mark.parametrize("kinds", [("float", "float"), ("int", "float"), ("float", "int")])
def test_floats(name: str, kinds: tuple[str, str]) -> None:
    kind = "bool" if name in ("lt", "eq", "ge") else "float"
    text = _TWO.replace("KA", kinds[0]).replace("KB", kinds[1]).replace("KC", kind).replace("NAME", name)
    values = [_FLOATS if one == "float" else _INTS for one in kinds]
    agree(text, *itertools.product(*values))


def test_powers() -> None:
    text = _TWO.replace("KA", "int").replace("KB", "int").replace("KC", "int").replace("NAME", "pow")
    agree(text, *itertools.product([-3, -1, 0, 1, 2, 3, 10], [0, 1, 2, 5, 18, 19, 40, 62, 63, 64]))


@pytest.mark.parametrize(("name", "kind"), [("neg", "int"), ("abs", "int"), ("not_", "bool"), ("bool", "bool"),
                                            ("float", "float"), ("invert", "int"), ("math.sqrt", "float"),
                                            ("math.exp", "float"), ("math.log", "float")])  # fmt: skip
def test_one_int(name: str, kind: str) -> None:
    text = f"""program "f" {{
      input %a : int = "a"
      %c : {kind} = scalar.{name}(%a)
      return %c as $0
    }}"""
    agree(text, *([one] for one in _INTS))


@pytest.mark.parametrize(("name", "kind"), [("int", "int"), ("math.floor", "int"), ("math.ceil", "int"),
                                            ("neg", "float"), ("abs", "float"), ("math.isnan", "bool")])  # fmt: skip
def test_one_float(name: str, kind: str) -> None:
    text = f"""program "f" {{
      input %a : float = "a"
      %c : {kind} = scalar.{name}(%a)
      return %c as $0
    }}"""
    agree(text, *([one] for one in _FLOATS))


def test_an_int_that_grows_beyond_64_bits_in_a_loop() -> None:
    """C gives up; Python runs the loop from its start."""
    text = """program "f" {
      input %n : int = "n"
      %more : bool = scalar.gt(%n, 0)
      %f : bool, %i : int, %x : int = while_loop(%more, 0, 1) {
        ^(%g : bool, %j : int, %y : int):
          yield %g
      } {
        ^(%h : bool, %k : int, %z : int):
          %w : int = scalar.mul(%z, 3)
          %l : int = scalar.add(%k, 1)
          %m : bool = scalar.lt(%l, %n)
          yield %m, %l, %w
      }
      return %x as $0
    }"""
    made = agree(text, [0], [1], [39])
    assert not gave_up(made)
    agree(text, [40], [100])
    assert made.run([100], []) == [3**100] and gave_up(made) == 1
