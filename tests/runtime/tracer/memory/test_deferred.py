"""Deferred outputs: a construct gains one when something asks for it, and what it gives is what each path yields."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch

from runtime.ir import UNDEF, Operator, Variable
from runtime.tracer.memory import deferred
from runtime.tracer.memory.conditions import ALWAYS, NEVER, PathCondition, when
from runtime.tracer.memory.deferred import BOOL, CarriedCondition, JoinOutput, LoopValue, Needed, PathEnd
from runtime.tracer.numbers.scalars import wrap
from runtime.tracer.recording.session import Scope, Session
from tests.runtime.tracer.control.staging import Staging


@pytest.fixture
def flag(session: Session, given: Any) -> Callable[[str], Variable]:
    """``flag(name)``: a bool that is read off an input of this name."""
    def make(name: str) -> Variable:
        tensor = given(name, dtype=torch.bool)
        found: Variable = session.from_tensor("item", tensor, kind="bool").var
        return found

    return make


def two_paths(session: Session, test: Variable, ended: Sequence[bool] = (False, False)) -> tuple[Operator, Any]:
    """A ``cond`` whose paths yield nothing, and where they end."""
    ends = []
    for over in ended:
        with session.open("cond") as scope:
            ends.append(PathEnd(scope, over))
    op = session.emit_operator("cond", [test], None, [], blocks=[end.scope.block for end in ends])
    return op, ends


def joined(session: Session, op: Operator, values: Sequence[tuple[PathEnd, Any]]) -> JoinOutput:
    return JoinOutput(op, session.scope, BOOL, values)


def shown(session: Session, *asked: Variable) -> Callable[..., Any]:
    """The Program that gives these bools."""
    return Staging(session).finish(tuple(map(wrap, asked)))


def every(*names: str) -> list[dict[str, torch.Tensor]]:
    """Inputs of these names, in all ways."""
    return [dict(zip(names, map(torch.tensor, some))) for some in itertools.product((True, False), repeat=len(names))]


# -- whether a gradient is needed


def test_flags_of_the_same_value_are_equal(session: Session, flag: Any) -> None:
    one, other = flag("one"), flag("other")
    assert Needed(one) == Needed(one) and hash(Needed(one)) == hash(Needed(one))
    assert Needed(one) != Needed(other) and Needed(one) != Needed(one, negated=True) and Needed(one) != one
    assert Needed(one).opposite == Needed(one, negated=True) and Needed(one).opposite.opposite == Needed(one)


def test_a_gradient_is_asked_for_once_where_it_is_seen(session: Session, given: Any, recorded: Any) -> None:
    x = given("x", 3)
    source = session.read(x)
    needed = Needed(source)
    assert recorded() == [] and not session.outside.asks_gradients
    var = needed.demand(session)
    assert needed.demand(session) is var is needed.var and recorded() == ["grad.needed"]
    assert session.outside.asks_gradients
    with session.open("cond"):
        assert needed.demand(session) is not var  # what is recorded elsewhere may come later
    assert recorded() == []


@pytest.mark.parametrize("needs", [True, False])
def test_the_run_says_whether_a_gradient_is_needed(needs: bool, session: Session, given: Any, made: Any) -> None:
    x = given("x", 3)
    y = made(lambda: x * 2)
    source = Needed(session.read(y))
    run = shown(session, source.demand(session), source.opposite.demand(session))
    real = torch.ones(3, requires_grad=needs)
    assert run(x=real) == (needs, not needs) == ((real * 2).requires_grad, not (real * 2).requires_grad)


def test_when_tensors_need_a_gradient(session: Session, given: Any) -> None:
    plain, sure, some, also = (session.info(given(name, 3)) for name in ("plain", "sure", "some", "also"))
    for one in (sure, some, also):
        one.requires_grad = True
    some.grad_in_some_runs = also.grad_in_some_runs = True
    assert deferred.needed(sure) is ALWAYS and deferred.needed(some) == when(Needed(some.storage.value))
    assert deferred.unneeded([]) is ALWAYS and deferred.unneeded([plain, plain]) is ALWAYS
    assert deferred.unneeded([some, sure]) == NEVER
    mine, other = (Needed(one.storage.value, negated=True) for one in (some, also))
    assert deferred.unneeded([plain, some]) == when(mine) and deferred.unneeded([some, also]) == when(mine, other)
    assert (deferred.unneeded([some]) & deferred.needed(some)).never


# -- outputs of branches


def test_nothing_is_recorded_until_it_is_asked_for(session: Session, flag: Any) -> None:
    op, ends = two_paths(session, flag("c"))
    output = joined(session, op, [(end, True) for end in ends])
    assert op.outputs == () and output.var.name == "" and all(not block.yields for block in op.blocks)
    assert session.visible(output.var)
    assert output.demand(session) is output.var is output.demand(session)
    assert op.outputs == (output.var,) and [block.yields for block in op.blocks] == [[True], [True]]
    assert session.visible(output.var) and output.var.name


def test_an_output_is_what_each_path_yields(session: Session, flag: Any) -> None:
    c, a, b = flag("c"), flag("a"), flag("b")
    before_op, before_ends = two_paths(session, a)
    earlier = joined(session, before_op, [(before_ends[0], False), (before_ends[1], b)])
    op, ends = two_paths(session, c)
    computed: list[Scope] = []

    def compute() -> Any:
        computed.append(session.scope)
        return session.scalar("not_", wrap(a)).var

    kinds: dict[str, tuple[Any, Any]] = {
        "a constant": (True, False), "a Variable": (a, b), "a deferred one": (earlier, a),
        "a condition": (when(a) & when(b), when(a) | when(b)), "always or never": (ALWAYS, NEVER),
        "computed": (compute, a),
    }  # fmt: skip
    outputs = {kind: joined(session, op, list(zip(ends, values))) for kind, values in kinds.items()}
    assert op.outputs == ()
    run = shown(session, *(outputs[kind].demand(session) for kind in kinds))
    assert computed == [ends[0].scope], "where the path ends"
    for one in every("c", "a", "b"):
        taken, x, y = (bool(tensor) for tensor in one.values())
        expected = {
            "a constant": taken, "a Variable": x if taken else y, "a deferred one": not x and y if taken else x,
            "a condition": x and y if taken else x or y, "always or never": taken, "computed": not x if taken else x,
        }  # fmt: skip
        assert dict(zip(kinds, run(**one))) == expected


def test_a_path_that_has_ended_yields_nothing(session: Session, flag: Any) -> None:
    op, ends = two_paths(session, flag("c"), (True, False))
    output = joined(session, op, [(ends[0], lambda: 1 / 0), (ends[1], True)])
    output.demand(session)
    assert [block.yields for block in op.blocks] == [[UNDEF], [True]]


def test_an_output_inside_an_output(session: Session, flag: Any) -> None:
    """The inner construct gains one first, and it is asked for where the outer one's path ends."""
    c, a, b = flag("c"), flag("a"), flag("b")
    with session.open("cond") as scope:
        inner_op, inner_ends = two_paths(session, a)
        inner = joined(session, inner_op, [(inner_ends[0], True), (inner_ends[1], b)])
    with session.open("cond") as other:
        pass
    ends = [PathEnd(scope, False), PathEnd(other, False)]
    op = session.emit_operator("cond", [c], None, [], blocks=[scope.block, other.block])
    second = joined(session, op, [(ends[0], when(inner)), (ends[1], False)])
    first = joined(session, op, [(ends[0], inner), (ends[1], b)])
    run = shown(session, first.demand(session), second.demand(session))
    assert len(inner_op.outputs) == 1 and len(op.outputs) == 2
    for one in every("c", "a", "b"):
        taken, x, y = (bool(tensor) for tensor in one.values())
        assert run(**one) == ((x or y) if taken else y, taken and (x or y))


