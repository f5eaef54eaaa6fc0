"""Assumptions about sizes: what they mean, and that nothing is ever executed."""

from __future__ import annotations

import pytest
import sympy

from runtime.errors import ProgramError
from runtime.ir import Assume
from runtime.ir.assume import check, symbols_of


def holds(expr: str, **sizes: int) -> bool:
    return check(Assume(expr, {}), sizes)


@pytest.mark.parametrize(
    ("expr", "expected"),
    [
        ("s0 > 4", True), ("s0 >= s1", True), ("s0 < s1", False), ("s0 != 5", False), ("2 < s1 < s0", True),
        ("2 < s1 < 3", False), ("Eq(s0, 5)", True), ("Ne(s0, 5)", False), ("Eq(Mod(s0, 2), 1)", True),
        ("s0 % 2 == 1", True), ("s0 // 2 == 2", True), ("FloorDiv(s0, 2) == 2", True), ("CeilDiv(s0, 2) == 3", True),
        ("s0 / 2 == 2", False), ("2*(s0/2) == 5", True), ("s0**2 == 25", True), ("s0**-1 < 1", True),
        ("-s0 < 0", True), ("Min(s0, s1, 7) == 3", True), ("Max(s0, s1) == 5", True), ("Max(s0) == 5", True),
        ("s0 > 4 and s1 > 4", False), ("s0 > 4 or s1 > 4", True), ("not s0 > 4", False),
        ("(s0 > 4) & (s1 > 4)", False), ("(s0 > 4) | (s1 > 4)", True), ("~(s0 > 4)", False),
        ("And(s0 > 4, s1 > 2)", True), ("Or(s0 > 9, s1 > 9)", False), ("Not(s0 > 9)", True),
        ("Mod(-s0, 3) == 1", True), ("floor(s0/2) == 2", True), ("ceiling(s0/2) == 3", True),
        ("Abs(s1 - s0) == 2", True),
        ("True", True), ("10**20 > s0 * 10**18", True),
    ],
)  # fmt: skip
def test_meaning(expr, expected):
    assert holds(expr, s0=5, s1=3) is expected


def test_as_sympy_prints_it():
    s0, s1 = sympy.symbols("s0 s1", integer=True, positive=True)
    for fact in (sympy.Eq(s0 % 2, 1), sympy.And(s0 > 4, s1 < s0), sympy.Or(s0 < 2, sympy.Ne(s1, 3)), s0 * s1 / 3 >= 5,
                 sympy.Max(s0, s1) > sympy.Min(s0, 4), sympy.floor(s0 / 2) > 1):  # fmt: skip
        for a in range(1, 8):
            for b in range(1, 8):
                assert holds(str(fact), s0=a, s1=b) is bool(fact.subs({s0: a, s1: b}))


@pytest.mark.parametrize(
    "expr",
    [
        "__import__('os').system('true')", "s0.real > 1", "s0[0]", "(lambda: 1)()", "[s0]", "f(s0)", "Min()", "Eq(s0)",
        "s0 if s0 else 1", "s0 in (1,)", "s0 is s0", "'a' == 'a'", "1.5 < s0", "Max(s0, key=1)", "s0 := 3", "", "s0 >",
        "x" * 20_000, "(" * 500 + ")" * 500, "-" * 5_000 + "s0",
    ],
)  # fmt: skip
def test_anything_else_is_refused(expr):
    with pytest.raises(ProgramError):
        holds(expr, s0=5)


@pytest.mark.parametrize("expr", ["s0 // 0 == 1", "s0 % 0 == 1", "9**9**9 > 1", "s0**99 > 1", "10**64 ** 30 > 1"])
def test_what_cannot_be_computed_is_refused(expr):
    with pytest.raises(ProgramError, match="cannot be computed"):
        holds(expr, s0=5)


def test_a_missing_size_is_named():
    with pytest.raises(ProgramError, match="needs a size for s1, s2"):
        holds("s0 > s1 + s2", s0=5)


def test_symbols():
    assert symbols_of("Max(s0, u1) > 2 * s0") == {"s0", "u1"}
