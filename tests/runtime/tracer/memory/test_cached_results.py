"""What a cached function gave in a trace is read only: who changes it, or asks which object it is, is refused."""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable
from types import MappingProxyType, SimpleNamespace
from typing import Any

import pytest
import torch

from runtime.errors import TraceError
from runtime.ir import Location
from runtime.tracer.memory import aliases, cached_results
from runtime.tracer.memory.conditions import ALWAYS
from runtime.tracer.recording.session import Session

Tensor = torch.Tensor


class Slotted:
    __slots__ = ("one", "two")

    def __init__(self) -> None:
        self.one = 1


class Node:
    def __init__(self, held: Any) -> None:
        self.held = held


# -- tensors


def give(session: Session, function: Callable[[], Tensor], made: Any) -> Tensor:
    """What a cached function gives, noted as the operators note it."""
    before = session.storages.snapshot().made
    tensor = made(function)
    cached_results.note(session, tensor, "g", before, session.storages.snapshot())
    return tensor


def test_a_tensor_that_the_function_made_is_its_own(session: Session, given: Any, made: Any) -> None:
    x = given("x", 3)
    tensor = give(session, lambda: x * 2, made)
    found = cached_results.of(session.info(tensor))
    assert found is not None and found[0] == "g" and "cached_results.note(" in found[1].text
    assert cached_results.of(session.info(x)) is None


def test_views_and_tensors_of_the_same_memory_are_the_caches_too(session: Session, given: Any, made: Any) -> None:
    x = given("x", 3)
    tensor = give(session, lambda: x * 2, made)
    view, other, copy = made(lambda: (tensor[1:], x + 1, tensor.clone()))
    assert cached_results.of(session.info(view)) == cached_results.of(session.info(tensor))
    assert cached_results.of(session.info(copy)) is None
    aliases.add(session.info(other).storage, session.info(view).storage, (), ALWAYS)
    assert cached_results.of(session.info(other)) == cached_results.of(session.info(tensor))


def test_what_is_older_than_the_function_is_not_its_own(session: Session, given: Any, made: Any) -> None:
    x = given("x", 3)
    before = made(lambda: x * 2)
    for older in (x, before):
        assert give(session, lambda: older[1:], made) is not None
        assert cached_results.of(session.info(older)) is None


def test_a_parameter_that_the_function_met_first_is_the_callers(session: Session, made: Any) -> None:
    weight = torch.ones(3, requires_grad=True)
    give(session, lambda: weight[1:], made)
    assert cached_results.of(session.info(weight)) is None


def test_the_first_function_that_gave_it_is_named(session: Session, given: Any, made: Any) -> None:
    x = given("x", 3)
    tensor = give(session, lambda: x * 2, made)
    cached_results.note(session, tensor, "outer", 0, session.storages.snapshot())
    found = cached_results.of(session.info(tensor))
    assert found is not None and found[0] == "g"


def test_one_that_was_written_since_is_refused(session: Session, given: Any, made: Any, refused: Any) -> None:
    x = given("x", 3)
    before = session.storages.snapshot().made
    tensor = made(lambda: x * 2)
    after = session.storages.snapshot()
    made(lambda: tensor[1:].add_(1))
    with refused("D2S276", 'cached_results.note(session, tensor, "g"', said="g is cached"):
        cached_results.note(session, tensor, "g", before, after)
    assert cached_results.of(session.info(tensor)) is None


def test_one_that_was_written_inside_the_function_is_not(session: Session, given: Any, made: Any) -> None:
    x = given("x", 3)
    assert cached_results.of(session.info(give(session, lambda: (x * 2).add_(1), made))) is not None


def test_a_question_for_one_is_refused_at_the_call(session: Session, given: Any, made: Any, refused: Any) -> None:
    x = given("x", 3)
    tensor = give(session, lambda: x * 2, made)
    cached_results.require_none(session, session.info(x), "is written")
    with refused("D2S276", "cached_results.note(session, tensor", said="a tensor that it gave is written"):
        cached_results.require_none(session, session.info(made(lambda: tensor[0])), "is written")


# -- containers and objects


def test_the_parts_of_a_value() -> None:
    slotted = Slotted()
    assert cached_results.parts([1, [2]]) == [1, [2]] and cached_results.parts(()) == []
    assert cached_results.parts((1, 2)) == [1, 2] and cached_results.parts({}) == []
    assert sorted(cached_results.parts({3, 4})) == sorted(cached_results.parts(frozenset({4, 3}))) == [3, 4]
    assert cached_results.parts({"a": 1, "b": [2]}) == ["a", 1, "b", [2]]
    assert cached_results.parts(Node(5)) == ["held", 5] and cached_results.parts(slotted) == ["one", 1]
    slotted.two = 2  # type: ignore[attr-defined]
    assert cached_results.parts(slotted) == ["one", 1, "two", 2] and cached_results.parts(object()) == []


