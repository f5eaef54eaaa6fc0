"""Rules of the language that CPython's own tests hold: what fails, what is asked first, what a thing says of itself."""

from __future__ import annotations

import copy
import enum
import functools
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch

from dy2static import to_static
from dy2static.program_cache import RetraceWarning
from tests.oracle import check, same


class Season(enum.Enum):
    SPRING = 1
    SUMMER = 2


def message_of(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except Exception as error:
        return type(error), str(error)


def members_cannot_be_stored_to() -> Any:
    def store() -> None:
        Season.SPRING = 3  # type: ignore[misc,assignment]

    def delete() -> None:
        del Season.SPRING

    return message_of(store), message_of(delete), Season.SPRING.value


@dataclass(frozen=True, slots=True) if hasattr(dataclass, "__kwdefaults__") else dataclass(frozen=True)
class Frozen:
    a: int

    def __getstate__(self) -> Any:
        return [self.a]

    def __setstate__(self, state: Any) -> None:
        object.__setattr__(self, "a", state[0] + 1)


def frozen_objects_are_made_again() -> Any:
    def store(one: Any) -> None:
        one.a = 5

    made = Frozen(1)
    again = copy.copy(made)
    return again.a, type(message_of(lambda: store(made))[1]), made.a


def readonly_attributes() -> Any:
    class Holder:
        @property
        def fixed(self) -> int:
            return 1

    def fix(one: Any) -> None:
        one.fixed = 2

    def give_class(one: Any) -> None:
        one.__class__ = int

    def give_length(items: Any) -> None:
        items.maxlen = 5

    import collections
    one = Holder()
    return (message_of(lambda: fix(one))[0], message_of(lambda: give_class(one))[0],
            message_of(lambda: give_length(collections.deque([1], 2)))[0], one.fixed)  # fmt: skip


def constructors_give_none() -> Any:
    class Wrong:
        def __init__(self, a: int) -> None:
            return a  # type: ignore[return-value]

    return message_of(lambda: Wrong(3))


class Left:
    def __floordiv__(self, other: Any) -> str:
        return "left"

    def __rfloordiv__(self, other: Any) -> str:
        return "reflected"

    def __lt__(self, other: Any) -> bool:
        return True

    def __gt__(self, other: Any) -> bool:
        return False


class Inheriting(Left):
    pass


class Overriding(Left):
    def __rfloordiv__(self, other: Any) -> str:
        return "overriding"


def derived_operands_go_first_with_methods_of_their_own() -> Any:
    return (Left() // Inheriting(), Left() // Overriding(), Inheriting() // Left(), Left() < Inheriting(),
            Left() < Overriding())  # fmt: skip


def inequality_asks_in_order() -> Any:
    asked: list[str] = []

    def saying(name: str, *methods: str) -> Any:
        def make(method: str) -> Any:
            def compare(self: Any, other: object) -> Any:
                asked.append(f"{name}.{method}")
                return NotImplemented

            compare.__name__ = method
            return compare

        return {method: make(method) for method in methods}

    equal, other = type("Equal", (), saying("equal", "__eq__")), type("Other", (), saying("other", "__ne__"))
    derived: Any = type("Derived", (equal,), saying("derived", "__ne__"))
    answers = [equal() != other(), other() != equal(), equal() != derived(), equal() != equal(), equal() == other()]
    return answers, asked


def managers_are_asked_for_by_class() -> Any:
    class NoEnter:
        def __exit__(self, *error: Any) -> None:
            pass

    class NoExit:
        def __enter__(self) -> None:
            pass

    class Both:
        def __enter__(self) -> str:
            return "of the class"

        def __exit__(self, *error: Any) -> None:
            pass

    def enter(manager: Any) -> Any:
        with manager as value:
            return value

    one: Any = Both()
    one.__enter__ = lambda: "of the object"
    return [message_of(lambda made=made: enter(made)) for made in (NoEnter(), NoExit(), one)]


def generators_say_what_they_are() -> Any:
    def count(n: int) -> Any:
        """Numbers."""
        yield from range(n)

    made = count(2)
    return count.__doc__, made.__name__, made.__qualname__, (i for i in [1]).__qualname__, list(count(2))


def memos_of_deepcopy() -> Any:
    memo: dict[int, Any] = {}
    items = [[1], [2]]
    first = copy.deepcopy([items, items], memo)
    second = copy.deepcopy(items, memo)
    kept = copy.deepcopy(items, {id(items): "kept"})
    return first[0] is first[1], second is first[0], len(memo) > 2, kept


def metaclasses_make_classes() -> Any:
    class Meta(type):
        def __new__(cls, name: str, bases: Any, space: Any) -> Any:
            made = super().__new__(cls, name, bases, space)
            made.made_by = cls.__name__  # type: ignore[attr-defined]
            return made

    class Made(metaclass=Meta):
        def who(self) -> Any:
            return __class__.__name__, self.made_by  # type: ignore[name-defined,attr-defined]

    return Made().who(), Made.made_by  # type: ignore[attr-defined]


def functions_by_class() -> Any:
    class Other:
        pass

    @functools.singledispatch
    def kind(value: Any) -> str:
        return "any"

    @kind.register
    def _(value: int) -> str:
        return "int"

    @kind.register(Other)
    def _(value: Any) -> str:
        return "other"

    return kind(1), kind("a"), kind(Other())


def patterns_of_match() -> Any:
    import collections.abc

    class Both(collections.UserDict, collections.abc.Sequence):  # type: ignore[type-arg,misc]
        pass

    class Long(collections.abc.Sequence):  # type: ignore[type-arg]
        def __getitem__(self, place: Any) -> Any:
            return place

        def __len__(self) -> int:
            return 42

    class Twice:
        __match_args__ = ("a", "a")
        a = 1

    class Text:
        __match_args__ = "a"
        a = 1

    class Key:
        key = "a"

    def sequence_first(value: Any) -> Any:
        match value:
            case [*_]:
                return "sequence"
            case {}:
                return "mapping"

    def ends(value: Any) -> Any:
        match value:
            case [first, *_, last]:
                return first, last

    def twice(value: Any) -> Any:
        match value:
            case Twice(one, other):
                return one, other

    def text(value: Any) -> Any:
        match value:
            case Text(one):
                return one

    def keys(value: Any) -> Any:
        match value:
            case {Key.key: one, "a": other}:
                return one, other

    failing = (lambda: twice(Twice()), lambda: text(Text()), lambda: keys({"a": 1, "b": 2}))
    found = sequence_first(Both()), sequence_first("text"), ends(Long()), ends([1, 2, 3])
    return *found, *map(message_of, failing)


def views_of_what_has_items() -> Any:
    class Few:
        def __getitem__(self, key: str) -> str:
            return key * 2

    return types.MappingProxyType(Few())["a"]  # type: ignore[arg-type]


class Unasked:
    """Its methods fail: code that is not converted is given it, and asks nothing."""

    def __hash__(self) -> int:
        return 1 if getattr(self, "open", True) else 1 // 0

    def __eq__(self, other: object) -> bool:
        raise ZeroDivisionError

    def __len__(self) -> int:
        raise ZeroDivisionError

    def __getitem__(self, place: int) -> int:
        return place


class Items(list[Any]):
    def __iter__(self) -> Any:
        raise ZeroDivisionError


def what_is_handed_on_is_not_asked() -> Any:
    import operator

    one, other = Unasked(), Items([1])
    held = {one}
    keyed = {one: 1}
    one.open = False  # type: ignore[attr-defined]
    counted = message_of(lambda: operator.length_hint(reversed(one), 3))  # type: ignore[call-overload]
    return len(copy.copy([held, keyed, other])), [type(held).__name__, len(keyed), len(other)], counted[0]


RULES = (
    what_is_handed_on_is_not_asked, inequality_asks_in_order, patterns_of_match,
    members_cannot_be_stored_to, frozen_objects_are_made_again, readonly_attributes, constructors_give_none,
    derived_operands_go_first_with_methods_of_their_own, managers_are_asked_for_by_class, generators_say_what_they_are,
    memos_of_deepcopy, metaclasses_make_classes, views_of_what_has_items,
)  # fmt: skip


@pytest.mark.parametrize("rule", RULES)
def test_in_straight_code(rule: Callable[[], Any]) -> None:
    check(rule, (), ())


@pytest.mark.parametrize("rule", RULES)
def test_on_a_path(rule: Callable[[], Any]) -> None:
    def branch(x: torch.Tensor) -> Any:
        if x.sum() > 0:
            return rule()
        return None

    check(branch, (torch.ones(2),), (-torch.ones(2),))


def test_the_memory_of_copies_is_apart() -> None:
    def copied(x: torch.Tensor) -> Any:
        memo: dict[int, Any] = {}
        held = [x * 2]
        first = copy.deepcopy(held, memo)
        first[0] += 1
        return held, first, copy.deepcopy(held, memo) is first

    same(to_static(copied)(torch.ones(2)), copied(torch.ones(2)))


def test_functions_by_class_are_registered_in_a_program_for_one_call() -> None:
    static = to_static(functions_by_class)
    with pytest.warns(RetraceWarning, match="each call"):
        assert static() == functions_by_class() == static()
