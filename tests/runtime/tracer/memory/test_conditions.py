"""Path conditions: the algebra of never, always, and any of some cases."""

from __future__ import annotations

import itertools

import pytest

from runtime.ir import ScalarType, Variable
from runtime.tracer.memory.conditions import ALWAYS, NEVER, PathCondition, any_of, known, when

FLAGS = [Variable(name, ScalarType("bool")) for name in "abc"]
A, B, C = map(when, FLAGS)
SOME = [NEVER, ALWAYS, A, B, A | B, A & B, (A & B) | C, (A | B) & (B | C)]


def holds(condition: PathCondition, true: set[Variable]) -> bool:
    """Whether it holds where these flags are true: what the cases say, in plain words."""
    return any(all(flag in true for flag in case) for case in condition.cases)


def everywhere() -> list[set[Variable]]:
    return [set(some) for count in range(4) for some in itertools.combinations(FLAGS, count)]


@pytest.mark.parametrize("one", SOME, ids=str)
@pytest.mark.parametrize("other", SOME, ids=str)
def test_or_and_and_are_those_of_truth_values(one: PathCondition, other: PathCondition) -> None:
    for true in everywhere():
        assert holds(one | other, true) == (holds(one, true) or holds(other, true))
        assert holds(one & other, true) == (holds(one, true) and holds(other, true))


@pytest.mark.parametrize("one", SOME, ids=str)
def test_questions(one: PathCondition) -> None:
    found = [holds(one, true) for true in everywhere()]
    assert one.always == all(found) and one.never == (not any(found))
    assert one.maybe == (any(found) and not all(found))
    with pytest.raises(TypeError, match="no bool"):
        bool(one)


def test_equality_is_that_of_the_cases() -> None:
    assert A | B == B | A and A & B == B & A and hash(A | B) == hash(B | A)
    assert A != B and A != NEVER and known(True) == ALWAYS and known(False) == NEVER


def test_nothing_is_there_twice() -> None:
    assert (A | A).cases == A.cases and (A & A).cases == A.cases
    assert len((A | B | A).cases) == 2 and len(((A | B) & (A | B)).cases) == 2


def test_any_of_none_is_never() -> None:
    assert any_of([]) == NEVER and any_of([A, NEVER, B]) == A | B and any_of([A, ALWAYS]) == ALWAYS


def test_flags_are_replaced_by_others_and_by_answers() -> None:
    a, b, _ = FLAGS
    condition = (A & B) | C
    assert condition.replaced(lambda flag: flag) == condition
    assert condition.replaced(lambda flag: True if flag is a else flag) == B | C
    assert condition.replaced(lambda flag: False if flag is b else flag) == C
    assert condition.replaced(lambda flag: False).never and condition.replaced(lambda flag: True).always
