"""Each kind of state that belongs to a path: put back after it, kept as it was at its end, and there again for it."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from runtime.ir import ScalarType, Variable
from runtime.tracer.control.path_state import (
    PathHistories,
    PathLeaves,
    PathMemory,
    PathNames,
    PathPlaces,
    PathState,
    PathUsedUp,
)
from runtime.tracer.memory.conditions import ALWAYS, NEVER, when
from runtime.tracer.python_state.journal import MISSING, Place, Undefined
from tests.runtime.tracer.control.staging import Local, Staging


class Box:
    def __init__(self, value: Any) -> None:
        self.value = value


def test_memory(staging: Staging) -> None:
    session = staging.session
    x, y = staging.given("x y")
    of_x, of_y = session.info(x).storage, session.info(y).storage
    x.add_(1)
    before = of_x.value
    state = PathMemory(session)
    state.begin()
    x[0].zero_()
    made = x * 2
    state.note()
    last = of_x.value
    x.mul_(5)  # between its end and what is put back, nothing counts
    state.undo()
    assert of_x.value is before and of_y.value is of_y.origin
    assert state.at_end[of_x] is last is not before and state.at_end[of_y] is of_y.origin
    assert session.info(made).storage in state.at_end
    y.add_(1)
    after = of_y.value
    with state.again():
        assert of_x.value is last and of_y.value is of_y.origin
    assert of_x.value is before and of_y.value is after


def test_memory_of_a_path_that_came_to_no_end(staging: Staging) -> None:
    x = staging.given("x")
    storage = staging.session.info(x).storage
    state = PathMemory(staging.session)
    state.begin()
    x.add_(1)
    state.undo()
    assert storage.value is storage.origin and storage not in state.at_end


@pytest.mark.parametrize("value", [None, 2, 2.5, True, "a", (1, [2]), {"a": 1}, Undefined("y")],
                         ids=lambda value: type(value).__name__)  # fmt: skip
def test_names(value: Any, staging: Staging) -> None:
    first = [1]
    local = Local(y=first, z=3)
    state = PathNames(staging.session, local)
    state.begin()
    local.y = value
    state.note()
    local.y = "later"
    state.undo()
    assert local.y is first and local.z == 3
    assert state.at_end[0] is value and state.at_end[1] == 3
    assert state.before == (), "it keeps nothing alive that is over"


def test_places(staging: Staging) -> None:
    box, rows, table, names = Box(1), [1, [2]], {"a": 1}, {"__name__": "m", "count": 0}
    other = Box(None)
    state = PathPlaces(staging.session)
    state.begin()
    staging.store(box, "value", [3])
    staging.store(box, "more", "text")
    staging.store(other, "value", None)
    staging.change(rows, lambda held: held.append(4))
    staging.change(table, lambda held: held.pop("a"))
    staging.session.journal.write(Place("global", names, "count"), 5)
    state.note()
    state.undo()
    assert vars(box) == {"value": 1} and rows == [1, [2]] and table == {"a": 1} and names["count"] == 0
    wanted = {
        Place("attribute", box, "value"): [3], Place("attribute", box, "more"): "text",
        Place("attribute", other, "value"): None, Place("content", rows): [1, [2], 4], Place("content", table): {},
        Place("global", names, "count"): 5,
    }  # fmt: skip
    assert state.at_end == wanted
    for _ in range(2):
        with state.again():
            assert vars(box) == {"value": [3], "more": "text"} and rows == [1, [2], 4] and table == {}
            assert names["count"] == 5
        assert vars(box) == {"value": 1} and rows == [1, [2]] and table == {"a": 1} and names["count"] == 0


def test_a_place_that_is_deleted(staging: Staging) -> None:
    box = Box(1)
    state = PathPlaces(staging.session)
    state.begin()
    staging.session.journal.write(Place("attribute", box, "value"), MISSING)
    assert vars(box) == {}
    state.undo()
    assert box.value == 1
    with state.again():
        assert vars(box) == {}
    assert box.value == 1


def test_places_of_a_path_inside_of_a_path(staging: Staging) -> None:
    rows: list[int] = []
    outer, inner = PathPlaces(staging.session), PathPlaces(staging.session)
    outer.begin()
    staging.change(rows, lambda held: held.append(1))
    inner.begin()
    staging.change(rows, lambda held: held.append(2))
    inner.undo()
    assert rows == [1]
    outer.undo()
    assert rows == [] and list(outer.at_end.values()) == [[1]] and list(inner.at_end.values()) == [[1, 2]]


def test_what_is_put_back_after_something_raised(staging: Staging) -> None:
    """In ``again`` too."""
    x = staging.given("x")
    box, storage = Box(1), staging.session.info(x).storage
    states: list[PathState] = [PathMemory(staging.session), PathPlaces(staging.session)]
    for state in states:
        state.begin()
    staging.store(box, "value", 2)
    x.add_(1)
    for state in states:
        state.note()
        state.undo()
    for state in states:
        with pytest.raises(KeyError), state.again():
            raise KeyError
    assert box.value == 1 and storage.value is storage.origin


def test_histories(staging: Staging) -> None:
    """Those of views that were there before; what a path itself notes of others is no part of it."""
    m = staging.given("m")
    session = staging.session
    bare = session.graph.bare
    older, view = session.info(m[0]), m[1]
    flag = when(Variable("flag", ScalarType("bool")))
    bare[older] = ALWAYS
    state = PathHistories(session)
    state.begin()
    bare[older] = flag
    newer = session.info(view[:1])
    bare[newer] = ALWAYS
    state.note()
    state.undo()
    assert bare[older] == ALWAYS and state.at_end[older] == flag and newer not in state.at_end
    bare[older] = NEVER
    with state.again():
        assert bare[older] == flag
    assert bare[older] == NEVER


def test_graphs_that_gradients_have_used_up(staging: Staging) -> None:
    w = staging.given("w")
    graph = staging.session.graph
    torch.autograd.grad((w * w).sum(), w)
    before = graph.used_up
    assert len(before) == 1
    state = PathUsedUp(staging.session)
    state.begin()
    torch.autograd.grad((w.exp() * w).sum(), w)
    state.note()
    state.undo()
    assert graph.used_up == before
    assert state.at_end[:1] == before and len(state.at_end) == 2


def test_a_tensor_that_a_path_made_a_leaf(staging: Staging) -> None:
    x = staging.given("x")
    session = staging.session
    y = x * 2
    state = PathLeaves(session)
    before = session.graph.path_start
    state.begin()
    assert session.graph.path_start > before or session.graph.leaf_changes == {}
    y.requires_grad_()
    assert session.info(y).requires_grad
    state.undo()
    assert len(state.at_end) == 1 and not session.info(y).requires_grad and not y.requires_grad
    assert session.graph.path_start == before and session.graph.leaf_changes == {}


def test_a_kind_without_steps_does_nothing(staging: Staging) -> None:
    state = PathState(staging.session)
    before = dict(vars(state))
    state.begin()
    state.note()
    state.undo()
    with state.again():
        pass
    assert vars(state) == before
