"""Blocks that became lambdas, alone and with all the rest: the rewritten function does what the original does."""

from __future__ import annotations

import sys
from typing import Any

import gast

from dy2static.conversion import convert

STEPS = "loop_else break_stmt continue_stmt analyses load local_names if_stmt for_stmt short_blocks"


def test_alone(alone: Any) -> None:
    alone(set(STEPS.split()), gast.If, gast.For)


def registers(c, keep):
    if c:
        keep(lambda: 1)
    else:
        keep(i for i in "ab")
    return keep


def test_what_has_a_name_of_its_own_keeps_it() -> None:
    expected: list[Any] = []
    found: list[Any] = []
    for c in (True, False):
        registers(c, expected.append)
        convert(registers)(c, found.append)
    assert [one.__qualname__ for one in found] == [one.__qualname__ for one in expected]


def binds(c, d):
    y = 0
    if c:
        print(y := d)
    return y


def test_what_binds_a_name_stays_a_function() -> None:
    assert "lambda" not in convert(binds).__dy2static_source__
    assert convert(binds)(1, 2) == 2


def loops(c, xs, log):
    if c:
        for x in xs:
            log.append(x)


def test_one_construct_does_not_hide_in_another() -> None:
    text = convert(loops).__dy2static_source__
    assert "def body():" in text
    short = "lambda x: _d2s.call(_d2s.attr(log, 'append'), x)" in text
    assert short == (sys.version_info >= (3, 11))  # Python 3.10 tells no columns: see dy2static.conversion
    assert short or "def body(x):" in text