CHANGES: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "an item more": (lambda: [1], lambda value: value.append(2)),
    "an item less": (lambda: [[], []], lambda value: value.pop()),
    "another item that is equal": (lambda: [[], []], lambda value: value.__setitem__(0, [])),
    "another order": (lambda: [[], [1]], lambda value: value.reverse()),
    "another value": (lambda: {"k": []}, lambda value: value.update(k=[])),
    "another key": (lambda: {"k": 1}, lambda value: value.update(l=value.pop("k"))),
    "another member": (lambda: {1}, lambda value: value.add("x")),
    "another attribute": (lambda: Node(1), lambda value: setattr(value, "more", 1)),
    "another value of an attribute": (lambda: Node([]), lambda value: setattr(value, "held", [])),
    "an attribute less": (lambda: Node(1), lambda value: delattr(value, "held")),
    "a slot": (Slotted, lambda value: setattr(value, "two", 1)),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_refused_at_the_call(name: str, session: Session, refused: Any) -> None:
    make, change = CHANGES[name]
    value = make()
    cached_results.note_object(session, value, "g")
    cached_results.require_read_only(session)
    change(value)
    what = f"an object that it gave (a {type(value).__name__}) is changed"
    with refused("D2S276", 'cached_results.note_object(session, value, "g")', said=what):
        cached_results.require_read_only(session)


def test_what_it_held_first_counts(session: Session, refused: Any) -> None:
    value = [1]
    cached_results.note_object(session, value, "g")
    value.append(2)
    cached_results.note_object(session, value, "later")
    with refused("D2S276", '"g")', said="g is cached"):
        cached_results.require_read_only(session)
    value.pop()
    cached_results.require_read_only(session)


def test_a_question_for_which_object_it_is(session: Session, refused: Any) -> None:
    value = [1]
    cached_results.note_object(session, value, "g")
    cached_results.require_not_made_anew(session, [1], "is compared")
    with refused("D2S276", 'cached_results.note_object(session, value, "g")', said="(a list) is compared"):
        cached_results.require_not_made_anew(session, value, "is compared")


# -- paths


def test_what_a_path_got_is_forgotten_with_it(session: Session) -> None:
    before, value = [0], [1]
    cached_results.note_object(session, before, "older")
    known = set(session.objects.cached)
    cached_results.end_path(session, known, [before, value])
    cached_results.note_object(session, value, "g")
    cached_results.end_path(session, known, [3, [], [1], Node([1])])
    assert set(session.objects.cached) == known


def test_a_path_has_changed_what_it_got(session: Session, refused: Any) -> None:
    value = [1]
    cached_results.note_object(session, value, "g")
    value.append(2)
    with refused("D2S276", 'cached_results.note_object(session, value, "g")', said="is changed"):
        cached_results.end_path(session, (), [])


def test_what_was_known_before_a_path_is_not_asked_for_at_its_end(session: Session) -> None:
    older, value = [0], [1]
    cached_results.note_object(session, older, "older")
    older.append(1)
    known = set(session.objects.cached)
    cached_results.note_object(session, value, "g")
    cached_results.end_path(session, known, [])
    assert set(session.objects.cached) == known


def test_a_path_may_leave_what_was_known_before_it(session: Session) -> None:
    older = [0]
    cached_results.note_object(session, older, "older")
    known = set(session.objects.cached)
    cached_results.note_object(session, [1], "g")
    cached_results.end_path(session, known, [older])


HOLDING: dict[str, Callable[[Any], Any]] = {
    "itself": lambda value: value, "a list": lambda value: [0, value], "a tuple": lambda value: (value,),
    "a dict": lambda value: {"k": value}, "nested": lambda value: [({"k": [value]},)], "an object": Node,
    "an object in an object": lambda value: Node([Node(value)]),
}  # fmt: skip


@pytest.mark.parametrize("name", HOLDING)
def test_a_path_leaves_what_it_got(name: str, session: Session, refused: Any) -> None:
    value = [1]
    cached_results.note_object(session, value, "g")
    with refused("D2S276", '"g")', said="is used after a branch or loop in which it was called"):
        cached_results.end_path(session, (), [3, HOLDING[name](value)])


UNSEEN: dict[str, Callable[[Any], Any]] = {
    "a deque": lambda value: deque([value]), "a default": lambda value: (lambda one=value: one),
    "a partial": lambda value: functools.partial(len, value), "a method": lambda value: value.append,
    "a proxy": lambda value: MappingProxyType({"k": value}), "an exception": ValueError,
    "a namespace": lambda value: SimpleNamespace(k=value), "deep": lambda value: [[[[[[[[[value]]]]]]]]],
}  # fmt: skip


@pytest.mark.parametrize("name", UNSEEN)
def test_a_path_leaves_what_it_got_in_something_else(name: str, session: Session) -> None:
    value = [1]
    cached_results.note_object(session, value, "g")
    with pytest.raises(TraceError, match="D2S276"):
        cached_results.end_path(session, (), [UNSEEN[name](value)])


def test_a_key_that_a_path_leaves(session: Session, refused: Any) -> None:
    value = Node(1)
    cached_results.note_object(session, value, "g")
    with refused("D2S276", '"g")', said="is used after a branch or loop"):
        cached_results.end_path(session, (), [{value: 1}])


def test_a_list_that_holds_itself_leaves_a_path(session: Session) -> None:
    items: list[Any] = []
    items.append(items)
    cached_results.note_object(session, [1], "g")
    cached_results.end_path(session, (), [items])
    assert not session.objects.cached


def test_the_error_names_what_helps(session: Session) -> None:
    place = Location("a.py", 3, 0, "h", "g(x)")
    error = cached_results.refusal(session, "g", "it is asked", place)
    assert error.code == "D2S276" and error.location == place and "take the cache away" in error.hint
    assert cached_results.refusal(session, "g", "it is asked").location.file == __file__
