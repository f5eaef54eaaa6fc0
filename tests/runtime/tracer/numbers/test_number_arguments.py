"""Tensors where PyTorch takes a number: of one that needs a gradient it does not take the item."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from dy2static import TraceError
from runtime.tracer.numbers.number_arguments import NeedsGradient, called, require_no_gradient


def test_which_tensors_are_taken(session: Any, given: Any) -> None:
    require_no_gradient(session, given("t"))
    with pytest.raises(NeedsGradient):
        require_no_gradient(session, given("u", requires_grad=True))
    assert not issubclass(NeedsGradient, Exception), "no handler of the user's sees it"


def test_a_gradient_on_some_paths_is_refused(session: Any, given: Any) -> None:
    tensor = given("t", requires_grad=True)
    session.info(tensor).grad_in_some_runs = True
    with pytest.raises(TraceError) as caught:
        require_no_gradient(session, tensor)
    assert caught.value.code == "D2S239"


def test_nothing_is_asked_while_a_call_is_made_again(session: Any, given: Any) -> None:
    tensor = given("t", requires_grad=True)
    session.replaying = object()
    require_no_gradient(session, tensor)


def test_a_call_is_made_again_where_tensors_show_what_they_need(session: Any, given: Any) -> None:
    needs, other, large = given("t", requires_grad=True), given("u"), given("v", 2, requires_grad=True)
    shown: list[list[bool]] = []

    def function(*args: Any, **kwargs: Any) -> str:
        shown.append([one.requires_grad for one in (*args, kwargs["x"])])
        if len(shown) == 1:
            raise NeedsGradient
        return "done"

    assert called(session, function, (needs, other), {"x": large}) == "done"
    assert shown == [[False] * 3, [True, False, False]]
    assert not needs.requires_grad, "and no longer"


def test_a_call_that_takes_all_is_made_once(session: Any, given: Any) -> None:
    calls: list[Any] = []
    assert called(session, lambda *args: calls.append(args), (1, given("t", requires_grad=True)), {}) is None
    assert len(calls) == 1


def test_errors_that_name_no_symbol_stay(session: Any) -> None:
    def function() -> None:
        raise error

    error = TypeError("not that")
    with pytest.raises(TypeError) as caught:
        called(session, function, (), {})
    assert caught.value is error
    with pytest.raises(TypeError, match="must be") as caught:
        called(session, torch.relu, (torch.SymInt,), {})
