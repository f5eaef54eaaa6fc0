"""Objects of ordinary classes: what they hold, and whether their attributes are all that they are."""

from __future__ import annotations

import abc
import collections
import copy
import dataclasses
import time
from collections import Counter, OrderedDict, UserList, defaultdict, deque
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy
import pytest
import torch
from torch import nn

from runtime.tracer.ambient import objects
from runtime.tracer.ambient.poison import Key, keys_answer
from runtime.tracer.ambient.unasked import unasked


class Plain:
    def __init__(self, held: Any = 1) -> None:
        self.held = held


class Slotted:
    __slots__ = ("one", "__two")

    def __init__(self) -> None:
        self.one, self.__two = 1, 2


class Both(Slotted):
    def __init__(self) -> None:
        super().__init__()
        self.three = 3


class Deleting(Plain):
    def __del__(self) -> None:
        pass


class Reducing(Plain):
    def __reduce__(self) -> Any:
        return Plain, (1,)


class Refusing(Plain):
    def __new__(cls, *args: Any) -> Any:
        raise RuntimeError("nobody calls it")


@dataclasses.dataclass
class Record:
    value: Any = 1


@dataclasses.dataclass(frozen=True)
class Frozen:
    value: Any = 1


@dataclasses.dataclass
class RecordDict(dict):  # type: ignore[type-arg]
    value: Any = 1


class Pair(NamedTuple):
    first: Any
    second: Any


class Coordinates(tuple):  # type: ignore[type-arg]
    pass


class Meta(type):
    pass


def named(cls: type, module: str) -> type:
    """A class as if it were another package's."""
    return type("Own", (cls,), {"__module__": module})


def exception(text: str = "a") -> Exception:
    try:
        raise ValueError(text) from KeyError("b")
    except ValueError as error:
        error.note = 1  # type: ignore[attr-defined]
        return error


@pytest.mark.parametrize("cls, simple", [
    (Plain, True), (Slotted, True), (Both, True), (Record, True), (object, True), (Refusing, True), (UserList, True),
    (Meta("M", (), {}), True),
    (type("E", (Exception,), {}), False), (list, False), (Coordinates, False), (int, False), (type, False),
    (Meta, False),
    (nn.Linear, False), (torch.Tensor, False), (type("D", (dict,), {}), False), (Pair, False),
    (collections.deque, False), (type(len), False), (numpy.ndarray, False),
], ids=lambda one: getattr(one, "__name__", one))  # fmt: skip
def test_classes_whose_objects_are_their_attributes(cls: type, simple: bool) -> None:
    assert objects.is_simple(cls) is simple


def test_an_abstract_class_cannot_be_made() -> None:
    class Abstract(abc.ABC):
        @abc.abstractmethod
        def method(self) -> None: ...

    assert objects.is_simple(Abstract) is False


@pytest.mark.parametrize("value, record", [
    (Record(), True), (Frozen(), False), (Plain(), False), (RecordDict(), False), (Record, False), (3, False),
    (Pair(1, 2), False), (dataclasses.make_dataclass("Made", ["a"])(1), True), (named(Record, "torch.x")(), False),
    (named(Record, "runtime.x")(), False), (named(Record, "torchvision")(), True),
], ids=lambda one: type(one).__name__)  # fmt: skip
def test_records(value: Any, record: bool) -> None:
    assert objects.is_record(value) is record


@pytest.mark.parametrize("value, users", [
    (Coordinates((1,)), True), ((1,), False), (Pair(1, 2), False), (torch.Size([1]), False), (time.localtime(), False),
    ([1], False), (3, False), (torch.max(torch.ones(2, 2), 0), False), (named(tuple, "runtime.x")(), False),
    (named(tuple, "runtimes")(), True),
], ids=lambda one: type(one).__name__)  # fmt: skip
def test_tuples_of_users_classes(value: Any, users: bool) -> None:
    assert objects.is_users_tuple(value) is users


REBUILT: list[tuple[Any, bool]] = [
    (Plain(), True), (Slotted(), True), (Both(), True), (Record(), True), (Frozen(), False), (object(), False),
    (Deleting(), False), (Reducing(), False), (Plain, False), (3, False), ([1], False), (None, False), (len, False),
    (ValueError(), False), (nn.Linear(1, 1), False), (torch.ones(1), False), (Coordinates(), False), (UserList(), True),
    (named(Plain, "torch.x")(), False), (named(Plain, "runtime")(), False), (numpy.ones(1), False), (deque(), False),
]  # fmt: skip


@pytest.mark.parametrize("value, rebuilt", REBUILT, ids=lambda one: type(one).__name__)
def test_what_can_be_made_again_from_its_attributes(value: Any, rebuilt: bool) -> None:
    assert objects.can_be_rebuilt(value) is rebuilt
    if rebuilt:
        made = object.__new__(type(value))
        for name, held in objects.attributes(value).items():
            object.__setattr__(made, name, held)
        assert objects.attributes(made) == objects.attributes(value) == objects.attributes(copy.copy(value))


# -- attributes


def test_what_an_object_holds() -> None:
    assert objects.attributes(Plain(5)) == {"held": 5}
    assert objects.attributes(Slotted()) == {"one": 1, "_Slotted__two": 2}
    assert objects.attributes(Both()) == {"three": 3, "one": 1, "_Slotted__two": 2}
    slotted = Slotted()
    del slotted.one
    assert objects.attributes(slotted) == {"_Slotted__two": 2}
    for value in (3, None, [1], object(), len, (1,)):
        assert objects.attributes(value) == {}


