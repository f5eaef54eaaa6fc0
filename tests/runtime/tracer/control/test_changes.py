"""What a path changed of what is older than itself, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from runtime.tracer.control.branches import Path, trace_path
from runtime.tracer.control.changes import Older, written_at
from runtime.tracer.python_state.journal import Place
from tests.runtime.tracer.control.staging import Local, Staging


class Box:
    def __init__(self, value: Any) -> None:
        self.value = value


def traced(staging: Staging, run: Any, *values: Any) -> tuple[Older, Path]:
    """What there was before ``run``, and the path of it."""
    older = Older(staging.session, [run], values)
    return older, trace_path(staging.session, "recursion", Local(), run)


def owners(found: tuple[Older, Path]) -> list[Any]:
    older, path = found
    return [place.owner for place in older.places(path)]


CHANGES = {
    "append": (lambda: [1], lambda held: held.append(2)),
    "another item": (lambda: [1], lambda held: held.__setitem__(0, 2)),
    "the same number as another kind": (lambda: [1], lambda held: held.__setitem__(0, True)),
    "order": (lambda: [1, 2], lambda held: held.reverse()),
    "a key": (lambda: {"a": 1}, lambda held: held.update(b=1)),
    "a value": (lambda: {"a": 1}, lambda held: held.update(a=None)),
    "order of keys": (lambda: {"a": 1, "b": 2}, lambda held: held.update(a=held.pop("a"))),
    "an element": (lambda: {1}, lambda held: held.add(2)),
    "emptied": (lambda: [[]], lambda held: held.clear()),
}  # fmt: skip


@pytest.mark.parametrize("kind", CHANGES)
def test_containers(kind: str, staging: Staging) -> None:
    make, change = CHANGES[kind]
    held, untouched = make(), make()

    def run() -> None:
        staging.change(held, change)
        staging.change(untouched, lambda one: None)
        made = make()
        staging.change(made, change)

    found = traced(staging, run)
    assert len(owners(found)) == 1 and owners(found)[0] is held


@pytest.mark.parametrize("make", [lambda: [1, [2]], lambda: {"a": 1}, lambda: {1, 2}], ids=["list", "dict", "set"])
def test_what_is_put_back_is_no_change(make: Any, staging: Staging) -> None:
    held, box = make(), staging.new(Box(1))

    def run() -> None:
        before = held.copy()
        staging.change(held, lambda one: one.clear())
        staging.change(held, lambda one: one.extend(before) if isinstance(one, list) else one.update(before))
        staging.store(box, "value", None)
        staging.store(box, "value", 1)

    assert owners(traced(staging, run)) == []


@pytest.mark.parametrize("value", [None, 2, 1.0, True, "1", (1,), [1]], ids=repr)
def test_attributes(value: Any, staging: Staging) -> None:
    box = staging.new(Box(1))

    def run() -> None:
        staging.store(box, "value", value)
        staging.store(staging.new(Box(1)), "value", value)

    assert owners(traced(staging, run)) == [box]


def test_a_variable_of_a_function_around(staging: Staging) -> None:
    count = 1

    def reads() -> int:
        return count

    (cell,) = reads.__closure__ or ()
    place = Place("attribute", cell, "cell_contents")

    def run() -> None:
        staging.session.journal.write(place, 2)
        made = lambda: made  # a cell that the path makes
        (own,) = made.__closure__ or ()
        staging.session.journal.write(Place("attribute", own, "cell_contents"), 3)

    older, path = traced(staging, run, reads)
    assert list(older.places(path)) == [place] and count == 1


def test_what_there_was(staging: Staging) -> None:
    rows, box = [[1]], staging.new(Box({"a": 1}))
    rest: tuple[Any, ...] = ({2},)
    older = Older(staging.session, [lambda: rows], rest)
    assert all(map(older.has, (rows, rows[0], box, box.value, rest[0])))
    made, another = staging.new(Box(1)), [1]
    assert not older.has(made) and not older.has(another)
    assert older.is_new(Place("content", another)) and older.is_new(Place("attribute", made, "value"))
    assert not older.is_new(Place("content", rows[0])) and not older.is_new(Place("attribute", box, "value"))


def test_memory(staging: Staging) -> None:
    x, y = staging.given("x y")
    session = staging.session
    z = y * 2
    before = session.info(y).storage.value

    def run() -> Any:
        x[1:].add_(1)
        made = z * 2
        made.add_(1)
        return made, z + 1

    older, path = traced(staging, run)
    ((storage, value),) = older.written(path)
    assert storage is session.info(x).storage and value is path.storages[storage] and value is not storage.value
    assert session.info(y).storage.value is before


def test_no_write_is_none(staging: Staging) -> None:
    x = staging.given("x")
    older, path = traced(staging, lambda: x * 2)
    assert list(older.written(path)) == []


def test_the_callers_memory_that_the_path_met_first(staging: Staging) -> None:
    def run() -> None:
        staging.session.inputs.lift(FROM_OUTSIDE).add_(1)
        staging.session.inputs.lift(ANOTHER) * 2

    older, path = traced(staging, run)
    ((storage, _),) = older.written(path)
    assert storage.label != "" or storage.origin is not None
    assert staging.session.inputs.real(storage.origin) is FROM_OUTSIDE  # type: ignore[arg-type]


FROM_OUTSIDE, ANOTHER = torch.ones(3), torch.ones(3)


def test_where_memory_was_written(staging: Staging) -> None:
    """The write itself, also where a branch around it gave the value."""
    x, y = staging.given("x y")

    def write() -> None:
        y.mul_(3)

    def run() -> None:
        x.sum()
        x.add_(1)
        staging.branch(x.sum() > 0, Local(), write, lambda: None)

    older, path = traced(staging, run)
    found = {storage.label: written_at(path.scope.block, value) for storage, value in older.written(path)}
    assert {name: place.text.strip() for name, place in found.items() if place is not None} == {
        "x": "x.add_(1)", "y": "y.mul_(3)",
    }  # fmt: skip
    assert written_at(path.scope.block, staging.session.info(x).storage.value) is None, "nobody in the Block gave it"
