"""The modes and settings around a call: what is in force outside, and what is a region's of its own."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from runtime import torch_internals
from runtime.tracer.ambient.outside import Outside
from runtime.tracer.ambient.session_parts import KEPT, VALUE, states
from runtime.tracer.recording.session import Session


def test_what_is_in_force_where_the_trace_begins() -> None:
    for enabled in (True, False):
        with torch.set_grad_enabled(enabled):
            assert Outside().grad is enabled
    plain = Outside()
    with torch.autocast("cpu", torch.bfloat16, cache_enabled=False):
        cast = Outside()
    assert plain.autocast != cast.autocast and plain.cache is True and cast.cache is False
    assert plain.autocast == Outside().autocast and ("cpu", True) in [one[:2] for one in cast.autocast]
    with torch.autograd.graph.saved_tensors_hooks(lambda one: one, lambda one: one):
        assert Outside().hooks is not None
    assert plain.hooks is None


def test_settings_of_pytorch() -> None:
    before = Outside().settings
    assert Outside().settings == before
    torch.backends.cudnn.deterministic, kept = True, torch.backends.cudnn.deterministic
    try:
        assert Outside().settings != before
    finally:
        torch.backends.cudnn.deterministic = kept


def test_how_its_fields_are_put_back(session: Session, undone: Any) -> None:
    found = dict(states(Outside()))
    assert {name for name, how in found.items() if how == KEPT} == {"asks_gradients", "asked_settings"}
    assert set(found.values()) == {KEPT, VALUE}
    with undone():
        session.outside.grad = not session.outside.grad
        session.outside.unknown_autocast = 3
        session.outside.asks_gradients = True
        session.outside.asked_settings.add("autocast")
    assert session.outside.grad is True and session.outside.unknown_autocast is None
    assert session.outside.asks_gradients and session.outside.asked_settings == {"autocast"}, "asked is asked"
    assert Outside().asked_settings == set()


@pytest.mark.parametrize("enabled", [True, False])
def test_the_forward_of_a_users_function(enabled: bool) -> None:
    """As eager runs it: without gradients, whatever is outside."""
    seen = []

    class Own(torch.autograd.Function):
        @staticmethod
        def forward(ctx: object, x: torch.Tensor) -> torch.Tensor:
            seen.append(torch.is_grad_enabled())
            return x.clone()

    with torch.set_grad_enabled(enabled):
        outside = Outside()
        Own.apply(torch.ones(1))
        with outside.of_forward():
            assert outside.grad is False is torch.is_grad_enabled() is seen[0]
            with outside.of_forward():
                assert outside.grad is False
        assert outside.grad is enabled is torch.is_grad_enabled()
        with pytest.raises(ValueError), outside.of_forward():
            raise ValueError
        assert outside.grad is enabled is torch.is_grad_enabled()


def test_backward_runs_later_under_a_state_of_its_own() -> None:
    with torch.autocast("cpu", torch.bfloat16):
        outside = Outside()
        before = outside.autocast
        assert outside.is_own(before) and torch.mm(torch.ones(1, 1), torch.ones(1, 1)).dtype is torch.bfloat16
        with outside.of_backward():
            inside = outside.autocast
            assert not any(enabled for _, enabled, _ in inside) and inside == torch_internals.autocast_state()
            assert torch.mm(torch.ones(1, 1), torch.ones(1, 1)).dtype is torch.float32
            assert outside.is_own(inside) and not outside.is_own(before)
            with torch.autocast("cpu", enabled=False):
                assert not outside.is_own(inside), "the user's code says so, whatever is outside"
            assert outside.is_own(inside)
        assert outside.autocast == before and outside.unknown_autocast is None
        with pytest.raises(ValueError), outside.of_backward():
            raise ValueError
        assert outside.autocast == before and torch_internals.autocast_state() == before


def test_a_region_that_changes_nothing_is_what_is_outside() -> None:
    outside = Outside()
    with torch.autocast("cpu", enabled=False):
        assert outside.is_own(torch_internals.autocast_state())
    with torch.autocast("cpu", torch.bfloat16):
        assert not outside.is_own(torch_internals.autocast_state())