def test_outputs_that_ask_for_each_other_keep_their_places(session: Session, flag: Any) -> None:
    op, ends = two_paths(session, flag("c"))
    late = joined(session, op, [(ends[0], True), (ends[1], True)])
    outer = joined(session, op, [(ends[0], lambda: late.demand(session) and False), (ends[1], False)])  # type: ignore[func-returns-value]
    outer.demand(session)
    assert op.outputs == (outer.var, late.var)
    assert [block.yields for block in op.blocks] == [[False, True], [False, True]]


def test_conditions_at_the_ends_of_paths_become_one(session: Session, flag: Any) -> None:
    c, a = flag("c"), when(flag("a"))
    op, (one, other) = two_paths(session, c)
    over = PathEnd(other.scope, True)

    def after(*paths: tuple[PathEnd, PathCondition]) -> PathCondition:
        return deferred.joined(session, op, session.scope, paths)

    assert after((one, ALWAYS), (other, ALWAYS)) is ALWAYS and after((one, NEVER), (other, NEVER)) is NEVER
    assert after((one, ALWAYS), (over, NEVER)) is ALWAYS and after((one, NEVER), (over, a)) is NEVER
    assert after((over, NEVER), (over, ALWAYS)) is ALWAYS, "nothing comes there"
    mixed = [after((one, ALWAYS), (other, NEVER)), after((one, a), (other, a)), after((one, a), (over, NEVER))]
    assert all(condition.maybe and len(condition.cases) == 1 for condition in mixed) and op.outputs == ()
    operands = [condition.operand(session) for condition in mixed[:2]]
    run = shown(session, *operands)
    for inputs in every("c", "a"):
        assert run(**inputs) == (bool(inputs["c"]), bool(inputs["a"]))


