"""Generators among the arguments: a stand-in draws what the caller's would, and is asked nothing while traced."""

from __future__ import annotations

import copy
import pickle
import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch

from runtime.tracer.ambient.closing import CannotBeOpen
from runtime.tracer.values import open_generators
from runtime.tracer.values.open_generators import Exchange, StandIn, is_default, require_told_apart, same_generator
from tests.runtime.tracer.control.staging import Staging

ASKED: dict[str, Callable[[Any], Any]] = {
    "equal": lambda one: one == 1, "other": lambda one: one != one, "hash": hash, "repr": repr,
    "a key": lambda one: {one: 1}, "its state": lambda one: one.get_state(),
    "another state": lambda one: one.set_state(torch.Generator().get_state()),
    "a seed": lambda one: one.manual_seed(1), "its seed": lambda one: one.initial_seed(),
    "any seed": lambda one: one.seed(),
}  # fmt: skip


@pytest.mark.parametrize("how", ASKED)
def test_what_may_be_asked_after_the_trace_alone(how: str) -> None:
    one = StandIn()
    with pytest.raises(CannotBeOpen):
        ASKED[how](one)
    one.tracing = False
    ASKED[how](one)


def test_it_is_never_copied() -> None:
    one = StandIn()
    one.tracing = False
    for make in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(CannotBeOpen):
            make(one)


def test_after_the_trace_it_is_a_generator() -> None:
    one, plain = StandIn(), torch.Generator()
    one.tracing = False
    assert one.manual_seed(3) is not None and one.initial_seed() == plain.manual_seed(3).initial_seed() == 3
    assert torch.equal(one.get_state(), plain.get_state())
    torch.rand(2, generator=plain)
    one.set_state(plain.get_state())
    assert torch.equal(torch.rand(2, generator=one), torch.rand(2, generator=plain))
    assert one == one and one != StandIn and hash(one) == id(one) and isinstance(one.seed(), int)


def test_operators_draw_from_it_while_it_is_traced() -> None:
    one, plain = StandIn(), torch.Generator()
    one.tracing = False
    one.manual_seed(5)
    one.tracing = True
    assert torch.equal(torch.rand(3, generator=one), torch.rand(3, generator=plain.manual_seed(5)))


def test_which_generators_are_one() -> None:
    one, other = torch.Generator(), torch.Generator()
    assert same_generator(one, one) and not same_generator(one, other)
    assert is_default(torch.default_generator) and is_default(torch.random.default_generator)
    assert not is_default(one) and not is_default(StandIn())


def test_two_generators_are_not_told_apart() -> None:
    one, other, plain = StandIn(), StandIn(), torch.Generator()
    for a, b in ((one, other), (one, plain), (plain, one)):
        with pytest.raises(CannotBeOpen):
            require_told_apart(a, b)
    for a, b in ((one, one), (plain, torch.Generator()), (one, None), (1, one)):
        require_told_apart(a, b)


def drawing(*generators: Any) -> None:
    """Let the Program draw from some generators."""
    for one in generators:
        torch.rand(2, generator=one)


def test_a_program_that_draws_from_stand_ins_alone(staging: Staging) -> None:
    one, other = StandIn(), StandIn()
    drawing(one, torch.default_generator)
    drawing(other)
    open_generators.require_alone(staging.session, [one, other], [1, "a", object()])
    assert not one.tracing and not other.tracing


def test_a_program_without_stand_ins_may_draw_from_anything(staging: Staging) -> None:
    drawing(torch.Generator())
    staging.session.emit("py_func", [], types=[])
    open_generators.require_alone(staging.session, [], [])


@pytest.mark.parametrize("how", ["another generator", "code", "a result"])
def test_a_program_that_may_draw_otherwise(how: str, staging: Staging) -> None:
    one = StandIn()
    if how == "another generator":
        drawing(one, torch.Generator())
    elif how == "code":
        staging.session.emit("py_func", [], types=[])
    with pytest.raises(CannotBeOpen):
        open_generators.require_alone(staging.session, [one], [one] if how == "a result" else [])
    assert one.tracing, "nothing may be asked of it"


def test_states_are_given_and_taken_back() -> None:
    given, plain = torch.Generator().manual_seed(7), torch.Generator().manual_seed(7)
    first, second = StandIn(), StandIn()
    first.tracing = second.tracing = False
    other, same_other = torch.Generator().manual_seed(8), torch.Generator().manual_seed(8)
    exchange = Exchange([(0, first), (2, second)])
    for _ in range(2):
        with exchange.of([given, "unused", other]):
            drawn = torch.rand(2, generator=first), torch.rand(1, generator=second)
        assert torch.equal(drawn[0], torch.rand(2, generator=plain))
        assert torch.equal(drawn[1], torch.rand(1, generator=same_other))
        assert torch.equal(given.get_state(), plain.get_state())
        assert torch.equal(other.get_state(), same_other.get_state())


def test_states_are_taken_back_after_an_error() -> None:
    given, plain = torch.Generator().manual_seed(7), torch.Generator().manual_seed(7)
    one = StandIn()
    one.tracing = False
    with pytest.raises(ValueError), Exchange([(0, one)]).of([given]):
        torch.rand(2, generator=one)
        raise ValueError
    torch.rand(2, generator=plain)
    assert torch.equal(given.get_state(), plain.get_state())


def test_one_call_after_another() -> None:
    """Another thread waits; a call inside of a call does not."""
    one = StandIn()
    one.tracing = False
    exchange, order = Exchange([(0, one)]), list[str]()
    given, begun = torch.Generator(), threading.Event()

    def other() -> None:
        begun.set()
        with exchange.of([torch.Generator()]):
            order.append("other")

    with exchange.of([given]):
        thread = threading.Thread(target=other)
        thread.start()
        begun.wait()
        with exchange.of([given]):
            order.append("inner")
        order.append("outer")
    thread.join()
    assert order == ["inner", "outer", "other"]
