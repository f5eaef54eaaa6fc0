"""Path conditions: the algebra of never, always, and any of some cases."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest

from runtime.ir import Block, Operator, ScalarType, Variable
from runtime.tracer.memory import conditions
from runtime.tracer.memory.conditions import ALWAYS, NEVER, PathCondition, any_of, known, when
from runtime.tracer.memory.deferred import Needed
from runtime.tracer.recording.session import Scope

FLAGS = [Variable(name, ScalarType("bool")) for name in "abc"]
A, B, C = map(when, FLAGS)
SOME = [NEVER, ALWAYS, A, B, A | B, A & B, (A & B) | C, (A | B) & (B | C)]


def holds(condition: PathCondition, true: set[Variable], known: dict[Any, bool] | None = None) -> bool:
    """Whether it holds where these flags are true: what the cases say, in plain words."""
    known = {} if known is None else known

    def is_so(flag: Any) -> bool:
        if not isinstance(flag, PathCondition):
            return flag in true
        if flag not in known:
            known[flag] = holds(flag, true, known)
        return known[flag]

    return any(all(map(is_so, case)) for case in condition.cases)


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


def test_a_case_that_contains_another_one_is_left_out() -> None:
    assert (A | (A & B)).cases == A.cases and ((A & B) | A).cases == A.cases
    assert ((A | B) & A).cases == A.cases and len(((A | B) & (A | C)).cases) == 2


@pytest.mark.parametrize("one", SOME, ids=str)
@pytest.mark.parametrize("other", SOME, ids=str)
def test_conditions_that_hold_alike_are_equal(one: PathCondition, other: PathCondition) -> None:
    alike = all(holds(one, true) == holds(other, true) for true in everywhere())
    assert (one == other) == alike and (not alike or hash(one) == hash(other))


def test_any_of_none_is_never() -> None:
    assert any_of([]) == NEVER and any_of([A, NEVER, B]) == A | B and any_of([A, ALWAYS]) == ALWAYS


def test_flags_are_replaced_by_others_and_by_answers() -> None:
    a, b, _ = FLAGS
    condition = (A & B) | C
    assert condition.replaced(lambda flag: flag) == condition
    assert condition.replaced(lambda flag: True if flag is a else flag) == B | C
    assert condition.replaced(lambda flag: False if flag is b else flag) == C
    assert condition.replaced(lambda flag: False).never and condition.replaced(lambda flag: True).always


MANY = [Variable(f"v{number}", ScalarType("bool")) for number in range(40)]


class Recorder:
    """Records ``and_`` and ``or_`` of flags as nested tuples, one for each Operator."""

    def __init__(self) -> None:
        self.count = 0
        self.scope = Scope(Block(), None)

    def scalar(self, name: str, a: Any, b: Any) -> Any:
        self.count += 1
        return (name, a, b)


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(conditions, "wrap", lambda var: var)
    return Recorder()


def value(expression: Any, true: set[Variable], known: dict[int, bool] | None = None) -> bool:
    """What a nested tuple of ``and_`` and ``or_`` gives."""
    known = {} if known is None else known
    if not isinstance(expression, tuple):
        return expression if isinstance(expression, bool) else expression in true
    if id(expression) not in known:
        found = [value(part, true, known) for part in expression[1:]]
        known[id(expression)] = all(found) if expression[0] == "and_" else any(found)
    return known[id(expression)]


def test_a_product_of_many_stays_small(recorder: Any) -> None:
    condition, truths = ALWAYS, []
    for a, b in zip(MANY[::2], MANY[1::2], strict=True):
        condition &= when(a) | when(b)
        truths.append({a, b})
    staged = condition.staged(recorder)
    assert recorder.count < 80
    rng = random.Random(0)
    for _ in range(50):
        true = {var for var in MANY if rng.random() < 0.9}
        wanted = all(pair & true for pair in truths)
        assert value(staged, true) == holds(condition, true) == wanted


@pytest.mark.parametrize("seed", range(20))
def test_what_is_made_of_many_is_what_truth_values_say(seed: int, recorder: Any) -> None:
    rng = random.Random(seed)
    made: list[tuple[PathCondition, Any]] = [(when(var), var) for var in MANY[:12]]
    for _ in range(120):
        (one, first), (other, second) = rng.sample(made[-20:], 2)
        both = rng.random() < 0.5
        made.append((one & other, ("and_", first, second)) if both else (one | other, ("or_", first, second)))
    last = made[-1][0]
    staged, swap = last.staged(recorder), dict(zip(MANY[:12], MANY[12:24], strict=True))
    swapped = last.replaced(swap.__getitem__)
    assert last.replaced(lambda flag: flag) == last
    for _ in range(20):
        true = {var for var in MANY[:12] if rng.random() < 0.6}
        wanted = value(made[-1][1], true)
        assert holds(last, true) == wanted and value(staged, true) == wanted
        assert holds(swapped, {swap[var] for var in true}) == wanted
        assert last.replaced(true.__contains__) == known(wanted)


def test_a_case_with_a_flag_and_its_opposite_never_holds() -> None:
    value, other, flag = (Variable(name, ScalarType("bool")) for name in "abc")
    needs, needs_none = Needed(value), Needed(value, negated=True)
    assert needs.opposite == needs_none and needs_none.opposite == needs
    assert (when(needs) & when(needs_none)).never
    assert (when(flag, needs) & when(needs_none)).never
    assert (when(needs) & when(Needed(other, negated=True))).maybe
    assert (when(needs) & (when(needs_none) | when(flag))) == when(needs, flag)
    assert (when(needs) | when(needs_none)).maybe


def test_what_was_computed_in_a_block_is_not_computed_again_there(recorder: Any) -> None:
    shared = (when(MANY[0]) | when(MANY[1])) & (when(MANY[2]) | when(MANY[3]))
    staged = shared.staged(recorder)
    count = recorder.count
    assert shared.staged(recorder) is staged and recorder.count == count
    (shared & when(MANY[4])).staged(recorder)
    assert recorder.count == count + 1
    outer = recorder.scope
    recorder.scope = Scope(Block(), outer)
    shared.staged(recorder)
    assert recorder.count > count + 1  # a Block that is closed may gain an output: what is around it stands behind it
    within = when(MANY[5]) | when(MANY[6])
    within.staged(recorder)
    count, recorder.scope = recorder.count, outer
    within.staged(recorder)
    assert recorder.count == count + 1  # what a Block computes is not there around it


def test_what_is_recorded_at_the_end_of_a_block_is_not_there_earlier(recorder: Any) -> None:
    condition = when(MANY[0]) | when(MANY[1])
    condition.staged(recorder)
    recorder.scope.before = Operator("aten.relu", [], [])
    condition.staged(recorder)
    assert recorder.count == 2
