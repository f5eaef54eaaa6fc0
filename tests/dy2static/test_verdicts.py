"""How many calls may fail, and how many Programs be made, before a function is left in plain Python."""

from __future__ import annotations

from dy2static.errors import ConversionError, TraceError
from dy2static.verdicts import (
    CALLS,
    FAILURES,
    KINDS,
    PART_FAILURES,
    PART_TRACES,
    TRACES,
    Reason,
    Verdicts,
    is_final,
    reason_of,
)
from runtime.ir import Location

WHY = Reason("a reason", "D2S213", Location("a.py", 3, 0, "f", "x = 1"))


def test_failures_are_counted() -> None:
    for of_part, least in ((False, FAILURES), (True, PART_FAILURES)):
        verdicts = Verdicts(of_part)
        for number in range(least):
            assert verdicts.may_trace()
            verdicts.refuse(number, WHY)
        assert not verdicts.may_trace() and verdicts.reason(0) is WHY and verdicts.reason("other") is None
        assert verdicts.spend("x differs", None) is None, "it was told why"
        verdicts.hits += CALLS
        assert verdicts.may_trace(), "Programs that are used pay for another try"
        verdicts.refuse("source", WHY, final=True)
        verdicts.hits += 100 * CALLS
        assert not verdicts.may_trace()
        verdicts.clear()
        assert verdicts.may_trace() and verdicts.of_part is of_part and verdicts.reasons() == []


def test_calls_that_wait_are_counted_apart() -> None:
    for of_part, least in ((False, FAILURES), (True, PART_FAILURES)):
        verdicts = Verdicts(of_part)
        assert [verdicts.may_wait() for _ in range(least + 1)] == [True] * least + [False]
        assert verdicts.may_trace() and verdicts.reasons() == []


def test_programs_are_counted() -> None:
    for of_part, least in ((False, TRACES), (True, PART_TRACES)):
        verdicts = Verdicts(of_part)
        for _ in range(least):
            assert verdicts.may_trace()
            verdicts.traces += 1
            verdicts.hits += 1
        assert not verdicts.may_trace()
        spent = verdicts.spend("x differs", WHY.location)
        assert spent is not None and "x differs at a.py:3 (x = 1)" in str(spent)
        assert verdicts.spend("again", None) is None, "once"
        assert verdicts.reasons() == [spent]


def test_verdicts_are_bounded() -> None:
    verdicts = Verdicts()
    for number in range(3 * KINDS):
        verdicts.refuse(number, WHY)
    assert len(verdicts.python) <= KINDS


def test_reasons_of_exceptions() -> None:
    error = TraceError("what", hint="do this", location=WHY.location, code="D2S213")
    assert str(reason_of(error)) == "[D2S213] what at a.py:3 (x = 1)" and reason_of(error).hint == "do this"
    assert reason_of(KeyError("k")).code == "D2S279"
    assert is_final(ConversionError("x")) and not is_final(error)
