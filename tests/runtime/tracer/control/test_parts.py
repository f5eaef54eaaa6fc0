"""A part of the test's own takes part in joins and loops beside the tracer's: what it carries arrives, step by step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
import torch

import dy2static
from runtime.ir import Operand, Operator, ScalarType, Type, Variable
from runtime.tracer.ambient import state
from runtime.tracer.control import join, while_loop
from runtime.tracer.control.branches import Path
from runtime.tracer.control.parts import Body, JoinPart, LoopPart, Met, Pairs
from runtime.tracer.numbers import scalars
from tests.oracle import same

INT = ScalarType("int")
POS, NEG = torch.tensor([1.0, 2.0]), torch.tensor([-1.0, -2.0])


class Which(JoinPart):
    """Which path was taken, by number: each yields its own."""

    steps: list[str] = []
    last: Variable | None = None

    def carried(self) -> list[tuple[Type, str]]:
        self.steps.append("carried")
        return [(INT, "which")]

    def yields(self, path: Path) -> list[Operand]:
        assert not path.ended
        self.steps.append("yields")
        return [self.branches.paths.index(path)]

    def recorded(self, op: Operator, outputs: Iterator[Variable]) -> None:
        self.steps.append("recorded")
        Which.last = next(outputs)
        assert Which.last in op.outputs

    def tensors(self, op: Operator, met: Met) -> None:
        self.steps.append("tensors")
        for path, pairs in met:
            assert path in self.branches.paths and all(type(a) is type(b) for a, b in pairs)


class Count(LoopPart):
    """How many iterations ran."""

    last: Variable | None = None

    def __init__(self, attempts: list[int]) -> None:
        self._attempts = attempts
        attempts.append(0)

    def again(self) -> Count:
        return Count(self._attempts)

    def arguments(self, body: Body) -> list[Variable]:
        self._inside = body.session.new_variable(INT, "count")
        return [self._inside]

    def inits(self) -> list[Operand]:
        return [0]

    def enter(self, body: Body, pairs: Pairs, stand_ins: Pairs) -> None:
        assert self._inside in body.scope.block.args
        assert all(a is b for _, a, b in stand_ins) and {n for n, *_ in pairs} <= {n for n, *_ in stand_ins}

    def yields(self, path: Path) -> list[Operand]:
        session = state.current()
        return [session.operand(scalars.wrap(self._inside) + 1)]

    def carried(self) -> list[tuple[Type, str]]:
        return [(INT, "count")]

    def recorded(self, outputs: Iterator[Variable]) -> None:
        Count.last = next(outputs)


@dy2static.not_to_static
def which() -> Any:
    assert Which.last is not None
    return scalars.wrap(Which.last)


@dy2static.not_to_static
def counted() -> Any:
    assert Count.last is not None
    return scalars.wrap(Count.last)


@pytest.fixture(autouse=True)
def parts(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Both take part; how many attempts the loops of a trace took is counted."""
    attempts: list[int] = []
    monkeypatch.setattr(join, "PARTS", (Which, *join.PARTS))
    monkeypatch.setattr(while_loop, "PARTS", (*while_loop.PARTS, lambda session: Count(attempts)))
    monkeypatch.setattr(Which, "steps", [])
    return attempts


def branch(x):
    if x.sum() > 0:
        y = x * 2
    else:
        y = x - 1
    return y, which()


def path_that_raises(x):
    if x.sum() > 100:
        raise ValueError("too much")
    return x * 2, which()


def one_of_three(x):
    k = int((x > 0).sum())
    if k == 0:
        y = x
    elif k == 1:
        y = x * 2
    else:
        y = x * 3
    return y, which()


def written(x):
    y = x.clone()
    z = y
    if x.sum() > 0:
        y.mul_(2)
    else:
        z = x
    return y, z, which()


def loop(x):
    while x.sum().abs() < 50:
        x = x * 2
    return x, counted()


def loop_of_more_attempts(x):
    seen, y, z = [], x, x
    while y.sum().abs() < 50:
        seen.append(y)
        y = y * 2
        z = y[:1]
    return seen, y, z, counted()


def loop_in_branch(x):
    n = 0
    if x.sum() > 0:
        while x.sum() < 50:
            x = x * 2
            x[0] = x[1]
        n = counted()
    return x, n, which()


EXPECTED: list[tuple[Any, Sequence[tuple[torch.Tensor, Any]]]] = [
    (branch, [(POS, (POS * 2, 0)), (NEG, (NEG - 1, 1))]),
    (path_that_raises, [(POS, (POS * 2, 1))]),
    (one_of_three, [(POS, (POS * 3, 1)), (NEG, (NEG, 0))]),
    (written, [(POS, (POS * 2, POS * 2, 0)), (NEG, (NEG, NEG, 1))]),
    (loop, [(POS, (POS * 32, 5)), (NEG * 100, (NEG * 100, 0))]),
    (loop_of_more_attempts,
     [(POS * 10, ([POS * 10], POS * 20, POS[:1] * 20, 1)), (POS * 50, ([], POS * 50, POS * 50, 0))]),
    (loop_in_branch, [(POS, (torch.tensor([32.0, 32.0]), 4, 0)), (NEG, (NEG, 0, 1))]),
]  # fmt: skip


@pytest.mark.parametrize(("function", "calls"), EXPECTED, ids=[function.__name__ for function, _ in EXPECTED])
def test_what_a_part_carries_arrives(function: Any, calls: Any) -> None:
    static = dy2static.to_static(function)
    for x, expected in calls:
        same(static(x.clone()), expected, apart=True)


def test_steps_of_a_join() -> None:
    dy2static.to_static(branch)(POS)
    assert Which.steps == ["carried", "yields", "yields", "recorded", "tensors"]


def test_a_path_that_ended_yields_nothing() -> None:
    dy2static.to_static(path_that_raises)(POS)
    assert Which.steps == ["carried", "yields", "recorded", "tensors"]


def test_each_attempt_has_its_own(parts: list[int]) -> None:
    dy2static.to_static(loop_of_more_attempts)(POS)
    assert len(parts) > 1
