"""What a value may be on some path, by the ways through branches, loops and lists that gave it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch

from runtime.ir import ArrayType, Block, Operand, Operator, ScalarType, TensorType, Type, Variable
from runtime.tracer.recording.gradient_sources import LAST_ITERATION, NO_ITERATION, Sources, block_taken
from runtime.tracer.recording.session import Session

FLOATS = TensorType(torch.float32, (3,))
BOOL = ScalarType("bool")


class Written:
    """A Program that a test writes down."""

    def __init__(self, session: Session) -> None:
        self.session = session

    def tensor(self, name: str) -> Variable:
        """A value that an Operator made."""
        return self.session.emit("aten.exp.default", [1], types=[FLOATS], hints=[name])[0]

    def leaf(self, name: str) -> Variable:
        """The start of a graph."""
        return self.session.emit("grad.leaf", [self.tensor("")], types=[FLOATS], hints=[name])[0]

    def cond(self, *values: Operand, type: Type = FLOATS) -> tuple[Variable, Operator]:
        blocks = [Block([], [], [value]) for value in values]
        flag = self.session.new_variable(BOOL)
        op = self.session.emit_operator("cond", [flag], types=[type], blocks=blocks)
        return op.outputs[0], op

    def loop(self, first: Variable, inner: Variable | None = None) -> tuple[Variable, Operator]:
        """A loop whose iterations give ``inner``; None: a value that they make."""
        start, test, body = self.session.new_variable(BOOL), Block(), Block()
        for block in (test, body):
            block.args = [self.session.new_variable(BOOL), self.session.new_variable(first.type)]
        if inner is None:
            with self.session.open("while_loop", body):
                inner = self.tensor("inner")
        test.yields, body.yields = [test.args[0]], [body.args[0], inner]
        op = self.session.emit_operator("while_loop", [start, first], types=[BOOL, first.type], blocks=[test, body])
        return op.outputs[1], op


@pytest.fixture
def written(session: Session) -> Written:
    return Written(session)


def ways(session: Session, var: Variable) -> list[tuple[str, Sequence[int]]]:
    return [(one.hint, [number for key, number in taken.items() if isinstance(key, Operator)])
            for one, taken in Sources(session).ways(var, {})]  # fmt: skip


def test_what_an_operator_computes_is_itself(session: Session, written: Written) -> None:
    a = written.tensor("a")
    assert Sources(session).of(a) == set() and ways(session, a) == [("a", [])]


def test_a_branch_gives_one_of_two(session: Session, written: Written) -> None:
    a, b = written.tensor("a"), written.tensor("b")
    out, op = written.cond(a, b)
    assert Sources(session).of(out) == {a, b} and ways(session, out) == [("a", [0]), ("b", [1])]
    assert [one for one, _ in Sources(session).ways(out, {op: 1})] == [b]


def test_branches_by_the_same_number(session: Session, written: Written) -> None:
    """A switch by a number that a branch gives, and another switch by it: all of them took one path."""
    a, b, c, d = map(written.tensor, "abcd")
    number, first = written.cond(1, 0, type=ScalarType("int"))
    blocks = [[Block([], [], [value]) for value in pair] for pair in ((a, b), (c, d))]
    one, other = (session.emit_operator("switch", [number], types=[FLOATS], blocks=pair) for pair in blocks)
    for value, taken in Sources(session).ways(one.outputs[0], {}):
        path = 0 if value is a else 1
        assert taken[first] == 1 - path and block_taken(other, taken) == path
        assert [found for found, _ in Sources(session).ways(other.outputs[0], taken)] == [(c, d)[path]]


def test_branches_after_each_other(session: Session, written: Written) -> None:
    a, b, c = map(written.tensor, "abc")
    first, _ = written.cond(a, b)
    second, _ = written.cond(first, c)
    assert Sources(session).of(second) == {first, a, b, c}
    assert ways(session, second) == [("a", [0, 0]), ("b", [0, 1]), ("c", [1])]


def test_a_loop_gives_what_was_before_it_or_what_an_iteration_made(session: Session, written: Written) -> None:
    a = written.tensor("a")
    out, op = written.loop(a)
    assert [(one.hint, taken) for one, taken in Sources(session).ways(out, {})] == [
        ("a", {op: NO_ITERATION}), ("inner", {op: LAST_ITERATION})]  # fmt: skip


def test_a_loop_that_gives_something_from_outside(session: Session, written: Written) -> None:
    a, b = written.tensor("a"), written.tensor("b")
    out, _ = written.loop(a, b)
    assert Sources(session).of(out) >= {a, b}
    assert {name for name, _ in ways(session, out)} == {"a", "b"}


@pytest.mark.parametrize("name", ["array.get", "array.pop"])
def test_an_item_of_a_list_is_what_was_put_there(name: str, session: Session, written: Written) -> None:
    a, b = written.tensor("a"), written.tensor("b")
    array = ArrayType(FLOATS)
    (new,) = session.emit("array.new", [[a]], types=[array])
    (longer,) = session.emit("array.append", [new, b], types=[array])
    item, *_ = session.emit(name, [longer, 0], types=[FLOATS] if name == "array.get" else [FLOATS, array])
    assert Sources(session).of(item) == {longer, new, a, b}
    assert Sources(session).is_leaf(item) is False


def test_whether_a_value_is_a_leaf(session: Session, written: Written) -> None:
    a, leaf, other = written.tensor("a"), written.leaf("leaf"), written.leaf("other")
    leaves, some = written.cond(leaf, other)[0], written.cond(leaf, a)[0]
    sources = Sources(session)
    assert [sources.is_leaf(one) for one in (a, leaf, leaves, some)] == [False, True, True, None]
    assert [sources.may_be_made_leaf(one) for one in (a, leaf, leaves, some)] == [False, True, True, True]


def test_leaves_of_the_callers(session: Session, written: Written, given: Any) -> None:
    w, x = (session.read(given(name, 3, requires_grad=name == "w")) for name in "wx")
    graph = torch.ones(3, requires_grad=True) * 2
    computed = session.read(session.inputs.add_input(graph, "computed"))
    sources = Sources(session)
    assert sources.is_leaf(w) is True and sources.is_leaf(computed) is False
    assert session.inputs.leaves == {w: True, computed: False}, "a later call is held against that"
    assert sources.is_leaf(w, outside=False) is False and not sources.may_be_made_leaf(w)
    assert session.inputs.leaves.get(x) is None


def test_what_an_open_loop_carries_is_not_known(session: Session, written: Written) -> None:
    leaf = written.leaf("leaf")
    with session.open("while_loop") as body:
        carried = session.new_variable(FLOATS)
        body.block.args, body.begins = [carried], {carried: leaf}
        joined, _ = written.cond(carried, leaf)
        sources = Sources(session)
        assert [sources.is_leaf(one) for one in (carried, joined, leaf)] == [None, None, True]
