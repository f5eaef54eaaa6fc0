"""A debugger that reads the local variables of all frames changes no result, and nothing that is refused."""

from __future__ import annotations

import collections
import sys
from typing import Any

import pytest
import torch

import dy2static
from dy2static.errors import Dy2StaticError
from tests.frames import looked_at
from tests.oracle import same

X = torch.tensor([1.0, -2.0, 3.0])
CALLS = [(sign * X, torch.tensor(n)) for sign in (1, -1) for n in (2, 0)]


def positive(x):
    for v in x:
        if v > 0:
            yield v


def given_on(x):
    return (v * 2 for v in x if v > -1)


def left_by_break(x, n):
    total = x.sum() * 0
    for v in positive(x):
        if v > 2:
            break
        total = total + v
    for v in given_on(x):
        if v > 1:
            break
        total = total * v
    return total


def of_builtins(x, n):
    first = next(positive(x), None)
    found = any(v > 1 for v in positive(x)), all(v > -5 for v in given_on(x))
    total = x.sum() * 0
    for i, v in enumerate(positive(x)):
        total = total + i * v
        if total > 2:
            break
    return first, found, total, list(map(lambda v: v + 1, positive(x))), sum(filter(lambda v: v > 0, x))


def held_by_a_variable(x, n):
    items = positive(x)
    total = x.sum() * 0
    for v in items:
        total = total + v
        if total > 1:
            break
    return total


def of_pythons_iterators(x, n):
    total = x.sum() * 0
    for a, b in zip([x, x + 1], [1, 2]):
        total = total + (a * b).sum()
        if total > 3:
            break
    for a in reversed([x, x * 2]):
        if a.sum() > 1:
            break
        total = total - 1
    return total


def rebound_list(x, n):
    held = [x, x + 1]
    for _ in range(4):
        if x.sum() > 0:
            held = [held[1], held[0] * 2]
        else:
            held = [held[0]]
        if len(held) < 2:
            held = held + [x]
    return held


def loop_over_lists(x, n):
    state = [x, x * 2]
    for _ in range(n):
        state = [state[1], state[0] + 1]
    return state


def lists_of_paths(x, n):
    out, seen = [], {}
    for i in range(3):
        if x.sum() > i:
            row = [x * i]
            seen[i] = row
        else:
            row = []
        out.append(row)
    return out, seen


def made_in_a_loop(x, n):
    state = {"h": x}
    queue = collections.deque([x], 2)
    for i in range(n):
        state = {"h": state["h"] * 2}
        queue.append(state["h"])
    return state, list(queue)


def list_that_is_gone(x, n):
    a = x * 2
    total = sum([t for t in (a, x) if t.sum() > -1e6])
    a += 1
    return a, total


def list_out_of_use(x, n):
    a = x * 2
    rows = []
    for _ in range(n):
        rows.append(a)
    count = len(rows)
    rows = None
    a += 1
    return a, count, rows


def list_that_is_read(x, n):
    a = x * 2
    rows = []
    for _ in range(n):
        rows.append(a)
    a += 1
    return rows


def long_loop(x, n):
    rows = []
    for i in range(66):
        rows.append(collections.OrderedDict(a=x * i))
    return rows[5]["a"] + n


PROGRAMS = [
    left_by_break, of_builtins, held_by_a_variable, of_pythons_iterators, rebound_list, loop_over_lists, lists_of_paths,
    made_in_a_loop, list_that_is_gone, list_out_of_use, list_that_is_read, long_loop,
]  # fmt: skip


LARGER = [loop_over_lists, made_in_a_loop]
"""Where a variable's list is seen to be its alone, less is recorded (see ``branches.is_alone``)."""


def outcome(function: Any, call: Any) -> tuple[Any, Any]:
    """What a call gives, or the code and place of the error; and the Program's Operators."""
    converted = dy2static.to_static(function)
    try:
        result = converted(*(arg.clone() for arg in call))
    except Dy2StaticError as error:
        return (error.code, str(error.location)), None
    (specialization,) = converted._dispatch.cache.all()
    return result, [op.name for op in specialization.traced.program.block.walk()]


@pytest.mark.sample(3)
@pytest.mark.parametrize("call", CALLS, ids=lambda call: f"{call[0][0]:.0f}, {call[1]}")
@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_one_that_looks_on(function, call):
    plain, recorded = outcome(function, call)
    with looked_at():
        seen, recorded_then = outcome(function, call)
    same(seen, plain)
    if function in LARGER and recorded is not None:
        assert len(recorded_then) >= len(recorded)
    else:
        assert recorded_then == recorded
    if recorded is not None:
        same(plain, function(*(arg.clone() for arg in call)))


KEPT: list[dict[str, Any]] = []


def keep(frame: Any, event: str, arg: Any) -> Any:
    """A debugger that keeps what it has seen of the user's code: what that makes is known to something older."""
    if frame.f_code.co_name not in {function.__name__ for function, _ in MADE}:
        return None
    KEPT.append(dict(frame.f_locals))
    return keep


def counting(x):
    count = 0

    def step():
        nonlocal count
        count += 1
        return count

    return (x * 2 if x.sum() > 0 else x), step, lambda v: v + 1


def with_attributes(x):
    def step():
        return step.count

    step.count = 1
    if x.sum() > 0:
        step.count = 2
    return x, step


def classes(x):
    class Pair:
        shared = []

        def __init__(self, value):
            self.value = value

    return Pair(x * 2 if x.sum() > 0 else x), Pair


def raised(x):
    try:
        raise KeyError("a")
    except KeyError as error:
        error.seen = x * 2 if x.sum() > 0 else x
        return error, error.seen


def outcome_of_each(function: Any, use: Any) -> list[Any]:
    """What three calls give, used together: they share what they should share, and nothing else."""
    return [use([function(X), function(X + 1), function(-X)]) for _ in range(2)]


MADE = [
    (counting, lambda calls: [calls[0][1](), calls[0][1](), calls[1][1](), calls[2][1](), calls[0][2] is calls[1][2]]),
    (with_attributes, lambda calls: [step() for _, step in calls] + [calls[0][1] is calls[1][1]]),
    (classes, lambda calls: [len({id(cls) for _, cls in calls}), *(type(one) is cls for one, cls in calls)]),
    (raised, lambda calls: [len({id(error) for error, _ in calls}), *(error.seen for error, _ in calls)]),
]


@pytest.mark.filterwarnings("ignore::dy2static.RetraceWarning")
@pytest.mark.parametrize(("function", "use"), MADE, ids=lambda one: getattr(one, "__name__", ""))
def test_one_that_keeps_what_it_sees(function, use):
    """Functions, classes and exceptions are new at each call, though something that is older refers to them."""
    expected = outcome_of_each(function, use)
    converted = dy2static.to_static(function)
    same(outcome_of_each(converted, use), expected)
    before = sys.gettrace()
    sys.settrace(keep)
    try:
        found = outcome_of_each(dy2static.to_static(function), use)
    finally:
        sys.settrace(before)
        KEPT.clear()
    same(found, expected)


def test_what_is_refused():
    refused = [f.__name__ for f in PROGRAMS if outcome(f, CALLS[0])[1] is None]
    assert refused == ["held_by_a_variable", "list_that_is_read"]
