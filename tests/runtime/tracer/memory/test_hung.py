"""What users hang on tensors, and what a trace asks the caller's: the answers are what the Program rests on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from runtime.errors import TraceError
from runtime.ir import ScalarType
from runtime.tracer.ambient.closing import CannotBeOpen
from runtime.tracer.memory import aliases, hung
from runtime.tracer.memory.conditions import ALWAYS, when
from runtime.tracer.memory.storage_table import note_unknown_alias
from runtime.tracer.python_state.journal import MISSING
from runtime.tracer.recording.session import Session

Tensor = torch.Tensor


@pytest.fixture
def x(given: Any) -> Tensor:
    return given("x", 3)


@pytest.fixture
def sometimes(session: Session, made: Any) -> Callable[..., Tensor]:
    """``sometimes(tensor)``: one that is this tensor on some path, or ``steps`` of it."""
    def make(tensor: Tensor, *steps: Any, always: bool = False) -> Tensor:
        found = made(lambda: torch.zeros(3))
        flag = session.new_variable(ScalarType("bool"), "flag")
        aliases.add(session.info(found).storage, session.info(tensor).storage, steps, ALWAYS if always else when(flag))
        return found

    return make


def hang(session: Session, tensor: Tensor, name: str, value: Any) -> None:
    hung.note(session, tensor, name)
    setattr(tensor, name, value)


def take_off(session: Session, tensor: Tensor, name: str) -> None:
    hung.note(session, tensor, name)
    delattr(tensor, name)


# -- what hangs


def test_nothing_hangs_at_first(session: Session, x: Tensor) -> None:
    x.of_ours = 1  # type: ignore[attr-defined]
    assert not hung.has(session, x, "of_ours") and hung.names(session, x) == [] == hung.holders(session)
    assert hung.noted(session, x) == set() and not hung.was_taken_off(session, x, "of_ours")
    assert hung.retains(session, x) is False


def test_what_was_hung_and_taken_off(session: Session, x: Tensor) -> None:
    hang(session, x, "note", 1)
    hang(session, x, "a", 2)
    assert hung.names(session, x) == ["a", "note"] and hung.has(session, x, "a") and not hung.has(session, x, "b")
    take_off(session, x, "note")
    assert hung.names(session, x) == ["a"] and hung.noted(session, x) == {"a", "note"}
    assert hung.was_taken_off(session, x, "note") and not hung.was_taken_off(session, x, "a")
    assert not hung.has(session, x, "note") and hung.holders(session) == [x]


def test_a_path_puts_back_what_it_hung(session: Session, x: Tensor) -> None:
    hang(session, x, "before", 0)
    session.journal.open()
    hang(session, x, "note", 1)
    hang(session, x, "before", 5)
    found = session.journal.close()
    assert {place.name: value for place, value in found.items()} == {"note": 1, "before": 5}
    assert vars(x)["before"] == 0 and hung.names(session, x) == ["before"]


def test_a_gradient_that_is_retained(session: Session, given: Any, made: Any) -> None:
    y = made(lambda w: w * 2, given("w", 3, requires_grad=True))
    made(lambda: y.retain_grad())
    assert hung.retains(session, y) is True and hung.names(session, y) == [hung.RETAINS]
    assert [one is y for one in hung.holders(session)] == [True]
    [stands_for] = session.graph.retaining.values()
    stands_for.retains_grad = False  # as the end of a path leaves it
    assert hung.holders(session) == [] == hung.names(session, y)


def test_the_words_of_python(session: Session, x: Tensor) -> None:
    x.own = 1  # type: ignore[attr-defined]
    assert hung.is_tracers(x, "own") and hung.is_tracers(x, "shape") and not hung.is_tracers(x, "nothing")
    assert hung.question("own")(x) == 1 and hung.question("nothing")(x) is MISSING


# -- tensors that are another one on some path


def test_memory_of_its_own_is_nobody_elses(session: Session, x: Tensor, made: Any) -> None:
    for tensor in (x, made(lambda: x * 2), made(lambda: x[1:])):
        assert hung.others(session, tensor) == []
        hung.require_sole(session, tensor, "note", writes=True)


def test_memory_that_may_be_anothers(session: Session, x: Tensor, made: Any, sometimes: Any) -> None:
    storage = session.info(x).storage
    assert hung.others(session, sometimes(x)) == [storage]
    assert hung.others(session, sometimes(x, always=True)) == [], "it is told apart by its origin"
    steps = session.info(made(lambda: x[1:])).steps
    assert hung.others(session, sometimes(x, *steps)) == [], "a view is another object"
    one, other = made(lambda: (x * 2, x * 3))
    note_unknown_alias(session.info(one).storage, session.info(other).storage, "why", None)
    assert hung.others(session, one) == [session.info(one).storage]


def test_an_attribute_of_one_of_two_is_refused(session: Session, x: Tensor, sometimes: Any, refused: Any) -> None:
    tensor = sometimes(x)
    with refused("D2S245", "hung.require_sole(", said="the attribute 'note' of a tensor that is another one"):
        hung.require_sole(session, tensor, "note", writes=True)
    hung.require_sole(session, tensor, "note", writes=False)
    hang(session, x, "note", 1)
    hung.require_sole(session, tensor, "other", writes=False)
    with refused("D2S245", "hung.require_sole("):
        hung.require_sole(session, tensor, "note", writes=False)
    take_off(session, x, "note")
    hung.require_sole(session, tensor, "note", writes=False)


def test_its_own_attribute_is_its_own(session: Session, x: Tensor, sometimes: Any) -> None:
    tensor = sometimes(x)
    hang(session, tensor, "note", 1)
    hung.require_sole(session, tensor, "note", writes=False)


def test_that_an_argument_lacks_it_is_a_condition(session: Session, sometimes: Any, refused: Any) -> None:
    plain, marked = torch.ones(3), torch.ones(3)
    marked.note = 1  # type: ignore[attr-defined]
    one, other = session.inputs.add_input(plain, "one"), session.inputs.add_input(marked, "other")
    hung.require_sole(session, sometimes(one), "note", writes=False)
    [(name, question, answer)] = session.inputs.asked[session.info(one).storage.origin].values()
    assert name == "note" and question(plain) is answer is MISSING and question(marked) == 1
    assert session.guards.copy() == {}
    with refused("D2S245", "hung.require_sole("):
        hung.require_sole(session, sometimes(other), "note", writes=False)


def test_that_a_parameter_lacks_it_is_a_guard(session: Session, sometimes: Any) -> None:
    real = torch.ones(3)
    hung.require_sole(session, sometimes(session.inputs.lift(real)), "note", writes=False)
    [guard] = session.guards.freeze()
    assert guard.holds()
    real.note = 1  # type: ignore[attr-defined]
    assert not guard.holds()


# -- tensors that are let go of, or of which something is asked


def test_to_let_go_of_a_tensor_that_has_something(session: Session, x: Tensor, refused: Any) -> None:
    hung.require_none(session, x, "is carried")
    hang(session, x, "note", 1)
    with refused("D2S245", "hung.require_none(", said="a tensor with the attribute 'note' is carried"):
        hung.require_none(session, x, "is carried", retained=True)


def test_to_let_go_of_one_whose_gradient_is_retained(session: Session, given: Any, made: Any, refused: Any) -> None:
    y = made(lambda w: w * 2, given("w", 3, requires_grad=True))
    made(lambda: y.retain_grad())
    hung.require_none(session, y, "is carried", retained=True)
    with refused("D2S245", "hung.require_none(", said="a tensor whose gradient is retained is carried"):
        hung.require_none(session, y, "is carried")
    hang(session, y, "note", 1)
    with refused("D2S245", "hung.require_none(", said="the attribute 'note'"):
        hung.require_none(session, y, "is carried", retained=True)


def test_a_gradient_that_is_retained_on_some_path(session: Session, given: Any, made: Any, refused: Any) -> None:
    y = made(lambda w: w * 2, given("w", 3, requires_grad=True))
    hung.require_told(session, y, "is asked")
    hung.require_told(session, torch.ones(3), "is asked")
    session.info(y).perhaps_retains = True
    with refused("D2S245", "hung.require_told(", said="retained on some path, or in some iteration, is asked"):
        hung.require_told(session, y, "is asked")
    made(lambda: y.retain_grad())
    hung.require_told(session, y, "is asked")


def test_a_tensor_that_is_an_argument_or_a_copy(session: Session, x: Tensor, refused: Any) -> None:
    hung.require_certain(session, x, "the class")
    hung.require_certain(session, torch.ones(3), "the class")
    session.info(x).perhaps_itself = True
    with refused("D2S213", "hung.require_certain(", said="the class of a tensor that is an argument itself or a copy"):
        hung.require_certain(session, x, "the class")


# -- questions to the caller's tensors


def is_long(tensor: Tensor) -> bool:
    return len(tensor) > 2


def test_an_argument_is_asked_once(session: Session, x: Tensor) -> None:
    assert hung.ask(session, x, "is long", is_long) is True
    assert hung.ask(session, x, "is long", lambda tensor: False) is False
    [(name, question, answer)] = session.inputs.asked[session.read(x)].values()
    assert (name, question, answer) == ("is long", is_long, True), "the first answer counts"


def test_a_tensor_of_the_trace_is_not_asked(session: Session, x: Tensor, made: Any) -> None:
    for tensor in (made(lambda: x * 2), made(lambda: x[:]), torch.ones(3)):
        assert hung.ask(session, tensor, "is long", is_long) is MISSING
    assert session.inputs.asked == {}


class Owner:
    held: Any


@pytest.mark.parametrize("found", [True, False])
def test_a_parameter_is_asked_anew_at_each_call(found: bool, session: Session) -> None:
    owner, real = Owner(), torch.ones(3)
    owner.held = real
    if found:
        session.inputs.hint_source(real, owner, "held", "self.held")
    session.inputs.lift(real)
    assert hung.ask(session, real, "is long", is_long) is hung.ask(session, real, "is long", is_long) is True
    [guard] = session.guards.freeze()
    assert guard.holds()
    owner.held = torch.ones(1)
    assert guard.holds() != found, "without a place it is this very tensor"
    owner.held = torch.ones(5)
    assert guard.holds()
    del owner.held
    assert guard.holds() != found


@pytest.mark.parametrize("answers, alike", [
    ((1, 1), True), ((1, True), False), ((1, 1.0), False), (([1], [1]), True), ((None, None), True),
    ((float("nan"), float("nan")), False), ((MISSING, MISSING), True), (("a", "b"), False), (((1, 2), [1, 2]), False),
])  # fmt: skip
def test_answers_that_are_the_same(answers: tuple[Any, Any], alike: bool) -> None:
    assert hung.same(*answers) is alike and hung.same(answers[0], answers[0])


def test_an_item_of_a_list_that_is_open_is_not_asked(session: Session, x: Tensor, made: Any) -> None:
    tensor, free = made(lambda: (x * 2, x * 3))
    storage = session.info(tensor).storage

    class Items:
        def may_hold(self, one: Any) -> bool:
            return one is storage

    session.containers.open_alias_sets.append((Items(), False))  # type: ignore[arg-type]
    with pytest.raises(CannotBeOpen, match="an item of a list among the arguments is asked for 'is long'"):
        hung.ask(session, tensor, "is long", is_long)
    assert hung.ask(session, free, "is long", is_long) is MISSING and hung.ask(session, x, "is long", is_long) is True


def test_the_class_of_an_argument(session: Session, x: Tensor, made: Any, refused: Any) -> None:
    p = session.inputs.add_input(torch.nn.Parameter(torch.ones(3)), "p")
    for tensor in (x, p, made(lambda: x * 2)):
        hung.ask_class(session, tensor)
    answers = [answer for questions in session.inputs.asked.values() for _, _, answer in questions.values()]
    assert answers == [False, True]
    session.info(x).perhaps_itself = True
    with refused("D2S213", "hung.ask_class("):
        hung.ask_class(session, x)


def test_the_class_of_what_an_operator_gave_back(session: Session, made: Any) -> None:
    p = session.inputs.add_input(torch.nn.Parameter(torch.ones(3)), "p")
    itself = made(lambda: p.float())
    hung.ask_class(session, itself)
    assert list(session.inputs.asked) == [session.read(p)]


def offset(tensor: Tensor) -> int:
    return tensor.storage_offset()


def test_memory_is_asked_of_whose_it_is(session: Session, x: Tensor, made: Any, refused: Any) -> None:
    view, copy = made(lambda: (x[1:], x * 2))
    assert hung.ask_memory(session, view, "offset", offset) == 0
    assert hung.ask_memory(session, copy, "offset", offset) is MISSING
    assert list(session.inputs.asked) == [session.read(x)]
    session.inputs._reals.clear()  # as of arguments that are views of one base
    with refused("D2S213", "hung.ask_memory(", said=".offset of a tensor in memory that several arguments share"):
        hung.ask_memory(session, view, "offset", offset)


def test_an_error_has_its_place(session: Session) -> None:
    error = hung.perhaps_retained(session, "is asked")
    assert isinstance(error, TraceError) and error.code == "D2S245" and error.location is not None
