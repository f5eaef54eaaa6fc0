"""One path on its own: what it recorded and left is told, and everything else is as it was before it."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from runtime.errors import TraceError
from runtime.tracer.ambient.calls import Findings, Restart
from runtime.tracer.control import branches
from runtime.tracer.control.branches import PathEnds, is_alone, trace_path
from runtime.tracer.python_state.journal import Place
from runtime.tracer.recording.session import Scope
from tests.runtime.tracer.control.staging import Local, Staging

FROM_OUTSIDE = torch.ones(3)


class Box:
    def __init__(self, value: Any) -> None:
        self.value = value


def test_what_a_path_changes_is_told_and_put_back(staging: Staging) -> None:
    x, y = staging.given("x y")
    session = staging.session
    box, rows, table = staging.new(Box(1)), [x], {"a": (1, None)}
    local = Local(y=y, n=1, flag=True, word="a")
    before = session.storages.snapshot()

    def run() -> str:
        local.y, local.n, local.flag, local.word = y * 2, 2, False, "b"
        staging.store(box, "value", x)
        staging.change(rows, lambda held: held.append(local.y))
        staging.change(table, lambda held: held.update(b=1.5))
        x[:1].add_(1)
        return "result"

    path = trace_path(session, "cond", local, run)
    made = path.names[0]
    assert local.get() == (y, 1, True, "a") and local.y is y
    assert box.value == 1 and len(rows) == 1 and rows[0] is x and table == {"a": (1, None)}
    now = session.storages.snapshot()
    assert all(now[storage] is value for storage, value in before.items()) and session.program.block.ops == []

    assert path.names[1:] == (2, False, "b") and path.result == "result" and not path.ended
    assert path.places[Place("attribute", box, "value")] is x
    assert path.places[Place("content", rows)][-1] is made
    assert path.places[Place("content", table)] == {"a": (1, None), "b": 1.5}
    storage = session.info(x).storage
    assert path.storages[storage] is not before[storage]
    of_y = session.info(y).storage
    assert path.storages[of_y] is before[of_y]
    assert [op.name for op in path.scope.block.ops] == ["aten.mul.Tensor", "aten.slice.Tensor", "update"]
    held = list(path.held())
    assert all(any(one is other for other in held) for one in (made, "result", x, 1.5))


def test_inside_a_path_all_is_as_at_its_end(staging: Staging) -> None:
    x = staging.given("x")
    session, box, rows = staging.session, staging.new(Box(None)), [1]

    def run() -> None:
        staging.store(box, "value", x.add_(1))
        staging.change(rows, lambda held: held.clear())

    path = trace_path(session, "cond", Local(), run)
    count = len(path.scope.block.ops)
    storage = session.info(x).storage
    before = storage.value
    with path.inside(session):
        assert box.value is x and rows == [] and storage.value is path.storages[storage]
        assert session.scope is path.scope
        x.sum()
    assert len(path.scope.block.ops) == count + 1
    assert box.value is None and rows == [1] and storage.value is before and session.program.block.ops == []


def test_inside_is_left_when_something_raises_there(staging: Staging) -> None:
    session, rows = staging.session, [1]
    path = trace_path(session, "cond", Local(), lambda: staging.change(rows, lambda held: held.clear()))
    with pytest.raises(KeyError), path.inside(session):
        raise KeyError
    assert rows == [1] and session.scope.parent is None


def test_an_exception_ends_a_path_with_a_raise(staging: Staging) -> None:
    x = staging.given("x")
    local = Local(n=1)

    def run() -> None:
        local.n = 2
        x.add_(1)
        raise ValueError("why")

    storage = staging.session.info(x).storage
    before = storage.value
    path = trace_path(staging.session, "cond", local, run)
    assert path.ended and path.result is None and path.names == (2,)
    assert path.scope.block.ops[-1].name == "raise" and path.storages[storage] is not before
    assert local.n == 1 and storage.value is before


def test_a_path_inside_of_which_all_end_ends_without_another_raise(staging: Staging) -> None:
    def run() -> None:
        raise PathEnds()

    path = trace_path(staging.session, "cond", Local(), run)
    assert path.ended and path.scope.block.ops == []


@pytest.mark.parametrize("error", [TraceError("no"), RecursionError("deep"), Restart(Findings())],
                         ids=lambda error: type(error).__name__)  # fmt: skip
def test_what_is_no_exception_of_the_code_goes_on_and_leaves_nothing(error: BaseException, staging: Staging) -> None:
    x = staging.given("x")
    session, rows, local = staging.session, [1], Local(n=1)
    storage = session.info(x).storage
    before, frames, pictures = storage.value, len(session.journal.frames), len(session.constructs.pictures)

    def run() -> None:
        local.n = 2
        staging.change(rows, lambda held: held.append(2))
        x.add_(1)
        raise error

    with pytest.raises(type(error)):
        trace_path(session, "cond", local, run)
    assert local.n == 1 and rows == [1] and storage.value is before
    assert (len(session.journal.frames), len(session.constructs.pictures)) == (frames, pictures)
    assert session.scope.parent is None


def test_what_the_block_begins_with_is_prepared_inside(staging: Staging) -> None:
    session, prepared = staging.session, None

    def prepare(scope: Scope) -> None:
        nonlocal prepared
        prepared = scope

    path = trace_path(session, "while_loop", Local(), lambda: (session.scope, prepared), prepare)
    assert path.result == (path.scope, path.scope)
    assert path.scope.kind == "while_loop" and path.scope.parent is session.scope


@pytest.mark.parametrize("value", [[1], {"a": 1}, {1}], ids=lambda value: type(value).__name__)
def test_a_change_that_the_journal_does_not_know_is_refused(value: Any, staging: Staging) -> None:
    local = Local(held=value)

    def run() -> None:
        value.clear()

    with pytest.raises(TraceError, match=f"a {type(value).__name__} is changed on a path that only some") as caught:
        trace_path(staging.session, "cond", local, run)
    assert caught.value.code == "D2S227" and caught.value.location is not None


MODES = {
    "gradients": (lambda: torch.set_grad_enabled(False), torch.is_grad_enabled),
    "the default dtype": (lambda: torch.set_default_dtype(torch.float64), torch.get_default_dtype),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("raises", [False, True])
def test_modes_are_as_before(mode: str, raises: bool, staging: Staging) -> None:
    """A path that raises goes nowhere, so that it may leave them as it likes."""
    change, read = MODES[mode]
    before = read()

    def run() -> None:
        change()
        if raises:
            raise ValueError

    if raises:
        assert trace_path(staging.session, "cond", Local(), run).ended
    else:
        with pytest.raises(TraceError, match="stays so after it") as caught:
            trace_path(staging.session, "cond", Local(), run)
        assert caught.value.code == "D2S227" and "with statement" in caught.value.hint
    assert read() == before


@pytest.mark.parametrize("make", [lambda: [1], dict, lambda: {"a": []}], ids=["list", "empty dict", "dict"])
def test_a_container_that_one_variable_alone_refers_to(make: Any, staging: Staging) -> None:
    session, local = staging.session, Local(n=1, held=make())
    assert is_alone(session, 1, local.get())
    also = local.held
    assert not is_alone(session, 1, local.get()), "this function refers to it as well"
    del also
    other = staging.new(Box(local.held))
    assert not is_alone(session, 1, local.get())
    staging.store(other, "value", None)
    assert is_alone(session, 1, local.get()), "the journal is none that counts"
    session.objects.externals[id(local.held)] = (None, None)
    assert not is_alone(session, 1, local.get()), "it is the caller's"


@pytest.mark.parametrize("make", [lambda: None, lambda: (1, []), lambda: {1}, lambda: Box(1)],
                         ids=["None", "tuple", "set", "object"])  # fmt: skip
def test_nothing_else_is_alone(make: Any, staging: Staging) -> None:
    assert not is_alone(staging.session, 0, Local(held=make()).get())


def test_a_container_that_paths_leave_in_other_variables(staging: Staging) -> None:
    """What the paths have is known, and counts for nobody else."""
    session, local = staging.session, Local(a=[1], b=None)

    def run() -> Any:
        local.b = local.a
        return local.a

    path = trace_path(session, "cond", local, run)
    assert is_alone(session, 0, local.get(), [path])
    assert not is_alone(session, 0, local.get()), "of this path nothing was said"


def test_variables_of_a_construct_and_of_what_surrounds_it(staging: Staging) -> None:
    session, mine, other, third = staging.session, Local(a=1, b=2), Local(), Local(c=3)
    assert branches.all_names(session, mine) is mine
    session.code.surrounding = (third, other)
    both = branches.all_names(session, mine)
    assert both.names == ("a", "b", "c") and both.get() == (1, 2, 3)
    both.set((4, 5, 6))
    assert mine.get() == (4, 5) and third.get() == (6,)
    assert both.holds(Place("attribute", third, "c")) and not both.holds(Place("attribute", Box(1), "value"))


def test_the_callers_memory_that_a_path_met_first(staging: Staging) -> None:
    session = staging.session
    entry = session.storages.snapshot()

    def run() -> Any:
        found = session.inputs.lift(FROM_OUTSIDE).add_(1)
        return session.info(found).storage, session.info(found * 2).storage

    path = trace_path(session, "cond", Local(), run)
    found, made = path.result
    assert found not in entry
    branches.include_new(entry, [path])
    assert entry[found] is found.origin and found.origin is not path.storages[found]
    assert made not in entry
