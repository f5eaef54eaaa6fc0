"""A call's arguments taken apart and put together again: each kind of container, nested, shared, and in circles."""

from __future__ import annotations

import dataclasses
import functools
import types
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy
import pytest
import torch

from runtime.ir.template import Again, TensorSlot
from runtime.tracer.values.arguments import Container, HoldsItself, Open, flatten, follow
from tests.oracle import same


class Pair(NamedTuple):
    first: Any
    second: Any


class UsersList(list[Any]):
    pass


class UsersDict(dict[Any, Any]):
    pass


class UsersTuple(tuple[Any, ...]):
    pass


@dataclasses.dataclass
class Record:
    value: Any
    other: Any = 1


@dataclasses.dataclass(frozen=True)
class Frozen:
    value: Any


@dataclasses.dataclass
class Output(OrderedDict[str, Any]):
    """As transformers has its outputs."""

    logits: Any = None

    def __post_init__(self) -> None:
        if self.logits is not None:
            OrderedDict.__setitem__(self, "logits", self.logits)


def with_attributes(value: Any, **attributes: Any) -> Any:
    vars(value).update(attributes)
    return value


X, Y = torch.ones(2), torch.zeros(3)
APART: dict[str, tuple[Callable[[], Any], list[str]]] = {
    "a tensor": (lambda: X, ["a"]),
    "a list": (lambda: [X, 1, Y], ["a[0]", "a[2]"]),
    "an empty list": (lambda: [], []),
    "a list of numbers": (lambda: [1, "b", None], []),
    "a tuple": (lambda: (1, X), ["a[1]"]),
    "an empty tuple": (lambda: (), []),
    "a dict": (lambda: {"ids": X, 3: Y, (1, 2): 4}, ["a['ids']", "a[3]"]),
    "an OrderedDict": (lambda: OrderedDict(b=Y, a=X), ["a['b']", "a['a']"]),
    "a defaultdict": (lambda: defaultdict(list, b=X), ["a['b']"]),
    "a set": (lambda: {1, 2, "b"}, []),
    "a named tuple": (lambda: Pair(X, Y), ["a.first", "a.second"]),
    "a named tuple without tensors": (lambda: Pair(1, "b"), []),
    "one of torch's": (lambda: torch.sort(X), ["a.values", "a.indices"]),
    "a record": (lambda: Record(X), ["a.value"]),
    "a record with more": (lambda: with_attributes(Record(X), more=Y), ["a.value", "a.more"]),
    "a frozen one": (lambda: Frozen([X]), ["a.value[0]"]),
    "a dict of a user's class": (lambda: UsersDict(b=X), ["a['b']"]),
    "a Counter": (lambda: Counter({"b": X}), ["a['b']"]),
    "a dict that is a dataclass": (lambda: Output(X), ["a['logits']"]),
    "a tuple of a user's class": (lambda: UsersTuple((X, 2)), ["a.item0"]),
    "nested": (
        lambda: {"b": [(X, {"c": Record([1, Pair(2, Y)])})]}, ["a['b'][0][0]", "a['b'][0][1]['c'].value[1].second"]),
}  # fmt: skip


@pytest.mark.parametrize("kind", APART)
def test_taken_apart_and_put_together_again(kind: str) -> None:
    make, labels = APART[kind]
    value = make()
    arguments = flatten({"a": value, "n": 1})
    assert arguments.labels == labels and len(arguments.tensors) == len(labels)
    bound, built = arguments.rebuild(arguments.tensors)
    same(bound, {"a": value, "n": 1})
    others = [torch.full((4,), float(number)) for number in range(len(labels))]
    again = flatten(arguments.rebuild(others)[0])
    assert again.labels == labels and all(a is b for a, b in zip(again.tensors, others))
    assert len(built) == len(arguments.containers)
    for (made, path), own in zip(built, arguments.containers):
        assert path is not None and follow(arguments, path) is own and type(made) is type(own)
        assert made is not own or made == ()


WHOLE: dict[str, Callable[[], Any]] = {
    "a number": lambda: 1,
    "a record without tensors": lambda: Record(1),
    "a frozen one without": lambda: Frozen([1]),
    "a dict of a user's class without": lambda: UsersDict(b=1),
    "one with an attribute": lambda: with_attributes(UsersDict(b=X), more=1),
    "a list of a user's class": lambda: UsersList([X]),
    "a deque": lambda: deque([X]),
    "a frozenset": lambda: frozenset({1}),
    "an array": lambda: numpy.ones(2),
    "a tuple of a user's class with an attribute": lambda: with_attributes(UsersTuple((X,)), more=1),
    "a function": lambda: len,
    "a class": lambda: Record,
}


