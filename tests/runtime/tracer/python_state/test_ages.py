"""Whether an object is older than the trace: what is known, what its kind tells, and who refers to it."""

from __future__ import annotations

import enum
import gc
import importlib
import sys
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy
import pytest
import torch

from runtime.tracer.python_state import ages
from runtime.tracer.python_state.ages import Ages, existed_before
from runtime.tracer.python_state.journal import Place
from runtime.tracer.recording.session import Session


class Box:
    def __init__(self, held: Any = None) -> None:
        self.held = held


FROZEN: Any = types.ModuleType("frozen")


class Color(enum.Enum):
    RED = 1


def of_the_module() -> None:
    pass


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A module: what its names lead to may be old. Who refers to an object is asked of those that the test makes."""
    gc.freeze()
    monkeypatch.setattr(gc, "get_freeze_count", lambda: 0)  # so that they stay frozen
    made: Any = types.ModuleType("known")
    made.functions = []  # no module is without something that the collector looks at
    monkeypatch.setitem(sys.modules, "known", made)
    yield made
    monkeypatch.undo()
    gc.unfreeze()


def here() -> Any:
    """A function that nobody knows."""
    def inner() -> None:
        pass

    return inner


MAKES: dict[str, Callable[[], Any]] = {
    "an object": Box, "an array": lambda: numpy.ones(2), "an exception": lambda: ValueError("a"), "a function": here,
    "a class": lambda: type("Own", (), {}), "a bound method": lambda: Box().__init__, "an iterator": lambda: iter([1]),
    "a list": lambda: [[1]], "a dict": lambda: {"k": [1]}, "a set": lambda: {(1,)}, "bytes": lambda: bytearray(b"a"),
    "a generator": lambda: (one for one in [1]), "a module": lambda: types.ModuleType("m"), "a tuple": lambda: ([1],),
}  # fmt: skip


@pytest.mark.parametrize("kind", MAKES)
def test_what_nobody_else_has_is_new(kind: str, known: Any, session: Session) -> None:
    value = MAKES[kind]()
    found = existed_before(session, value)
    assert found is False or kind == "bytes" and found is None


@pytest.mark.parametrize("kind", MAKES)
@pytest.mark.parametrize("depth", [0, 3])
def test_what_a_module_leads_to_may_be_old(kind: str, depth: int, known: Any, session: Session) -> None:
    value = around = MAKES[kind]()
    for _ in range(depth):
        around = Box([around])
    known.held = around
    assert existed_before(session, value) is None
    assert Ages(session, lambda one: False).existed_before(value) is None
    del known.held, around
    if kind != "bytes":
        assert existed_before(session, value) is False


@pytest.mark.parametrize("make", [lambda: numpy.ones(2), lambda: bytearray(b"a")], ids=["array", "bytes"])
def test_what_only_the_attributes_of_an_object_lead_to(make: Any, known: Any, session: Session) -> None:
    """The collector does not look at a dict of what it does not look at itself."""
    owner = known.held = Box(make())
    assert vars(owner) and not gc.is_tracked(vars(owner))
    assert existed_before(session, owner.held) is None
    assert Ages(session, lambda one: False).existed_before(owner.held) is None


AROUND: dict[str, Callable[[Any], Any]] = {
    "a dict": lambda value: {"k": value}, "a tuple": lambda value: (value, 1),
    "in each other": lambda value: (value, 2), "attributes and a tuple": lambda value: Box((value,)),
}  # fmt: skip


@pytest.mark.parametrize("kind", AROUND)
def test_what_only_containers_lead_to_that_are_passed_over(kind: str, known: Any, session: Session) -> None:
    value = numpy.ones(2)
    known.held = AROUND[kind](value)
    if kind == "in each other":
        known.held = {"k": (known.held,)}
    gc.collect()  # which is when tuples are found to hold nothing of interest
    assert existed_before(session, value) is None
    known.held = None
    assert existed_before(session, value) is False


def test_what_is_known_to_be_old(known: Any, session: Session) -> None:
    value = Box()
    session.objects.externals[id(value)] = (value, None)
    assert existed_before(session, value) is True and Ages(session, bool).existed_before(value) is True


def test_what_is_known_to_be_new(known: Any, session: Session) -> None:
    """Whatever refers to it."""
    value = known.held = Box()
    session.objects.created[id(value)] = value
    assert existed_before(session, value) is False and Ages(session, bool).existed_before(value) is False


def test_a_class_that_gives_what_was_there(known: Any, session: Session) -> None:
    """That the trace called it tells nothing."""
    class Singleton:
        one: Any = None

        def __new__(cls) -> Any:
            cls.one = cls.one or super().__new__(cls)
            return cls.one

    known.held = Singleton
    value = Singleton()
    session.objects.created[id(value)] = value
    assert existed_before(session, value) is None
    Singleton.one = None
    assert existed_before(session, value) is False


@pytest.mark.parametrize("value", [
    3, 0.5, "a", None, torch.float32, True, len, "".join and str.join, [].append and list.append, sys, torch, Box, int,
    of_the_module, Color.RED, ..., NotImplemented, torch.add, torch.nn.functional.relu, torch.ops.aten.add.Tensor,
    int.real,
], ids=lambda one: getattr(one, "__name__", None) or str(one))  # fmt: skip
def test_what_no_call_makes(value: Any, known: Any, session: Session) -> None:
    assert existed_before(session, value) is True


def test_a_method_of_an_object_is_made_by_each_read(known: Any, session: Session) -> None:
    items: list[int] = []
    value = items.append
    assert existed_before(session, value) is False
    known.held = value
    assert existed_before(session, value) is None


def test_who_a_value_holds_is_no_matter(known: Any, session: Session) -> None:
    known.held = inner = Box()
    assert existed_before(session, Box(inner)) is False and existed_before(session, inner) is None


def test_what_the_trace_stored_is_taken_back(known: Any, session: Session) -> None:
    """An old object that holds a new one since."""
    owner, value = Box("before"), Box()
    known.held = owner
    session.journal.write(Place("attribute", owner, "held"), value)
    assert existed_before(session, value) is False
    assert owner.held is value, "it is put back"
    items = known.items = [Box()]
    (old,) = items
    session.journal.note_content(items)
    items[:] = [value]
    assert existed_before(session, value) is False and existed_before(session, old) is None
    assert len(items) == 1 and items[0] is value


def test_an_object_that_the_trace_made_holds_it(known: Any, session: Session) -> None:
    value = Box()
    owner = known.held = Box(value)
    session.objects.created[id(owner)] = owner
    assert existed_before(session, value) is False


def test_a_weak_reference_of_a_callers(known: Any, session: Session) -> None:
    """The object may be older than the trace: a variable of the caller's may hold it."""
    value, other = Box(), Box()
    known.weak = weakref.ref(value)
    mine = weakref.ref(other)
    session.objects.created[id(mine)] = mine
    assert existed_before(session, value) is None and existed_before(session, other) is False
    assert existed_before(session, type("Own", (), {})) is False, "its bases refer to it weakly"