# -- what loops carry


class Loop:
    """``while go: go = more`` by hand: two iterations at most, for ``more`` is read off an item of the input."""

    def __init__(self, session: Session, flag: Any) -> None:
        self.session = session
        self.first = flag("first")
        self.again = flag("again")
        with session.open("while_loop") as test:
            go = session.new_variable(BOOL)
            more = session.new_variable(BOOL)
            test.block.args = [go, more]
            test.block.yields = [go]
        self.test = test
        with session.open("while_loop") as body:
            go, more = session.new_variable(BOOL), session.new_variable(BOOL)
            body.block.args = [go, more]
            body.block.yields = [more, False]
        self.body, self.end = body, PathEnd(body, False)

    def record(self) -> Operator:
        session = self.session
        return session.emit_operator("while_loop", [self.first, self.again], None, [BOOL, BOOL],
                                     blocks=[self.test.block, self.body.block])

    def count(self, inputs: dict[str, torch.Tensor]) -> int:
        """How many iterations a run has."""
        return int(inputs["first"]) + int(inputs["first"] and inputs["again"])


@pytest.mark.parametrize("asked", ["before", "after", "never"])
def test_a_loop_carries_what_is_asked_for(asked: str, session: Session, flag: Any) -> None:
    loop = Loop(session, flag)
    value = LoopValue(BOOL, False, loop.body)
    if asked == "before":
        with session.reopen(loop.body):
            assert value.inside.demand(session) is value.inside.var
    value.next = True
    op = loop.record()
    value.finish(session, op, loop.end)
    assert len(op.args) == (3 if asked == "before" else 2) and session.visible(value.after.var)
    if asked == "never":
        assert len(op.outputs) == 2 and len(loop.body.block.yields) == 2
        return
    assert value.after.demand(session) is value.after.demand(session) is value.after.var
    assert len(op.args) == len(op.outputs) == len(loop.body.block.yields) == len(loop.test.block.args) == 3
    run = shown(session, value.after.var)
    for inputs in every("first", "again"):
        assert run(**inputs) == (loop.count(inputs) > 0,)


def test_where_a_loop_begins_may_be_said_late(session: Session, flag: Any) -> None:
    """An iteration leaves the opposite of what it finds."""
    loop, begins = Loop(session, flag), flag("begins")
    value = LoopValue(BOOL, UNDEF, loop.body)
    value.start(begins)
    value.next = lambda: session.scalar("not_", wrap(value.inside.demand(session))).var
    value.finish(session, loop.record(), loop.end)
    run = shown(session, value.after.demand(session))
    for inputs in every("first", "again", "begins"):
        odd = loop.count(inputs) % 2 == 1
        assert run(**inputs) == (bool(inputs["begins"]) != odd,)


def test_a_condition_round_a_loop(session: Session, flag: Any) -> None:
    """It holds once an iteration has left ``a``."""
    loop, a = Loop(session, flag), flag("a")
    carried, unasked = CarriedCondition(False, loop.body), CarriedCondition(True, loop.body)
    carried.next = carried.inside | when(a)
    unasked.next = unasked.inside & when(a)
    op = loop.record()
    for one in (carried, unasked):
        one.finish(session, op, loop.end)
    assert len(op.outputs) == 2 and carried.after.maybe
    run = shown(session, carried.after.operand(session))
    assert len(op.outputs) == 3, "the other one is not asked for"
    for inputs in every("first", "again", "a"):
        assert run(**inputs) == (loop.count(inputs) > 0 and bool(inputs["a"]),)


def test_a_condition_that_no_iteration_leaves_begins_as_it_does(session: Session, flag: Any) -> None:
    loop = Loop(session, flag)
    carried = CarriedCondition(True, loop.body)
    op = loop.record()
    carried.finish(session, op, loop.end)
    run = shown(session, carried.after.operand(session))
    for inputs in every("first", "again"):
        assert run(**inputs) == (loop.count(inputs) == 0,)


def test_a_body_that_ends_leaves_nothing(session: Session, flag: Any) -> None:
    loop = Loop(session, flag)
    value = LoopValue(BOOL, True, loop.body)
    value.next = lambda: 1 / 0
    value.finish(session, loop.record(), PathEnd(loop.body, True))
    value.after.demand(session)
    assert loop.body.block.yields[-1] is UNDEF
