"""Memory of which nobody knows what else it is: who writes it is refused, and so are those it reaches."""

from __future__ import annotations

import gc
from typing import Any

import pytest
import torch

from runtime.errors import TraceError
from runtime.ir import Location, TensorType, Variable
from runtime.tracer.ambient.calls import Findings, Restart
from runtime.tracer.memory import aliases, unknown_aliasing
from runtime.tracer.memory.conditions import ALWAYS
from runtime.tracer.memory.storage_table import Storage, StorageTable, note_overlap, note_unknown_alias
from runtime.tracer.recording.session import Session
from runtime.tracer.values.alias_sets import AliasSet, Lost

PLACE = Location("a.py", 3, 0, "f", "b = a")


class Memory:
    """Pieces of memory by name: ``memory.a`` is made when it is asked for."""

    def __init__(self, table: StorageTable) -> None:
        self._table = table

    def __getattr__(self, name: str) -> Storage:
        made = self.__dict__[name] = self._table.new(Variable(name, TensorType(torch.float32, (2,))), label=name)
        return made

    def views(self, *pairs: str) -> None:
        """``"ab"``: ``a`` is a view of ``b``."""
        for one, other in pairs:
            aliases.add(getattr(self, one), getattr(self, other), (), ALWAYS)

    def unknown(self, one: str, other: str, reason: str = "why") -> None:
        note_unknown_alias(getattr(self, one), getattr(self, other), reason, PLACE)


@pytest.fixture
def memory(session: Session) -> Memory:
    return Memory(session.storages)


def others(storage: Storage) -> set[str]:
    """What some memory may be."""
    return {other.label for unknown in storage.unknown_aliases if (other := unknown.other()) is not None}


# -- writes


def test_memory_of_which_all_is_known_may_be_written(session: Session, memory: Memory) -> None:
    memory.views("ab", "bc")
    for one in (memory.a, memory.b, memory.c):
        unknown_aliasing.require_certain(session, one)


def test_a_write_to_either_is_refused(session: Session, memory: Memory, refused: Any) -> None:
    memory.unknown("a", "b", "two views meet")
    for one in (memory.a, memory.b):
        with refused("D2S222", "unknown_aliasing.require_certain(", said="two views meet (at a.py:3)"):
            unknown_aliasing.require_certain(session, one)


def test_what_nobody_has_any_more_does_not_count(session: Session, memory: Memory) -> None:
    memory.unknown("a", "b")
    del memory.b
    gc.collect()
    unknown_aliasing.require_certain(session, memory.a)


def test_memory_is_known_to_be_itself(session: Session, memory: Memory) -> None:
    memory.unknown("a", "a")
    unknown_aliasing.require_certain(session, memory.a)
    assert not session.storages.some_unknown


def test_elements_that_are_one_memory(session: Session, memory: Memory, refused: Any) -> None:
    note_overlap(memory.a, "elements are one memory")
    with refused("D2S222", "require_certain(", said="another: elements are one memory"):
        unknown_aliasing.require_certain(session, memory.a)


def test_arguments_that_share_memory_begin_the_trace_again(session: Session) -> None:
    real = torch.ones(3)
    x, y = (session.info(session.inputs.add_input(one, name)).storage for one, name in ((real, "x"), (real[1:], "y")))
    for one in (x, y):
        with pytest.raises(Restart) as found:
            unknown_aliasing.require_certain(session, one)
        assert found.value.known == Findings(shared=frozenset({"x", "y"}))


def test_an_argument_that_overlaps_itself(session: Session) -> None:
    x = session.info(session.inputs.add_input(torch.ones(1).expand(3), "x")).storage
    with pytest.raises(Restart) as found:
        unknown_aliasing.require_certain(session, x)
    assert found.value.known == Findings(shared=frozenset({"x"}))


def test_an_argument_and_a_parameter_are_refused(session: Session, memory: Memory) -> None:
    real = torch.ones(3)
    x, y = session.info(session.inputs.add_input(real, "x")).storage, session.info(real[1:]).storage
    assert others(x) == {"constant_0"} and others(y) == {"x"}
    with pytest.raises(TraceError, match="'constant_0' and 'x' share memory"):
        unknown_aliasing.require_certain(session, x)