def test_it_is_a_copy() -> None:
    plain = Plain()
    objects.attributes(plain)["more"] = 1
    assert vars(plain) == {"held": 1}


def test_users_code_is_not_asked() -> None:
    class Asked(Plain):
        def __getattr__(self, name: str) -> Any:
            raise RuntimeError(name)

        def __getattribute__(self, name: str) -> Any:
            raise RuntimeError(name)

    value = Plain()
    value.__class__ = Asked
    assert objects.attributes(value) == {"held": 1}


def test_of_a_super_the_object_it_is_about() -> None:
    both = Both()
    assert objects.attributes(super(Both, both)) == {"__self__": both}
    assert objects.attributes(super(Both, Both)) == {} == objects.attributes(super(Both))


def test_a_super_does_not_ask_its_object() -> None:
    asked: list[str] = []

    class Answers(Plain):
        def __getattribute__(self, name: str) -> Any:
            asked.append(name)
            return super().__getattribute__(name)

    value = Answers()
    about = super(Answers, value)
    del asked[:]
    assert objects.attributes(about) == {"__self__": value} and not asked


def test_slots_of_each_class() -> None:
    assert sorted(objects.slots_of(Slotted)) == ["_Slotted__two", "one"]
    assert objects.slots_of(Both) == objects.slots_of(Plain) == objects.slots_of(int) == []


# -- items


class OddItems:
    def __iter__(self) -> Iterator[Any]:
        raise RuntimeError("iter")

    def __len__(self) -> int:
        raise RuntimeError("len")

    def values(self) -> Any:
        raise RuntimeError("values")


ITEMS: list[tuple[Any, type, list[Any]]] = [
    ([1, 2], list, [1, 2]), ((1, 2), tuple, [1, 2]), (Pair(1, 2), tuple, [1, 2]), ({1}, set, [1]), ([], list, []),
    (frozenset([1]), frozenset, [1]), (deque([1, 2]), deque, [1, 2]), ({"a": 1}, dict, [1]), (Counter("a"), dict, [1]),
    (OrderedDict(b=1, a=2), OrderedDict, [1, 2]), (defaultdict(int, a=1), dict, [1]), (Coordinates((1,)), tuple, [1]),
]  # fmt: skip


@pytest.mark.parametrize("value, kind, items", ITEMS, ids=lambda one: type(one).__name__)
def test_the_items_of_a_container(value: Any, kind: type, items: list[Any]) -> None:
    assert objects.kind_of_items(type(value)) is kind
    assert objects.own_items(value) == items and objects.own_length(value) == len(items)


@pytest.mark.parametrize("base", [list, tuple, set, frozenset, deque, dict, OrderedDict])
def test_what_a_users_class_says_of_them_is_not_asked(base: Any) -> None:
    cls = type("Own", (OddItems, base), {})
    value: Any = cls({"a": 1}) if issubclass(base, OrderedDict) else base.__new__(cls, (1,)) if base in (
        tuple, frozenset) else base.__new__(cls)  # fmt: skip
    if base in (list, deque):
        base.append(value, 1)
    elif base is set:
        set.add(value, 1)
    elif base is dict:
        dict.update(value, a=1)
    assert objects.own_items(value) == [1] and objects.own_length(value) == 1


def test_the_last_made_ordered_dict_comes_first() -> None:
    """Its order is its own."""
    value = OrderedDict(a=1, b=2)
    value.move_to_end("a")
    assert objects.own_items(value) == [2, 1] == list(value.values())


def test_keys_that_answer_nothing() -> None:
    class One(Key):
        __slots__ = ()

        def refuse(self, *args: Any) -> Any:
            raise RuntimeError("asked")

    for kind in (dict, OrderedDict):
        with keys_answer():
            value = kind()
            value[One()] = 5
        assert objects.own_items(value) == [5]


# -- exceptions


class Own(Exception):
    pass


class Made(Exception):
    def __new__(cls, *args: Any) -> Any:
        return super().__new__(cls)


class Reduced(Exception):
    def __reduce__(self) -> Any:
        return Own, ()


class WithSlot(Exception):
    __slots__ = ("more",)


@pytest.mark.parametrize("value, whole", [
    (ValueError("a"), True), (Own("a", 1), True), (KeyError(1), True), (exception(), True), (AssertionError(), True),
    (OSError(1, "a"), False), (StopIteration(1), False), (SystemExit(1), False), (UnicodeError("a"), True),
    (ImportError("a"), False), (Made(1), False), (Reduced(), False), (WithSlot(), False), (3, False), (Own, False),
    (torch.linalg.LinAlgError("a"), False), (type("D", (Exception,), {"__del__": lambda self: None})(), False),
], ids=lambda one: type(one).__name__)  # fmt: skip
def test_exceptions_that_are_what_every_one_holds(value: Any, whole: bool) -> None:
    assert objects.is_exception(value) is whole


def test_what_exceptions_hold() -> None:
    error = exception()
    found = objects.contents(error)
    assert found == {"note": 1, "args": ("a",), "__cause__": error.__cause__, "__context__": error.__context__,
                     "__suppress_context__": True}  # fmt: skip
    assert objects.contents(Plain()) == {"held": 1}
    assert unasked(error, "__traceback__") is not None and "__traceback__" not in found


