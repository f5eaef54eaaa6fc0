"""Numbers of the device's against Python's: each operator, with operands of every sign and size."""

from __future__ import annotations

import math
import struct
from typing import Any

import pytest
import torch

from runtime.executor import compile_program as interpreted
from runtime.ir.parser import parse_program
from runtime.kernels import emitter, recorded
from runtime.kernels.recorded import RecordedRun
from tests import devices
from tests.oracle import difference
from tests.runtime.kernels.host import Host
from tests.runtime.kernels.programs import compiled

INTS = (0, 1, -1, 2, -3, 7, -7, 2**31 - 1, -(2**31), 2**53 + 1, 2**59 + 3, -(2**59))
FLOATS = (0.0, -0.0, 1.0, -1.5, 0.1, 1e300, -1e300, 5e-324, math.inf, -math.inf, math.nan, 2.0**53 + 2)
BOOLS = (False, True)
VALUES: dict[str, tuple[Any, ...]] = {"int": INTS, "float": FLOATS, "bool": BOOLS}

LOOP = """program "f" {{
  input %a : {a} = "a"
  input %b : {b} = "b"
  input %x : f32[2] = "x"
  %m : bool, %n : int, %p : {a}, %q : {b}, %r : {r}, %y : f32[2] = while_loop(True, 0, %a, %b, {zero}, %x) {{
    ^(%m1 : bool, %n1 : int, %p1 : {a}, %q1 : {b}, %r1 : {r}, %y1 : f32[2]):
      yield %m1
  }} {{
    ^(%m2 : bool, %n2 : int, %p2 : {a}, %q2 : {b}, %r2 : {r}, %y2 : f32[2]):
      %n3 : int = scalar.add(%n2, 1)
      %g : bool = scalar.lt(%n3, 2)
      %s : {r} = scalar.{call}
      %z : f32[2] = aten.neg.default(%y2)
      %k : bool = scalar.le(%n3, 9)
      %p3 : {a} = scalar.select(%k, %p2, %p2)
      %q3 : {b} = scalar.select(%k, %q2, %q2)
      yield %g, %n3, %p3, %q3, %s, %z
  }}
  return %n, %r, %y as ($0, $1, $2)
}}"""
ZERO = {"int": "0", "float": "0.0", "bool": "False"}


def bits(value: Any) -> Any:
    return struct.pack("<d", value) if type(value) is float else (type(value), value)


def hold(monkeypatch: pytest.MonkeyPatch, a: str, b: str, result: str, call: str, taken: bool = True,
         kernels: bool = False) -> None:  # fmt: skip
    """A loop that computes it once on the device, for all values of both kinds. kernels: with ours, which take long to
    compile, in place of PyTorch's."""
    monkeypatch.setattr(emitter, "GAIN", -9 if kernels else 10**9)
    monkeypatch.setattr(recorded, "MOST_SEEN", 10**9)
    monkeypatch.setattr(recorded, "MOST_KINDS", 10**9)
    monkeypatch.setattr(recorded, "MOST_GIVEN_UP", 10**9)
    monkeypatch.setattr(RecordedRun, "_not_yet", lambda self, kind, function, given, tensors: self._record(
        kind, function, given, tensors, {}))  # fmt: skip
    text = LOOP.format(a=a, b=b, r=result, zero=ZERO[result], call=call)
    if devices.on_cuda():
        text = text.replace("f32[2]", 'f32[2] on "cuda:0"')
    mine, reference = compiled(text), interpreted(parse_program(text))
    x = torch.tensor([1.0, 2.0])
    for one in VALUES[a]:
        for other in VALUES[b]:
            expected: Any
            try:
                expected = reference.run([one, other, x], [])
            except (ArithmeticError, ValueError) as error:
                with pytest.raises(type(error)):
                    mine.run([one, other, x], [])
                continue
            got = mine.run([one, other, x], [])
            assert bits(got[1]) == bits(expected[1]) or got[1] != got[1] and expected[1] != expected[1], (one, other)
            assert not difference(got[2], expected[2])
    (loop,) = mine.written.loops.values()
    assert isinstance(loop, str) != taken, loop
    assert isinstance(loop, str) or (loop.replays > 0 and not loop.reason), loop


@pytest.mark.parametrize("a", VALUES)
@pytest.mark.parametrize("b", VALUES)
@torch.no_grad()
def test_two_operands(host: Host, monkeypatch: pytest.MonkeyPatch, a: str, b: str) -> None:
    result = "float" if "float" in (a, b) else "int"
    for name in ("add", "sub", "mul"):
        hold(monkeypatch, a, b, result, f"{name}(%p2, %q2)")
    for name in ("lt", "le", "gt", "ge", "eq", "ne"):
        hold(monkeypatch, a, b, "bool", f"{name}(%p2, %q2)")
    if "float" not in (a, b):
        for name in ("and_", "or_", "xor"):
            hold(monkeypatch, a, b, "bool" if a == b == "bool" else "int", f"{name}(%p2, %q2)")
    if a == b:
        for name in ("min", "max"):
            hold(monkeypatch, a, b, a, f"{name}(%p2, %q2)")
        hold(monkeypatch, a, b, a, "select(%g, %p2, %q2)")


@torch.no_grad()
def test_constants(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("floordiv", "mod"):
        for divisor in (3, -3, 1, -1, 2**30):
            hold(monkeypatch, "int", "bool", "int", f"{name}(%p2, {divisor})", kernels=divisor == -3)
    for text in ("3", "-7", "0.1", "1e300"):
        for a in ("int", "float"):
            hold(monkeypatch, a, "bool", "float", f"truediv(%p2, {text})")
    for constant in ("3", "-3", "0.5", "True", "-0.0"):
        for a in ("int", "float"):
            result = "float" if a == "float" or "." in constant else "int"
            for name in ("add", "sub", "mul"):
                hold(monkeypatch, a, "bool", result, f"{name}(%p2, {constant})", kernels=constant in ("3", "-0.0"))
                hold(monkeypatch, a, "bool", result, f"{name}({constant}, %p2)")
            for name in ("lt", "eq", "ge"):
                hold(monkeypatch, a, "bool", "bool", f"{name}(%p2, {constant})")
                hold(monkeypatch, a, "bool", "bool", f"{name}({constant}, %p2)")


@torch.no_grad()
def test_one_operand(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    for a in VALUES:
        for name in ("neg", "pos", "abs"):
            hold(monkeypatch, a, "bool", "float" if a == "float" else "int", f"{name}(%p2)")
        for name in ("not_", "bool", "truth"):
            hold(monkeypatch, a, "bool", "bool", f"{name}(%p2)")
        hold(monkeypatch, a, "bool", "float", "float(%p2)")
    for a in ("int", "bool"):
        hold(monkeypatch, a, "bool", "int", "int(%p2)")


@torch.no_grad()
def test_what_the_host_computes(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    """Divisors that may be zero, and what floats of the device's do not do as Python's."""
    hold(monkeypatch, "int", "int", "float", "truediv(%p2, %q2)", taken=False)
    hold(monkeypatch, "int", "int", "int", "mod(%p2, %q2)", taken=False)
    hold(monkeypatch, "float", "bool", "float", "mod(%p2, 3)", taken=False)
    hold(monkeypatch, "float", "bool", "float", "floordiv(%p2, 3)", taken=False)
    hold(monkeypatch, "int", "bool", "int", "mul(%p2, 1099511627776)", taken=False)