def test_an_item_of_a_list_that_grows(session: Session, memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the caller would see the write, it is refused; else what may be the item is lost."""
    seen: list[Storage] = []
    alias_set = AliasSet()
    memory.a.alias_sets.append((alias_set, PLACE))
    for callers in (False, True):
        monkeypatch.setattr(alias_set, "lose", lambda _, storage: seen.append(storage) or callers)  # type: ignore[func-returns-value]
        if not callers:
            unknown_aliasing.require_certain(session, memory.a)
        else:
            with pytest.raises(TraceError, match="it is an item of a list that grows \\(at a.py:3\\)"):
                unknown_aliasing.require_certain(session, memory.a)
    assert seen == [memory.a, memory.a]


def test_memory_that_is_lost(session: Session, memory: Memory) -> None:
    memory.a.lost = Lost(PLACE)
    with pytest.raises(TraceError) as found:
        unknown_aliasing.require_certain(session, memory.a)
    assert found.value.code == memory.a.lost.error(session).code


# -- copies that may be none


def test_what_may_be_a_copy_may_be_all_that_its_source_may_be(memory: Memory) -> None:
    """Upward, downward, and what those are not known of; whatever leads there."""
    memory.views("sb", "vs", "wb", "xw")
    memory.unknown("x", "u")
    memory.views("tu")
    memory.views("zy")  # apart from all of these
    unknown_aliasing.note_maybe_copy(memory.s, memory.r, "a copy or not", PLACE)
    assert others(memory.r) == {"s", "b", "v", "w", "x", "u", "t"}
    assert others(memory.s) == {"r"} and others(memory.t) == {"r"} and others(memory.z) == set()
    [unknown] = memory.s.unknown_aliases
    assert (unknown.reason, unknown.location) == ("a copy or not", PLACE)


def test_a_copy_that_is_known_to_be_one_already(memory: Memory) -> None:
    """What it is beside that is known as well."""
    memory.views("rs", "rt")
    unknown_aliasing.note_maybe_copy(memory.s, memory.r, "why", None)
    assert others(memory.r) == {"s"} and others(memory.t) == set()


def test_a_chain_of_copies(session: Session, memory: Memory, refused: Any) -> None:
    unknown_aliasing.note_maybe_copy(memory.a, memory.b, "why", None)
    unknown_aliasing.note_maybe_copy(memory.b, memory.c, "why", None)
    assert others(memory.c) == {"a", "b"}
    del memory.b
    gc.collect()
    with refused("D2S222", "require_certain("):
        unknown_aliasing.require_certain(session, memory.a)


def test_views_in_a_circle_are_gone_through_once(memory: Memory) -> None:
    memory.views("ab", "ba")
    unknown_aliasing.note_maybe_copy(memory.a, memory.r, "why", None)
    assert others(memory.r) == {"a", "b"}


# -- what leaves a branch or an iteration


def between(memory: Memory, members: str, outside: str = "") -> set[tuple[str, str]]:
    """Which members may be one with which, or with which memory outside."""
    from_outside = [getattr(memory, name) for name in outside]
    found = unknown_aliasing.between([(name, getattr(memory, name)) for name in members], from_outside.__contains__)
    return {(one, other if isinstance(other, str) else other.label) for one, other, _ in found}


def test_nothing_is_looked_at_where_all_is_known(memory: Memory) -> None:
    memory.views("ab", "cb")
    assert between(memory, "ac") == set() and between(memory, "") == set()


def test_members_that_may_be_one(memory: Memory) -> None:
    memory.unknown("a", "b", "because")
    assert between(memory, "abc") == {("a", "b"), ("b", "a")}
    assert between(memory, "ac") == set(), "the other one stays inside"
    [uncertainty, _] = [one for *_, one in unknown_aliasing.between([("a", memory.a), ("b", memory.b)], bool)] or [0, 0]
    assert uncertainty == 0, "outside of a construct nothing is said of its own"
    [first, _] = unknown_aliasing.between([("a", memory.a), ("b", memory.b)], lambda one: False)
    assert first[2].reason == "because"


def test_a_member_and_what_is_outside(memory: Memory) -> None:
    memory.unknown("a", "o")
    assert between(memory, "a", "o") == {("a", "o")}


def test_what_a_write_reaches_counts(memory: Memory) -> None:
    """Up to the base, and down to its views; of what is outside only the nearest."""
    memory.views("ab", "cb")
    memory.unknown("c", "o")
    assert between(memory, "a", "o") == {("a", "o")}
    assert between(memory, "b", "o") == {("b", "o")} and between(memory, "bc", "o") == {("b", "o"), ("c", "o")}


def test_what_the_other_is_a_view_of_counts(memory: Memory) -> None:
    memory.unknown("a", "b")
    memory.views("bo", "op")
    assert between(memory, "a", "op") == {("a", "o")}, "what is above the nearest is its own matter"
    assert between(memory, "a", "p") == {("a", "p")}


def test_the_other_is_a_view_of_a_member(memory: Memory) -> None:
    memory.unknown("a", "b")
    memory.views("bc")
    assert between(memory, "ac") == {("a", "c"), ("c", "a")}


def test_what_is_uncertain_of_memory_outside_is_known_there(memory: Memory) -> None:
    memory.views("ao")
    memory.unknown("o", "p")
    assert between(memory, "a", "op") == set()


def test_members_that_are_the_same_memory(memory: Memory) -> None:
    memory.unknown("a", "b")
    found = unknown_aliasing.between([(0, memory.a), (1, memory.a), (2, memory.b)], lambda one: False)
    assert {(one, other) for one, other, _ in found} == {(0, 2), (1, 2), (2, 0), (2, 1)}