@pytest.mark.parametrize("kind", WHOLE)
def test_what_is_not_taken_apart_is_given_as_it_is(kind: str) -> None:
    value = WHOLE[kind]()
    arguments = flatten({"a": [value]})
    assert not arguments.tensors and [one for one in arguments.others() if one is value]
    bound, built = arguments.rebuild([])
    assert bound["a"][0] is value and len(built) == 1


def test_classes_that_are_to_be_taken_apart() -> None:
    one = Record([1], "b")
    arguments = flatten({"a": one}, frozenset({Record}))
    bound, built = arguments.rebuild([])
    same(bound["a"], one)
    assert bound["a"] is not one and bound["a"].value is not one.value
    assert [path for _, path in built] == [("a",), ("a", "value")]


def test_a_record_is_made_without_its_methods() -> None:
    @dataclasses.dataclass
    class Checked:
        value: Any

        def __post_init__(self) -> None:
            self.calls = getattr(self, "calls", 0) + 1

    one = Checked(X)
    made = flatten({"a": one}).rebuild([Y])[0]["a"]
    assert made is not one and made.value is Y and made.calls == 1 and one.value is X


def test_tensors_alone_need_no_walk() -> None:
    arguments = flatten({"x": X, "y": Y})
    assert arguments.only_tensors == ("x", "y") and arguments.labels == ["x", "y"] and not arguments.containers
    assert arguments.rebuild([Y, X])[0] == {"x": Y, "y": X}
    assert flatten({"x": Y, "y": X}).template is arguments.template
    assert flatten({"x": X}).only_tensors == ("x",) and flatten({}).tensors == []
    twice = flatten({"x": X, "y": X})
    assert twice.only_tensors is None and twice.tensors == [X] and twice.labels == ["x"]
    assert twice.template == {"x": TensorSlot(0), "y": TensorSlot(0)}
    assert flatten({"x": X, "n": 1}).only_tensors is None


def test_what_stands_in_two_places_is_one() -> None:
    shared = [X]
    arguments = flatten({"a": shared, "b": {"c": shared, "d": X}})
    assert arguments.template["b"].items == (Again(0), TensorSlot(0)) and arguments.labels == ["a[0]"]
    bound, _ = arguments.rebuild([Y])
    assert bound["a"] is bound["b"]["c"] and bound["b"]["d"] is bound["a"][0] is Y
    apart = flatten({"a": [X], "b": [X]}).rebuild([Y])[0]
    assert apart["a"] is not apart["b"]


def test_containers_that_hold_themselves() -> None:
    items: list[Any] = [X]
    table: dict[str, Any] = {"items": items, "default": defaultdict(int)}
    items.append(table)
    table["default"]["all"] = table
    bound, built = flatten({"a": items}).rebuild([Y])
    made = bound["a"]
    assert made is not items and made[0] is Y and made[1]["items"] is made and made[1] is not table
    assert made[1]["default"]["all"] is made[1] and type(made[1]["default"]) is defaultdict
    assert made[1]["default"].default_factory is int
    assert [path for _, path in built] == [("a",), ("a", 1), ("a", 1, "default")]


def test_containers_that_stay_the_callers() -> None:
    inner, other = [Y], [X]
    arguments = flatten({"a": {"b": inner, "c": (inner, other)}})
    numbers = {id(one): number for number, one in enumerate(arguments.containers)}
    bound, built = arguments.rebuild(arguments.tensors, whole={numbers[id(inner)]})
    assert bound["a"]["b"] is inner and bound["a"]["c"][0] is inner and bound["a"]["c"][1] is not other
    assert [(own is inner, path) for own, path in built if path is None] == [(True, None)]
    bound, built = arguments.rebuild(arguments.tensors, whole={0})
    assert bound["a"] is arguments.originals["a"], "with all that is inside"
    assert [own for own, _ in built] == arguments.containers and not [path for _, path in built if path]


def test_what_each_call_is_given_as_it_is() -> None:
    one = object()
    arguments = flatten({"a": [1, {"b": one}], "c": X, "d": (one, [])})
    assert sorted(map(id, arguments.others())) == sorted(map(id, (1, one, one)))


