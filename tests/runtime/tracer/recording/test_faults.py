"""Whose fault an exception is: what is told by where it was raised, by what it says, and by the real operator."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import pytest
import torch

from runtime.errors import Dy2StaticError, InternalError, ProgramError, TraceError
from runtime.tracer.ambient.calls import Findings, Restart
from runtime.tracer.ambient.theirs import theirs
from runtime.tracer.memory.conditions import ALWAYS, when
from runtime.tracer.numbers.scalars import StagedInt
from runtime.tracer.recording import faults, raising, reads
from runtime.tracer.recording.session import Session


def caught(function: Callable[..., Any], *args: Any) -> BaseException:
    """What a call raises."""
    with pytest.raises(BaseException) as found:  # whatever it is
        function(*args)
    return found.value


def a_raise(text: str) -> None:
    raise ValueError(text)


def test_what_the_users_code_raises_is_the_users() -> None:
    assert not faults.is_ours(caught(a_raise, "no"))
    assert not faults.is_ours(caught(lambda: {}["k"]))
    assert not faults.is_ours(caught(lambda: 1 / 0))
    assert not faults.is_ours(caught(torch.ones(2).view, 3))


def test_what_our_own_code_meets_by_itself_is_ours() -> None:
    """A mistake in a function of ours, whether Python or a library notices."""
    assert faults.is_ours(caught(reads.tolist, None, None))
    assert faults.is_ours(caught(when(3).replaced, None))  # type: ignore[arg-type]


def test_what_is_done_in_the_users_name_is_the_users() -> None:
    assert not faults.is_ours(caught(theirs, operator.getitem, {}, "k"))
    assert not faults.is_ours(caught(theirs, operator.truediv, 1, 0))


def test_what_our_own_code_raises_on_purpose_is_the_users(session: Session, given: Any) -> None:
    assert not faults.is_ours(caught(reads.item, session, given("x", 3)))
    assert not faults.is_ours(caught(reads.index, session, given("y")))


def test_words_that_no_message_of_eagers_has() -> None:
    """Python's own messages with them are said of our stand-ins; an exception of the user's may say what it wants."""
    assert faults.is_ours(caught(lambda: getattr(StagedInt, "nothing of that name")))
    assert not faults.is_ours(caught(a_raise, "a SymInt, which the user knows"))


@pytest.mark.parametrize("error", [TraceError("no"), InternalError("no"), Dy2StaticError("no")])
def test_located_errors_are_neither(error: Exception) -> None:
    assert not faults.is_ours(caught(operator.methodcaller("throw", error), (_ for _ in ())))


def test_a_program_that_does_not_hold_is_ours() -> None:
    assert faults.is_ours(ProgramError("malformed"))


def test_what_the_real_operator_raises_as_well_is_the_users() -> None:
    error = caught(reads.tolist, None, None)
    assert faults.is_ours(error) and not faults.is_vetted(error) and not faults.is_torchs(error)
    faults.vet(error)
    assert not faults.is_ours(error) and faults.is_vetted(error) and faults.is_torchs(error)
    same = type(error)(*error.args)
    assert not faults.is_vetted(same), "it is this very exception"


def test_only_the_last_ones_are_remembered() -> None:
    first = ValueError("first")
    faults.vet(first)
    for number in range(7):
        faults.vet(ValueError(number))
    assert faults.is_vetted(first)
    faults.vet(ValueError("last"))
    assert not faults.is_vetted(first)


def test_what_comes_of_torchs_code() -> None:
    def in_python() -> None:
        torch.nn.Module().nothing

    assert faults.is_torchs(caught(in_python)) and not faults.is_torchs(caught(a_raise, "no"))


def test_a_fault_of_ours_is_located(session: Session, refused: Any) -> None:
    error = caught(reads.tolist, None, None)
    with refused("D2S290", "faults.require_users(session, error)", said="a fault of dy2static"):
        faults.require_users(session, error)
    assert isinstance(session.exceptions.last_error, InternalError)
    faults.require_users(session, caught(a_raise, "no"))


def test_the_error_for_a_fault_says_what_it_was() -> None:
    said = faults.internal(caught(a_raise, "x" * 400)).summary
    assert said == f"a fault of dy2static while this was traced: ValueError: {'x' * 300}..."
    assert faults.internal(KeyError()).summary.endswith("KeyError: no message")
    assert faults.internal(ProgramError("malformed")).summary.endswith("ProgramError: malformed")


def test_a_guarded_block(session: Session) -> None:
    users, ours = caught(a_raise, "no"), caught(reads.tolist, None, None)
    with pytest.raises(ValueError) as kept, faults.guarded(session):
        raise users
    assert kept.value is users
    with pytest.raises(InternalError) as found, faults.guarded(session):
        theirs(reads.tolist, None, None)
    assert found.value.code == "D2S290" and type(found.value.__cause__) is type(ours)
    with pytest.raises(InternalError), faults.guarded():
        raise RecursionError
    with pytest.raises(KeyboardInterrupt), faults.guarded(session):
        raise KeyboardInterrupt


def test_an_endless_way_in_the_tracer() -> None:
    """None of the last calls is the user's."""
    def round_and_round() -> None:
        round_and_round()

    assert not faults.in_tracer(caught(round_and_round))
    error = caught(reads.tolist, None, None)
    assert not faults.in_tracer(error)
    while error.__traceback__ is not None and error.__traceback__.tb_frame.f_code.co_filename == __file__:
        error.__traceback__ = error.__traceback__.tb_next
    assert faults.in_tracer(error)


def test_what_nobody_of_the_traced_code_raised() -> None:
    def interrupts() -> None:
        raise KeyboardInterrupt

    assert faults.comes_of_code(caught(a_raise, "no")) and faults.comes_of_code(caught(interrupts))
    assert not faults.comes_of_code(caught(lambda: (_ for _ in ()).throw(KeyboardInterrupt())))
    assert not faults.comes_of_code(GeneratorExit()) and not faults.comes_of_code(Restart(Findings()))
    assert faults.comes_of_code(SystemExit())


def test_what_is_raised_for_the_user_on_every_path_is_the_users(session: Session) -> None:
    assert not faults.is_ours(caught(raising.raise_where, session, ALWAYS, KeyError("k")))
