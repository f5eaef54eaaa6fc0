"""Plain numbers that stand for staged ones where an operator takes no others."""

from __future__ import annotations

from typing import Any

import pytest

from runtime.tracer.numbers.number_operands import int_stand_in, is_used, must_be_tried, of, stand_in


def test_each_stand_in_is_a_number_of_its_own(session: Any, number: Any) -> None:
    staged = [number("float") for _ in range(50)]
    floats = [stand_in(session, one, like=2.0) for one in staged]
    ints = [int_stand_in(session, one) for one in staged]
    assert len({*floats, *ints}) == 100 and 2.0 not in floats
    assert all(abs(one - 2.0) < 1e-9 for one in floats) and min(ints) > 2**60
    assert [of(session, one) for one in floats] == staged == [of(session, one) for one in ints]


def test_what_stands_for_nothing(session: Any, number: Any) -> None:
    stands = int_stand_in(session, number())
    assert of(session, stands) is not None
    assert [of(session, one) for one in (stands + 1, 2.0, True, "text", None, [stands])] == [None] * 6
    with pytest.raises(AssertionError, match="near 0"):
        stand_in(session, number("float"), like=0.0)


def test_whether_an_operator_reads_it(session: Any, number: Any) -> None:
    n, m = number(), number()
    before = len(session.program.block.ops)
    _ = n + 1
    ops = session.program.block.ops[before:]
    assert is_used(n, ops) and not is_used(m, ops) and not is_used(n, [])


def test_which_numbers_have_to_be_tried(session: Any, number: Any) -> None:
    assert not must_be_tried(session, [1, [2.0]])
    whole, part = int_stand_in(session, number()), stand_in(session, number("float"), like=1.0)
    assert must_be_tried(session, [3, whole]) and must_be_tried(session, ["x", (1.0, part)])
    assert not must_be_tried(session, [part]), "a float alone changes no shape"
    assert not must_be_tried(session, [1, 2.0, (3,), None])