def test_what_is_told_apart_by_what_it_holds() -> None:
    table = {"a": 1}
    held = [numpy.ones(1), functools.partial(len, ()), [].append, Record(1).__eq__, types.MappingProxyType(table),
            slice(1), table.keys(), table.values(), table.items()]  # fmt: skip
    arguments = flatten({"a": held, "b": {"c": (held[0],)}, "d": slice(2), "e": 1})
    found = {path: value for value, path in arguments.by_content()}
    wanted = {("a", place): one for place, one in enumerate(held) if place != 2}
    wanted |= {("b", "c", 0): held[0], ("d",): slice(2)}
    assert set(found) == set(wanted) and all(found[path] is wanted[path] for path in wanted if path != ("d",))


def test_values_that_are_open() -> None:
    arguments = flatten({"a": {"n": 1, "xs": [X]}})
    node = arguments.template["a"]
    node = dataclasses.replace(node, items=(Open(0, int), node.items[1]))
    opened = dataclasses.replace(arguments, template={"a": node}, opened={("a", "n"): 7})
    assert opened.rebuild([Y])[0] == {"a": {"n": 7, "xs": [Y]}}
    assert opened.rebuild([Y], opened=[9])[0]["a"]["n"] == 9 and list(opened.others()) == []


@pytest.mark.parametrize("kind", [list, tuple])
def test_lists_of_an_open_length(kind: Any) -> None:
    """The one item of the template stands for all of them."""
    arguments = flatten({"a": kind([X])})
    node = dataclasses.replace(arguments.template["a"], items=(Open(0, None),), open_length=True)
    opened = dataclasses.replace(arguments, tensors=[], template={"a": node}, opened={("a",): [X, Y]})
    made = opened.rebuild([])[0]["a"]
    assert type(made) is kind and len(made) == 2 and made[0] is X and made[1] is Y
    held = object()
    assert opened.rebuild([], opened=[held])[0]["a"] == kind([held]), "while tracing one thing stands for all"


def test_what_is_kept_holds_nothing_of_the_callers() -> None:
    inner = [X]
    arguments = flatten({"a": {"b": inner, "s": {1}}, "r": Record(inner), "c": inner})
    kept = arguments.with_stand_ins(["spec"])
    assert not kept.originals and not kept.containers and kept.tensors == ["spec"] and arguments.containers

    def containers(value: Any) -> list[Container]:
        if not isinstance(value, Container):
            return []
        return [value, *(found for item in value.items for found in containers(item))]

    nodes = [one for value in kept.template.values() for one in containers(value)]
    assert len(nodes) == 4
    assert all(node.original is not own for node in nodes for own in arguments.containers)
    assert [node.original for node in nodes] == [{"b": ["spec"], "s": {1}}, ["spec"], {1}, Record(["spec"])]
    assert kept.rebuild(["other"])[0]["a"] == {"b": ["other"], "s": {1}}


def test_the_callers_container_at_a_path() -> None:
    one = Record({"b": [Pair(1, (X,))]})
    arguments = flatten({"a": one, "x": UsersDict(value=[X])})
    assert follow(arguments, ("a",)) is one and follow(arguments, ("a", "value")) is one.value
    assert follow(arguments, ("a", "value", "b", 0, "second")) is one.value["b"][0].second
    assert follow(arguments, ("x", "value")) == [X], "an item of a dict, no attribute"


CIRCLES: dict[str, Callable[[], Any]] = {
    "a tuple": lambda: ([],),
    "a named tuple": lambda: Pair(X, []),
    "a record": lambda: Record(X, []),
    "a frozen one": lambda: Frozen([X]),
    "a dict of a user's class": lambda: UsersDict(value=X, other=[]),
}


@pytest.mark.parametrize("kind", CIRCLES)
def test_others_that_hold_themselves(kind: str) -> None:
    """Of a tuple nothing can be made before its items: that is said."""
    value = CIRCLES[kind]()
    holder = value["other"] if isinstance(value, dict) else value.value if isinstance(value, Frozen) else (
        value.other if isinstance(value, Record) else value[-1])
    holder.append(value)
    taken = flatten({"a": value, "x": X})
    if isinstance(value, (tuple, dict)):
        with pytest.raises(HoldsItself):
            taken.rebuild([Y])
        return
    made = taken.rebuild([Y])[0]["a"]
    inner = made.value if isinstance(made, Frozen) else made.other
    assert type(made) is type(value) and inner[-1] is made
