"""What is decided of sizes while tracing: by the cases that a caller keeps apart, and by how numbers are made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from runtime.tracer.numbers.known_sizes import decide, not_negative
from runtime.tracer.numbers.scalars import StagedBool

Made = Callable[[Any, Any, Any], Any]
"""From a size that is neither 0 nor 1, another such, and a number that may be anything."""


def numbers(session: Any, given: Any, number: Any) -> tuple[Any, Any, Any]:
    x, y = given("x", None, 3), given("y", None)
    session.sizes.apart = {"x": frozenset((0,)), "y": frozenset((0,))}
    return session.sizes.staged(x.shape[0]), session.sizes.staged(y.shape[0]), number()


DECIDED: dict[str, tuple[Made, bool]] = {
    "n > 1": (lambda n, m, k: n > 1, True),
    "n >= 2": (lambda n, m, k: n >= 2, True),
    "n < 2": (lambda n, m, k: n < 2, False),
    "n <= 1": (lambda n, m, k: n <= 1, False),
    "n == 1": (lambda n, m, k: n == 1, False),
    "n != 0": (lambda n, m, k: n != 0, True),
    "0 < n": (lambda n, m, k: 0 < n, True),
    "n * m > 3": (lambda n, m, k: n * m > 3, True),
    "n + m == 3": (lambda n, m, k: n + m == 3, False),
    "-n < -1": (lambda n, m, k: -n < -1, True),
}
OPEN: dict[str, Made] = {
    "n > 2": lambda n, m, k: n > 2,
    "n == 2": lambda n, m, k: n == 2,
    "n == m": lambda n, m, k: n == m,
    "n - m > -9": lambda n, m, k: n - m > -9,
    "n - n == 0": lambda n, m, k: n - n == 0,
    "k > 1": lambda n, m, k: k > 1,
    "n + k > 1": lambda n, m, k: n + k > 1,
    "n // 2 > 0": lambda n, m, k: n // 2 > 0,
}


@pytest.mark.parametrize("name", DECIDED)
def test_what_every_size_answers(name: str, session: Any, given: Any, number: Any) -> None:
    made, answer = DECIDED[name]
    assert decide(session, made(*numbers(session, given, number))) is answer


@pytest.mark.parametrize("name", OPEN)
def test_what_sizes_answer_differently(name: str, session: Any, given: Any, number: Any) -> None:
    flag = OPEN[name](*numbers(session, given, number))
    assert isinstance(flag, StagedBool) and decide(session, flag) is flag and session.program.assumes == []


def test_a_decision_is_assumed_of_the_sizes_that_it_asks(session: Any, given: Any, number: Any) -> None:
    n, _, _ = numbers(session, given, number)
    assert decide(session, n > 1) is True and decide(session, n > 0) is True
    [fact] = session.program.assumes
    assert (fact.expr, fact.symbols) == ("s0 >= 2", {"s0": ("x", 0)})


def test_nothing_is_decided_of_sizes_that_nobody_keeps_apart(session: Any, given: Any) -> None:
    n = session.sizes.staged(given("x", None).shape[0])
    flag = n > 1
    assert decide(session, flag) is flag
    session.sizes.apart = {"y": frozenset((0,))}
    assert decide(session, flag) is flag


def test_conditions_of_conditions(session: Any, given: Any, number: Any) -> None:
    n, _, k = numbers(session, given, number)
    yes, no, unknown = n > 1, n == 0, k > 0

    def told(name: str, *args: Any) -> bool | None:
        flag = session.scalar(name, *args)
        found = decide(session, flag)
        return None if found is flag else found

    assert [told("and_", yes, one) for one in (yes, no, unknown)] == [True, False, None]
    assert [told("and_", unknown, one) for one in (yes, no, unknown)] == [None, False, None]
    assert [told("or_", yes, one) for one in (yes, no, unknown)] == [True, True, True]
    assert [told("or_", unknown, one) for one in (yes, no, unknown)] == [True, None, None]
    assert [told("not_", one) for one in (yes, no, unknown, n, k)] == [False, True, None, False, None]
    assert [told("bool", one) for one in (n, k)] == [True, None]


@pytest.mark.parametrize("value, answer", [(0, True), (7, True), (-1, False), (True, True)])
def test_plain_numbers(value: int, answer: bool, session: Any) -> None:
    assert not_negative(session, value) is answer


NATURAL: dict[str, tuple[Made, bool]] = {
    "n": (lambda n, m, k: n, True),
    "k": (lambda n, m, k: k, False),
    "k > 1": (lambda n, m, k: k > 1, True),
    "n + 1": (lambda n, m, k: n + 1, True),
    "n * abs(k)": (lambda n, m, k: n * abs(k), True),
    "n * k": (lambda n, m, k: n * k, False),
    "abs(k)": (lambda n, m, k: abs(k), True),
    "k.bit_length()": (lambda n, m, k: k.bit_length(), True),
    "k % n": (lambda n, m, k: k % n, True),
    "k % 3": (lambda n, m, k: k % 3, True),
    "k % -3": (lambda n, m, k: k % -3, False),
    "n - 1": (lambda n, m, k: n - 1, False),
    "-n": (lambda n, m, k: -n, False),
    "abs(k) << n": (lambda n, m, k: abs(k) << n, True),
    "k << n": (lambda n, m, k: k << n, False),
}


@pytest.mark.parametrize("name", NATURAL)
def test_what_is_surely_no_less_than_zero(name: str, session: Any, given: Any, number: Any) -> None:
    made, answer = NATURAL[name]
    value = made(*numbers(session, given, number))
    assert not_negative(session, value) is answer
    for one, wanted in (("max", True), ("min", answer)) if value.kind == "int" else ():
        assert not_negative(session, session.scalar(one, value, 0)) is wanted


def test_counters_of_loops(session: Any, number: Any) -> None:
    k = number()
    session.sizes.natural.add(k.var)
    assert not_negative(session, k) and not_negative(session, k + 1) and not not_negative(session, k - 1)
