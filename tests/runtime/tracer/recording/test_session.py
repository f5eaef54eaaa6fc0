"""The session itself: names, Blocks, what may be read where, what a tensor stands for, and the errors it words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from runtime.errors import TraceError
from runtime.ir import Assume, Operator, ScalarType, TensorType, Variable
from runtime.tracer.ambient.calls import Findings, Restart
from runtime.tracer.recording.session import Scope, Session

INT = ScalarType("int")


# -- names and Blocks


def test_names_are_used_once(session: Session) -> None:
    assert [session.new_name() for _ in range(3)] == ["0", "1", "2"]
    assert [session.new_name("w") for _ in range(3)] == ["w", "w.1", "w.2"]
    assert session.new_name("self.weight[0]") == "self_weight_0"
    assert session.new_name("2nd") == "v2nd" and session.new_name("größe") == "gr__e"


@pytest.mark.parametrize(("taken", "hint", "next_one"), [("7", "", "8"), ("w.4", "w", "w.5"), ("w", "w", "w.1")])
def test_a_reserved_name_is_given_to_no_other(taken: str, hint: str, next_one: str, session: Session) -> None:
    session.reserve_name(taken)
    assert session.new_name(hint) == next_one
    session.reserve_name(taken)
    assert session.new_name(hint) != next_one, "reserving it again brings nothing back"


def test_what_a_block_may_read(session: Session) -> None:
    """Its own values and those of the Blocks around it; not those of a Block that is closed."""
    outer = session.new_variable(INT, "outer")
    with session.open("cond") as path:
        inner = session.new_variable(INT, "inner")
        assert session.visible(outer) and session.visible(inner)
        assert [one.kind for one in session.scope.chain()] == ["cond", "main"]
    assert session.visible(outer) and not session.visible(inner) and path.sees(inner)


def test_a_backward_block_reads_what_the_forward_block_made(session: Session) -> None:
    forward = Scope(session.program.block, session.scope, names={made := Variable("a", INT)})
    backward = Scope(session.program.block, session.scope, forward=forward)
    assert backward.sees(made) and not session.scope.sees(made)
    assert list(backward.chain()) == [backward, forward, session.scope]


def test_a_value_of_a_closed_block_is_refused_by_name(session: Session, refused: Any) -> None:
    with session.open("cond"):
        var = session.new_variable(INT, "row")
    with pytest.raises(TraceError, match="a number 'row' made inside a branch or loop body is used outside it"):
        session.require_visible(var, "a number")
    with refused("D2S220", "session.require_visible(var)"):
        session.require_visible(var)


def test_the_block_is_left_whatever_is_raised_in_it(session: Session) -> None:
    before = session.scope
    with pytest.raises(KeyError), session.open("cond"):
        raise KeyError
    assert session.scope is before
    with session.open("cond") as path:
        pass
    with pytest.raises(KeyError), session.reopen(path):
        assert session.scope is path and session.is_open(path)
        raise KeyError
    assert session.scope is before and not session.is_open(path)


def test_recording_before_an_operator(session: Session) -> None:
    """What is recorded stands before it, in its order, also if that is asked for again meanwhile."""
    def emit(name: str) -> Operator:
        return session.emit_operator(name, [1], types=[INT])

    emit("scalar.abs")
    late = emit("scalar.neg")
    with session.reopen(session.scope, before=late):
        emit("scalar.pos")
        with session.reopen(session.scope):
            emit("scalar.int")
            with session.reopen(session.scope, before=late):
                emit("scalar.invert")
        emit("scalar.bool")
    names = [op.name.removeprefix("scalar.") for op in session.program.block.ops]
    assert names == ["abs", "pos", "invert", "bool", "neg", "int"]
    assert session.scope.before is None and session.scope.pending == {}


# -- Operators


def test_modes_say_what_differs_from_the_caller(session: Session) -> None:
    assert session.modes() == ("inherit", None)
    with torch.no_grad():
        assert session.modes() == ("off", None)
        session.outside.grad = False
        assert session.modes() == ("inherit", None)
    assert session.modes() == ("on", None)


def test_types_and_hints_of_outputs(session: Session) -> None:
    one, other = session.emit("py_func", [], types=[INT, ScalarType("str")], hints=["n"])
    assert (one.name, one.hint, other.hint) == ("n", "n", "")
    assert one.type == INT and other.type == ScalarType("str")
    assert session.visible(one) and session.visible(other)
    (negated,) = session.emit("scalar.not_", [True])
    assert negated.type == ScalarType("bool"), "told by the operator's definition"


def test_no_handler_is_asked_of_what_does_not_raise(session: Session) -> None:
    handlers = session.exceptions.catching = [object()]  # type: ignore[list-item]
    with pytest.raises(KeyError), session.uncaught():
        assert session.exceptions.catching == []
        raise KeyError
    assert session.exceptions.catching is handlers


def test_operands_of_containers(session: Session, given: Any, number: Any) -> None:
    x, n = given("x", 2), number()
    var = session.read(x)
    assert session.operand([x, (n, 1)]) == [var, (n.var, 1)]
    assert session.operand({"a": slice(n, None, 2)}) == {"a": slice(n.var, None, 2)}
    assert session.operand(torch.Size([1, 2])) == (1, 2)


def test_a_number_of_a_closed_block_is_no_operand(session: Session, number: Any) -> None:
    with session.open("cond"):
        inner = session.scalar("add", number(), 1)
    with pytest.raises(TraceError, match="a Python int made inside a branch") as found:
        session.operand([inner])
    assert found.value.code == "D2S220"


# -- tensors


def test_a_view_is_read_anew_after_a_write(session: Session, given: Any, made: Any, recorded: Any) -> None:
    x = given("x", 2, 3)
    row = made(lambda: x.t()[0])
    assert recorded() == ["aten.t.default", "aten.select.int"]
    first = session.read(row)
    assert session.read(row) is first and recorded() == [], "nothing was written"
    made(lambda: x.add_(1))
    assert recorded() == ["update"]
    again = session.read(row)
    assert again is not first and recorded() == ["aten.t.default", "aten.select.int"]
    assert again.type == first.type and session.read(row) is again and recorded() == []


def test_a_view_that_was_read_in_a_closed_block_is_read_again(
    session: Session, given: Any, made: Any, recorded: Any
) -> None:
    x = given("x", 2, 3)
    row = made(lambda: x[0])
    made(lambda: x.add_(1))
    with session.open("cond"):
        inner = session.read(row)
    assert recorded() == ["aten.select.int", "update"]
    outer = session.read(row)
    assert outer is not inner and recorded() == ["aten.select.int"]


def test_a_tensor_of_a_finished_trace(session: Session, refused: Any) -> None:
    other = Session("g")
    foreign = other.inputs.add_input(torch.ones(2), "x")
    assert other.knows(foreign) and not session.knows(foreign)
    with refused("D2S211", "session.fake(foreign)"):
        session.fake(foreign)


def test_what_stands_for_a_value(session: Session, given: Any, made: Any) -> None:
    x, y = given("x", 2), given("y", 2, dtype=torch.float64)
    same = made(lambda: x.float())
    assert same is not x and session.itself(same) is x and session.one(same) is x
    copy = made(lambda: y.float())
    assert session.itself(copy) is copy and session.itself(3) == 3
    info, before = session.info(x), session.info(y)
    session.register(y, info)
    assert session.read(y) is session.read(x)
    session.put_back(y, before)
    assert session.read(y) is before.storage.value


def test_a_tensor_from_outside_becomes_a_parameter_once(session: Session) -> None:
    real = torch.ones(2)
    fake = session.fake(real)
    assert session.fake(real) is fake and session.info(real) is session.info(fake)
    assert [one.var for one in session.program.params] == [session.read(real)]


def test_whose_history_a_write_changes(session: Session, given: Any, made: Any) -> None:
    """The base and its views have it from then on; what is detached from it does not."""
    w = given("w", 3, requires_grad=True)
    base = made(lambda: torch.zeros(3))
    row, apart = made(lambda: (base[1:], base.detach()))
    made(lambda: base.mul_(w))
    assert [session.info(one).requires_grad for one in (base, row, apart)] == [True, True, False]
    assert not session.info(row).grad_in_some_runs


def test_memory_of_an_outer_block_needs_a_gradient_in_some_runs(session: Session, given: Any, made: Any) -> None:
    w = given("w", 3, requires_grad=True)
    base = made(lambda: torch.zeros(3))
    with session.open("cond"):
        inner = made(lambda: torch.zeros(3))
        made(lambda: (base.mul_(w), inner.mul_(w)))
    assert session.info(base).grad_in_some_runs and not session.info(inner).grad_in_some_runs


def test_a_copy_of_what_a_tensor_looks_like(session: Session, given: Any, made: Any) -> None:
    x = made(lambda one: one.t(), given("x", 2, 3))
    same, other = session.clone_meta(x), session.clone_meta(x, shape=(4,), dtype=torch.int64)
    assert (same.shape, same.stride(), same.dtype) == (x.shape, (1, 3), torch.float32)
    assert (tuple(other.shape), other.dtype) == ((4,), torch.int64) and not session.knows(same)
    assert session.type_of(same) == TensorType(torch.float32, (3, 2), session.type_of(x).device)


# -- errors and beginning again


def test_an_error_in_code_that_is_not_converted_names_the_function(session: Session) -> None:
    session.code.unconverted = [("h", "it is in C")]
    assert session.error("no").summary == "no (inside h, which was not converted: it is in C)"
    session.code.unconverted = [("h", "the source of h is not available")]
    error = session.error("no")
    assert error.summary == "the source of h is not available; so h is not converted: no"
    assert session.exceptions.last_error is error


NAME = frozenset({f"{Scope.__module__}.Scope"})
RESTARTS: dict[str, tuple[Callable[[Session], object], Findings]] = {
    "by reference": (lambda s: s.hold_by_reference(Scope), Findings(by_reference=NAME)),
    "in variables": (
        lambda s: s.hold_by_reference(Scope, in_variables=True), Findings(by_reference=NAME, in_variables=NAME),
    ),
    "apart": (lambda s: s.hold_apart(Scope), Findings(apart=NAME)),
    "whole": (lambda s: s.keep_whole(Scope), Findings(apart=NAME)),
}  # fmt: skip


@pytest.mark.parametrize("name", RESTARTS)
def test_what_begins_the_trace_again(name: str, session: Session) -> None:
    ask, known = RESTARTS[name]
    with pytest.raises(Restart) as found:
        ask(session)
    assert found.value.known == known


def test_what_is_known_begins_nothing_again(session: Session) -> None:
    session.call.known = RESTARTS["in variables"][1]
    assert session.holds_by_reference(Scope) and not session.holds_by_reference(Session)
    session.hold_by_reference(Scope, in_variables=True)
    session.call.known = RESTARTS["apart"][1]
    assert session.is_whole(Scope) and not session.holds_by_reference(Scope)
    session.keep_whole(Scope)
    session.hold_by_reference(Scope)


def test_an_iterator_that_was_advanced_lets_nothing_begin_again(session: Session) -> None:
    session.call.advanced = True
    error = session.restart(Findings(sized=frozenset({"written"})))
    assert isinstance(error, TraceError) and error.code == "D2S266"
    session.hold_by_reference(Scope)
    session.hold_apart(Scope)


def test_a_program_for_one_call(session: Session, refused: Any) -> None:
    session.once("a draw is not known")
    session.call.may_be_for_one_call = False
    with refused("D2S278", 'session.once("the time is asked")'):
        session.once("the time is asked")


def test_a_fact_is_there_once(session: Session) -> None:
    for text in ("a > 1", "a > 1", "a > 2"):
        session.add_assume(Assume(text, {}))
    assert [one.expr for one in session.program.assumes] == ["a > 1", "a > 2"]


def test_hooks_for_saved_tensors_that_the_function_sets(session: Session, given: Any, made: Any, refused: Any) -> None:
    x = given("x", 2)
    with torch.autograd.graph.saved_tensors_hooks(lambda one: one, lambda one: one):
        with refused("D2S214", "x * 2"):
            made(lambda: x * 2)
    with torch.autograd.graph.save_on_cpu():
        made(lambda: x * 2)
