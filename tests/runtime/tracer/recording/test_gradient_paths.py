"""What a gradient reaches, and whether it does on every path: asked of Blocks that are made here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from runtime.ir import ScalarType, Variable
from runtime.tracer.recording import gradient_paths
from runtime.tracer.recording.gradient_paths import reached
from runtime.tracer.recording.gradient_sources import LAST_ITERATION, NO_ITERATION
from runtime.tracer.recording.session import Session

Tensor = torch.Tensor
BOOL = ScalarType("bool")
CALLS: dict[str, tuple[Callable[[Tensor, Tensor], Tensor], dict[str, bool]]] = {
    "product": (lambda w, v: w * v, {"w": True, "v": True}),
    "one of them": (lambda w, v: w * 2, {"w": True}),
    "far": (lambda w, v: (w.exp() + v.detach()).sum(), {"w": True}),
    "no gradients": (torch.no_grad()(lambda w, v: w * v), {}),
    "like another": (lambda w, v: w.expand_as(v), {"w": True}),
    "factory": (lambda w, v: torch.zeros_like(w), {}),
    "comparison": (lambda w, v: (w > v).float(), {}),
    "condition": (lambda w, v: torch.where(w > 0, v, v), {"v": True}),
    "written": (lambda w, v: (w * 1).mul_(v), {"w": True, "v": True}),
    "written without gradients": (lambda w, v: torch.no_grad()(lambda y: y.mul_(v))(w * 1), {"w": True}),
    "part written": (lambda w, v: torch.zeros(6)[:3].copy_(v), {"v": True}),
    "batch normalisation": (
        lambda w, v: torch.nn.functional.batch_norm(w.expand(2, 3), torch.zeros(3), torch.ones(3), v, training=True),
        {"w": True, "v": True},
    ),
}  # fmt: skip


@pytest.fixture
def leaves(given: Any) -> tuple[Tensor, Tensor]:
    return given("w", 3, requires_grad=True), given("v", 3, requires_grad=True)


@pytest.mark.parametrize("name", CALLS)
def test_straight_lines(name: str, session: Session, leaves: Any, made: Any) -> None:
    call, expected = CALLS[name]
    root = made(call, *leaves)
    inputs = {session.read(leaf): leaf_name for leaf, leaf_name in zip(leaves, "wv")}
    paths = reached(session, [session.read(root)], inputs)
    assert {inputs[var]: sure for var, sure in paths.found.items() if var in inputs} == expected
    assert paths.through <= set(session.program.block.walk())


def test_it_ends_at_the_stops(session: Session, leaves: Any, made: Any) -> None:
    w, _ = leaves
    h = made(lambda: w * 2)
    y = made(lambda: h.exp())
    root, stop, end = map(session.read, (y, h, w))
    assert set(reached(session, [root], {stop}).found) == {root, stop}
    assert set(reached(session, [root], set()).found) == {root, stop, end}


def test_what_leads_where(session: Session, leaves: Any, made: Any) -> None:
    w, v = leaves
    h, k = made(lambda: (w * 2, v.exp()))
    y = made(lambda: h + k)
    root, one, other, first = (session.read(part) for part in (y, h, k, w))
    paths = reached(session, [root], set())
    assert paths.leading({first}) == {first, one, root}
    assert paths.leading(set()) == set()
    assert [op.outputs[0] for op in session.program.block.ops if op in paths.run({first, one, root})] == [one, root]
    assert other in paths.found and paths.alike_to({first}) == {}


def branch(session: Session, made: Any, first: Callable[[], Tensor], second: Callable[[], Tensor]) -> Variable:
    """The output of a ``cond`` whose paths give what two functions give."""
    blocks, types = [], []
    for function in (first, second):
        with session.open("cond") as scope:
            result = made(function)
            scope.block.yields = [session.read(result)]
        blocks.append(scope.block)
        types.append(session.type_of(result))
    flag = session.new_variable(BOOL, "flag")
    return session.emit("cond", [flag], types=types[:1], blocks=blocks)[0]


def test_a_branch(session: Session, leaves: Any, made: Any) -> None:
    """What both paths make the value of is certain, what one of them does is not."""
    w, v = leaves
    out = branch(session, made, lambda: w * v, lambda: w.exp())
    one, other = session.read(w), session.read(v)
    paths = reached(session, [out], {one, other})
    assert (paths.found[one], paths.found[other]) == (True, False)
    (op,) = session.program.block.ops
    assert reached(session, [out], {one, other}, {op: 0}).found == {out: True, one: True, other: True}
    assert reached(session, [out], {one, other}, {op: 1}).found == {out: True, one: True}


def test_a_branch_that_gives_a_value_as_it_is(session: Session, leaves: Any, made: Any) -> None:
    w, v = leaves
    out = branch(session, made, lambda: w, lambda: v)
    paths = reached(session, [out], set())
    assert paths.found == {out: True, session.read(w): False, session.read(v): False}
    assert {session.read(w), session.read(v)} <= paths.met


def loop(session: Session, made: Any, first: Tensor, step: Callable[[Tensor], Tensor], starts: Any = None) -> Variable:
    """The output of a ``while_loop`` that carries a tensor; ``starts``: whether it begins."""
    start = session.new_variable(BOOL, "start") if starts is None else starts
    type_ = session.type_of(first)
    blocks = []
    for place in range(2):
        with session.open("while_loop") as scope:
            flag, carried = session.new_variable(BOOL), session.new_variable(type_)
            scope.block.args = [flag, carried]
            fake = session.fresh(session.clone_meta(first), carried, requires_grad=True)
            scope.block.yields = [flag] if place == 0 else [flag, session.read(made(step, fake))]
        blocks.append(scope.block)
    return session.emit("while_loop", [start, session.read(first)], types=[BOOL, type_], blocks=blocks)[1]


@pytest.mark.parametrize(("starts", "sure"), [(None, False), (True, True)])
def test_a_loop(starts: Any, sure: bool, session: Session, leaves: Any, made: Any) -> None:
    """What it began with is handed on by each iteration; the rest is sure if one runs for certain."""
    w, v = leaves
    out = loop(session, made, w, lambda carried: carried * v, starts)
    found = reached(session, [out], set()).found
    assert (found[session.read(w)], found[session.read(v)]) == (True, sure)


def test_a_loop_that_forgets_what_it_began_with(session: Session, leaves: Any, made: Any) -> None:
    w, v = leaves
    out = loop(session, made, w, lambda carried: v * 2)
    assert reached(session, [out], set()).found == {out: True, session.read(w): False, session.read(v): False}
    op = session.program.block.ops[-1]
    assert set(reached(session, [out], set(), {op: NO_ITERATION}).found) == {out, session.read(w)}
    assert set(reached(session, [out], set(), {op: LAST_ITERATION}).found) == {out, session.read(v)}


def test_inside_a_loop_that_is_open(session: Session, leaves: Any, made: Any) -> None:
    """An iteration is taken to be as the first, until the loop has found that it is not."""
    w, _ = leaves
    first = session.read(w)
    with session.open("while_loop") as body:
        carried = session.new_variable(session.type_of(w))
        body.block.args, body.begins = [carried], {carried: first}
        inner = session.fresh(session.clone_meta(w), carried, requires_grad=True)
        root = session.read(made(lambda: inner * 2))
        assert gradient_paths.before_loops(session, carried) == [first]
        paths = reached(session, [root], set())
        assert paths.found == {root: True, carried: True, first: True}
        assert paths.alike == {carried: (first, body)} and paths.alike_to({first}) == {body: frozenset({carried})}
        assert reached(session, [root], set(), alike=False).found[first] is False
        body.alike = False
        assert reached(session, [root], set()).found[first] is False
        assert reached(session, [root], {carried}).found == {root: True, carried: True}
    assert gradient_paths.before_loops(session, carried) == []


def test_what_came_before_an_open_loop_is_run_in_its_first_iteration(session: Session, leaves: Any, made: Any) -> None:
    w, _ = leaves
    before = made(lambda: w.exp())
    with session.open("while_loop") as body:
        carried = session.new_variable(session.type_of(w))
        body.block.args, body.begins = [carried], {carried: session.read(before)}
        inner = session.fresh(session.clone_meta(w), carried, requires_grad=True)
        paths = reached(session, [session.read(made(lambda: inner * 2))], set())
    names = {op.name for op in paths.through}, {op.name for op in paths.earlier}
    assert names == ({"aten.exp.default", "aten.mul.Tensor"}, {"aten.exp.default"})
