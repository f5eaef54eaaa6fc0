"""What a trace knows of autograd's graph: its own for each trace, and put back where an attempt fails."""

from __future__ import annotations

import copy
import gc
from typing import Any

import pytest

from runtime.ir import ScalarType, Variable
from runtime.tracer.ambient.session_parts import ITEMS, VALUE, states
from runtime.tracer.ambient.session_parts import KEPT as KEPT_WHATEVER
from runtime.tracer.memory.conditions import ALWAYS
from runtime.tracer.memory.graph import Graph, UsedUp
from runtime.tracer.memory.storage_table import Storage, TensorInfo
from runtime.tracer.recording.session import Session


def info() -> TensorInfo:
    return TensorInfo(Storage(Variable("v", ScalarType("bool"))))


KEPT = info()
CHANGES: dict[str, Any] = {
    "gradients": lambda graph: graph.gradients.update({1: "a"}),
    "retaining": lambda graph: graph.retaining.update({1: "a"}),
    "hooks": lambda graph: graph.hooks.update({1: "a"}),
    "hooked": lambda graph: graph.hooked.update({KEPT.storage.value: "a"}),
    "hook_records": lambda graph: graph.hook_records.update({"an Operator": "a"}),
    "hook_functions": lambda graph: graph.hook_functions.update({"hook 0": "a"}),
    "hooks_heard": lambda graph: graph.hooks_heard.add("an Operator"),
    "formulas": lambda graph: graph.formulas.update({"an Operator": "a"}),
    "used_up": lambda graph: setattr(graph, "used_up", (UsedUp(frozenset(), None, ALWAYS, {}),)),
    "leaf_changes": lambda graph: graph.leaf_changes.update({1: "a"}),
    "path_start": lambda graph: setattr(graph, "path_start", 7),
    "made_leaves": lambda graph: setattr(graph, "made_leaves", True),
    "asked_flags": lambda graph: graph.asked_flags.add(1),
    "zero_gradients": lambda graph: graph.zero_gradients.add(KEPT.storage.value),
    "bare": lambda graph: graph.bare.update({KEPT: ALWAYS}),
    "bare_in": lambda graph: graph.bare_in.update({KEPT: "scope"}),
    "gradients_asked": lambda graph: setattr(graph, "gradients_asked", 1),
    "grad_switches": lambda graph: setattr(graph, "grad_switches", 1),
    "autocast_asked": lambda graph: setattr(graph, "autocast_asked", 1),
    "detaching": lambda graph: setattr(graph, "detaching", "detach"),
    "inner": lambda graph: setattr(graph, "inner", "a tensor"),
}


def content(graph: Graph, name: str) -> Any:
    """What a field holds, as a copy."""
    return copy.copy(getattr(graph, name))


@pytest.mark.parametrize("name", CHANGES)
def test_each_trace_has_its_own(name: str) -> None:
    one, other = Graph(), Graph()
    before = content(other, name)
    assert content(one, name) == before and not before
    CHANGES[name](one)
    assert content(one, name) != before and content(other, name) == before == content(Graph(), name)


def test_every_field_says_how_it_is_put_back() -> None:
    found = dict(states(Graph()))
    assert set(found) == set(CHANGES) and set(found.values()) == {VALUE, ITEMS, KEPT_WHATEVER}
    kept_whole = {name for name, how in found.items() if how == VALUE}
    assert all(getattr(Graph(), name) in (None, False, 0, ()) for name in kept_whole)


@pytest.mark.parametrize("name", sorted(set(CHANGES) - {"leaf_changes", "asked_flags"}))  # own ones, and kept
def test_a_failed_attempt_puts_it_back(name: str, session: Session, undone: Any) -> None:
    held, before = getattr(session.graph, name), content(session.graph, name)
    with undone():
        CHANGES[name](session.graph)
        assert content(session.graph, name) != before
    assert content(session.graph, name) == before and getattr(session.graph, name) is held


def test_what_is_known_of_views_goes_with_them() -> None:
    graph, gone = Graph(), info()
    graph.bare[gone], graph.bare_in[gone] = ALWAYS, "scope"
    graph.bare[KEPT] = ALWAYS
    del gone
    gc.collect()
    assert list(graph.bare) == [KEPT] and not graph.bare_in


def test_two_gradients_through_the_same_are_two() -> None:
    one, other = UsedUp(frozenset(), None, ALWAYS, {}), UsedUp(frozenset(), None, ALWAYS, {})
    assert one != other and len({one, other}) == 2 and Graph() != Graph()