def test_what_was_frozen_is_told_as_well(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the whole process."""
    value = FROZEN.held = Box()
    monkeypatch.setitem(sys.modules, "frozen", FROZEN)
    gc.freeze()
    assert existed_before(session, value) is None and gc.get_freeze_count() == 0
    del FROZEN.held
    assert existed_before(session, value) is False


def test_a_variable_is_as_old_as_what_it_holds_first(known: Any, session: Session) -> None:
    value = Box()
    session.objects.created[id(value)] = value
    mine = known.held = types.CellType(value)
    other, empty = types.CellType(Box()), types.CellType()
    assert existed_before(session, mine) is False and existed_before(session, other) is False
    assert existed_before(session, empty) is False
    known.held = other, empty
    assert existed_before(session, other) is None and existed_before(session, empty) is None
    session.journal.write(Place("attribute", other, "cell_contents"), value)
    assert existed_before(session, other) is None, "that was stored later"


def test_the_cell_of_converted_code_is_shared(known: Any, session: Session) -> None:
    known.held = cell = types.CellType(importlib.import_module("dy2static.operators"))
    assert existed_before(session, cell) is False


def test_a_chain_that_is_too_long_may_be_old(known: Any, session: Session) -> None:
    value = around = Box()
    for _ in range(ages._LEVELS + 2):
        around = Box(around)
    assert existed_before(session, value) is None
    del around
    gc.collect()
    assert existed_before(session, value) is False


def test_a_circle_that_nobody_knows_is_new(known: Any, session: Session) -> None:
    one, other = Box(), Box()
    one.held, other.held = other, one
    assert existed_before(session, one) is False and existed_before(session, other) is False
    known.held = other
    assert existed_before(session, one) is None
    one.held = other.held = None


# -- many together


def test_ages_are_found_together(known: Any, session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """Objects that one result leads to cost one look at the process."""
    asked: list[int] = []
    look = gc.get_referrers
    monkeypatch.setattr(gc, "get_referrers", lambda *values: asked.append(len(values)) or look(*values))
    new, old = [Box(number) for number in range(8)], [Box(number) for number in range(8)]
    known.held = list(old)
    found = Ages(session, lambda one: False)
    found.look((new, old))
    count = len(asked)
    assert [found.existed_before(one) for one in (*new, *old)] == [False] * 8 + [None] * 8
    assert len(asked) == count and count <= 4


def test_what_holds_tensors_of_the_trace_is_left_out(known: Any, session: Session) -> None:
    value, other = Box(), Box()
    known.held = value, other
    found = Ages(session, lambda one: one is value)
    found.look([value, other])
    attributes = [] if sys.version_info >= (3, 11) else [vars(value), vars(other)]  # made at once
    assert found._asked == {id(one): one for one in (other, *attributes)}
    assert found.existed_before(other) is None and found.existed_before(value) is None, "who asks is told"


@pytest.mark.parametrize("kind", MAKES)
def test_together_and_one_by_one_are_the_same(kind: str, known: Any, session: Session) -> None:
    free, held = MAKES[kind](), MAKES[kind]()
    known.held = [held]
    together = Ages(session, lambda one: False)
    together.look([Box(free), Box(held)])
    for value in (free, held):
        assert together.existed_before(value) is existed_before(session, value)


def test_what_was_asked_lives_as_long(known: Any, session: Session) -> None:
    """An identity means it so long."""
    value = Box()
    found = Ages(session, lambda one: False)
    assert found.existed_before(value) is False
    seen = weakref.ref(value)
    del value
    gc.collect()
    assert seen() is not None
    del found
    gc.collect()
    assert seen() is None
