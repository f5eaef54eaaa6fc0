"""Attributes beside items: of containers, named tuples and dataclasses that are made on paths and in loops."""

from __future__ import annotations

import collections
import dataclasses
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from dy2static import not_to_static, to_static
from runtime.errors import TraceError
from tests.oracle import check, check_saved


class List(list[Any]):
    name = "plain"


class Dict(dict[Any, Any]):
    name = "plain"


class Deque(collections.deque[Any]):
    name = "plain"


class Set(set[Any]):
    name = "plain"


class Slots(list[Any]):
    __slots__ = ("inner", "k", "name", "t")


class Ordered(collections.OrderedDict[Any, Any]):
    name = "plain"


class Defaults(collections.defaultdict[Any, Any]):
    name = "plain"


class Plain:
    name = "plain"


CONTAINERS = (List, Dict, Deque, Set, Slots, Ordered, Defaults, Plain)


def with_values(make: Any, k: Any, name: str = "own") -> Any:
    made = make()
    made.k, made.name = k, name
    return made


def equal_on_both_paths(make: Any, x: Any, y: Any) -> Any:
    if x.sum() > 1:
        made = make()
        made.name = "own"
    else:
        made = make()
        made.name = "own"
    return made.name, made


def other_on_each_path(make: Any, x: Any, y: Any) -> Any:
    if x.sum() > 1:
        made = make()
        made.k, made.name = x, "a"
    else:
        made = make()
        made.k, made.name = x * 2, "b"
    kept = made
    kept.t = kept.k + 1
    return made.k, made.name, made.t, made is kept, made


def other_names_on_each_path(make: Any, x: Any, y: Any) -> Any:
    if x.sum() > 1:
        made = make()
        made.k = x
    else:
        made = make()
        made.name = "b"
    return getattr(made, "k", None), hasattr(made, "k"), made


def one_path_makes_another(make: Any, x: Any, y: Any) -> Any:
    made = make()
    made.k = x
    before = made
    if x.sum() > 1:
        made = make()
        made.k = x * 3
    made.t = 1
    return made.k, made is before, made, before


def set_on_one_path(make: Any, x: Any, y: Any) -> Any:
    made = make()
    made.name = "q"
    if x.sum() > 1:
        made.name = "other"
        made.k = x
    return made.name, made


def made_in_a_loop(make: Any, x: Any, y: Any) -> Any:
    made = with_values(make, x)
    i = 0
    while i < 2 and (y > 0).any():
        i = i + 1
        made = make()
        made.k, made.name = x + i, "later"
    return made.k, made.name, made


def made_of_the_one_before(make: Any, x: Any, y: Any) -> Any:
    made = with_values(make, x)
    i = 0
    while i < 3 and (y > 0).any():
        i = i + 1
        before = made
        made = make()
        made.k = before.k + i
    return made.k, made


def two_names(make: Any, x: Any, y: Any) -> Any:
    made = other = with_values(make, x)
    i = 0
    while i < 3 and (y > 0).any():
        i = i + 1
        made = other = make()
        made.k = x + i
    other.k = other.k * 2
    return made.k, made is other, made


def known_in_the_loop_only(make: Any, x: Any, y: Any) -> Any:
    result = x
    i = 0
    while i < 3 and (y > 0).any():
        i = i + 1
        made = make()
        made.k = result + i
        result = made.k * 0.5
    return result


def made_on_paths_of_a_loop(make: Any, x: Any, y: Any) -> Any:
    made = with_values(make, x)
    i = 0
    while i < 3 and (y > 0).any():
        i = i + 1
        if x.sum() > i:
            made = make()
            made.k, made.name = x + i, "a"
        else:
            made = make()
            made.k, made.name = x - i, "b"
    return made.k, made.name, made


def a_list_as_an_attribute(make: Any, x: Any, y: Any) -> Any:
    made = make()
    made.inner = [x]
    i = 0
    while i < 3 and (y > 0).any():
        i = i + 1
        before = made
        made = make()
        made.inner = [before.inner[0] + i]
    made.inner.append(x)
    return made.inner, made


def one_of_two_has_the_list(make: Any, x: Any, y: Any) -> Any:
    a, b = make(), make()
    a.inner, b.inner = [x], [x, x]
    made = a
    if x.sum() > 1:
        made = b
    made.inner.append(y)
    return a, b, made is a


def in_a_list_that_grows_on_a_path(make: Any, x: Any, y: Any) -> Any:
    out = [with_values(make, x)]
    if x.sum() > 1:
        more = make()
        more.k, more.name = x + 1, "more"
        out.append(more)
    return [one.k for one in out], [one.name for one in out]


def swapped(make: Any, x: Any, y: Any) -> Any:
    a, b = with_values(make, x), with_values(make, x + 1, "b")
    i = 0
    while i < 2 and (y > 0).any():
        i = i + 1
        a, b = b, a
        if (x > 0).any():
            i = i + 1
    return a.k, b.k, a, b


def attribute_of_an_object(make: Any, x: Any, y: Any) -> Any:
    holder = Plain()
    holder.c = make()  # type: ignore[attr-defined]
    holder.c.k = x  # type: ignore[attr-defined]
    i = 0
    while i < 2 and (y > 0).any():
        i = i + 1
        holder.c = make()  # type: ignore[attr-defined]
        holder.c.k = x + i  # type: ignore[attr-defined]
    return holder.c.k, holder.c  # type: ignore[attr-defined]


def in_a_tuple(make: Any, x: Any, y: Any) -> Any:
    held = (with_values(make, x), x)
    i = 0
    while i < 2 and (y > 0).any():
        i = i + 1
        made = make()
        made.k = x + i
        held = (made, x)
    return held[0].k, held


def without_at_first(make: Any, x: Any, y: Any) -> Any:
    made = make()
    i = 0
    while i < 2 and (y > 0).any():
        i = i + 1
        made = make()
        made.k = x + i
    return getattr(made, "k", None), hasattr(made, "k"), made


def numbers_of_a_for_loop(make: Any, x: Any, y: Any) -> Any:
    made = with_values(make, 0)
    for i in range(int(y.sum())):
        made = make()
        made.k = i
    return made.k, made


def changed_in_a_loop(make: Any, x: Any, y: Any) -> Any:
    made = with_values(make, 0)
    for i in range(int(y.sum())):
        made.k = made.k + i
        made.t = x
    return made.k, getattr(made, "t", None), made


def made_by_a_function(make: Any, x: Any, y: Any) -> Any:
    def of(value: Any) -> Any:
        made = make()
        made.k = value
        return made

    made = of(x)
    for i in range(int(y.sum())):
        made = of(made.k + i)
    return made.k, made


def returned_from_a_loop(make: Any, x: Any, y: Any) -> Any:
    made = with_values(make, x)
    for i in range(int(y.sum())):
        made = make()
        made.k = x + i
        if x.sum() > 1:
            return made.k, made
    return made.k, made


OF_CONTAINERS = (
    equal_on_both_paths, other_on_each_path, other_names_on_each_path, one_path_makes_another, set_on_one_path,
    made_in_a_loop, made_of_the_one_before, two_names, known_in_the_loop_only, made_on_paths_of_a_loop,
    a_list_as_an_attribute, one_of_two_has_the_list, in_a_list_that_grows_on_a_path, swapped, attribute_of_an_object,
    in_a_tuple, without_at_first, numbers_of_a_for_loop, changed_in_a_loop, made_by_a_function, returned_from_a_loop,
)  # fmt: skip


def calls(make: Any) -> list[tuple[Any, ...]]:
    return [(make, x.requires_grad_(needs), y) for needs in (False, True)
            for x in (torch.zeros(2), torch.ones(2)) for y in (torch.zeros(2), torch.ones(2))]  # fmt: skip


@pytest.mark.sample(8)
@pytest.mark.parametrize("make", CONTAINERS)
@pytest.mark.parametrize("function", OF_CONTAINERS)
def test_containers_keep_their_attributes(function: Callable[..., Any], make: Any) -> None:
    check(function, *calls(make), paths=("program",))


@not_to_static
def rename(one: Any) -> None:
    one.name = "renamed"
    one.k = 3


def renamed_by_code_left_alone(make: Any, x: Any, y: Any) -> Any:
    made = with_values(make, x)
    rename(made)
    return made.name, made.k, made


@pytest.mark.parametrize("make", CONTAINERS)
def test_code_left_alone_changes_attributes(make: Any) -> None:
    check(renamed_by_code_left_alone, *calls(make), paths=("program",))


class Noted(collections.Counter[str]):
    """Python's own constructor calls its method."""

    def __init__(self, text: str) -> None:
        self.called = 0
        super().__init__(text)

    def __setitem__(self, key: str, value: int) -> None:
        self.called += 1
        super().__setitem__(key, value)


def test_pythons_own_code_calls_methods_that_change_attributes() -> None:
    def count(x: Any) -> Any:
        made = Noted("abracadabra")
        made["a"] = 2
        return made.called, made, x

    check(count, (torch.ones(2),))


@pytest.mark.sample(3)
@pytest.mark.parametrize("make", [List, Dict, Deque])
@pytest.mark.parametrize("function", [other_on_each_path, made_in_a_loop, a_list_as_an_attribute, in_a_tuple])
def test_containers_keep_their_attributes_when_loaded(function: Any, make: Any, tmp_path: Path) -> None:
    some = [(x, y) for _, x, y in calls(make)]
    bound = functools.partial(function, make)
    static = to_static(bound)
    static(*some[0])
    check_saved(bound, static, tmp_path / "saved.d2s", *some, paths=("program",))


@pytest.mark.parametrize("make", [one for one in CONTAINERS if one is not Plain])
def test_containers_with_attributes_are_refused_in_lists_that_grow(make: Any) -> None:
    def grown(x: Any, y: Any) -> Any:
        out = []
        for i in range(int(y.sum())):
            made = make()
            made.k = x * i
            out.append(made)
        return [one.k for one in out]

    with pytest.raises(TraceError, match="D2S251"):
        to_static(grown)(torch.ones(2), torch.ones(2))


class Pair(collections.namedtuple("Pair", "a b")):
    tag = "plain"


@dataclasses.dataclass(frozen=True)
class Made:
    """A frozen dataclass whose constructor computes more."""

    a: Any
    b: Any
    tag = "plain"

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", self.a * 2)


@dataclasses.dataclass(frozen=True)
class Cached:
    a: Any
    b: Any
    tag = "plain"

    @functools.cached_property
    def k(self) -> Any:
        return self.a * 2


@dataclasses.dataclass
class Changed:
    a: Any
    b: Any
    tag = "plain"

    def __post_init__(self) -> None:
        self.k = self.a * 2


@dataclasses.dataclass
class Mapped(dict[Any, Any]):
    """A dataclass that is a dict, without items for its fields."""

    a: Any = None
    b: Any = None
    tag = "plain"

    def __post_init__(self) -> None:
        self.k = self.a * 2


@dataclasses.dataclass
class Output(dict[Any, Any]):
    """As the results of transformers' models: items and attributes are the same things."""

    a: Any = None
    b: Any = None
    k: Any = None
    tag = "plain"

    def __post_init__(self) -> None:
        self.k = self.a * 2
        for name in ("a", "b", "k"):
            self[name] = getattr(self, name)


RECORDS = (Pair, Made, Cached, Changed, Mapped, Output)


def record(make: Any, a: Any, b: Any, tag: str = "own") -> Any:
    made = make(a, b)
    if make is Pair:
        made.k = a * 2
    if make is not Output:
        object.__setattr__(made, "tag", tag)
    return made


def made_straight(make: Any, x: Any, y: Any) -> Any:
    made = record(make, x, x + 1)
    return made.k, made.tag, made


def made_on_both_paths(make: Any, x: Any, y: Any) -> Any:
    if x.sum() > 1:
        made = record(make, x, x + 1)
    else:
        made = record(make, x + 5, x + 1, "else")
    return made.k, made.tag, made


def made_on_one_path(make: Any, x: Any, y: Any) -> Any:
    made = record(make, x, x + 1)
    if x.sum() > 1:
        made = record(make, x + 5, x + 1)
    return made.k, made.tag, made


def read_on_one_path(make: Any, x: Any, y: Any) -> Any:
    made = record(make, x, x + 1)
    z = x
    if x.sum() > 1:
        z = made.k
    return z, made.k, made.tag


def record_of_a_loop(make: Any, x: Any, y: Any) -> Any:
    made = record(make, x, x + 1)
    i = 0
    while i < 2 and (y > 0).any():
        i = i + 1
        made = record(make, made.k + i, x)
    return made.k, made.tag, made


def records_in_a_list_that_grows(make: Any, x: Any, y: Any) -> Any:
    out = []
    for i in range(int(y.sum())):
        out.append(record(make, x + i, x))
    return [one.k for one in out], [one.tag for one in out]


def records_in_a_list_of_a_path(make: Any, x: Any, y: Any) -> Any:
    out = [record(make, x, x)]
    if x.sum() > 1:
        out.append(record(make, x + 1, x))
    return [(one.k, one.tag) for one in out]


def records_that_are_returned(make: Any, x: Any, y: Any) -> Any:
    out = []
    for i in range(int(y.sum())):
        out.append(record(make, x + i, x))
    return out


OF_RECORDS = (
    made_straight, made_on_both_paths, made_on_one_path, read_on_one_path, record_of_a_loop,
    records_in_a_list_that_grows, records_in_a_list_of_a_path, records_that_are_returned,
)  # fmt: skip


@pytest.mark.sample(3)
@pytest.mark.parametrize("make", RECORDS)
@pytest.mark.parametrize("function", OF_RECORDS)
def test_records_keep_their_attributes(function: Callable[..., Any], make: Any) -> None:
    if make is Cached and function is read_on_one_path:
        with pytest.raises(TraceError, match="D2S277"):
            to_static(function)(make, torch.ones(2), torch.ones(2))
        return
    check(function, *calls(make), paths=("program",))


@pytest.mark.parametrize("make", RECORDS)
def test_records_that_are_arguments_keep_their_attributes(make: Any) -> None:
    def read(made: Any, y: Any) -> Any:
        if y.sum() > 1:
            return made.k + made.a, made.tag
        return made.k * made.b, made.tag

    check(read, *[(record(make, x, x), y) for _, x, y in calls(make)[:4]], paths=("program",))


def test_an_equal_list_that_a_loop_makes_is_another_one() -> None:
    def attribute(x: Any, y: Any) -> Any:
        holder = Plain()
        holder.c = first = [1]  # type: ignore[attr-defined]
        i = 0
        while i < 2 and (y > 0).any():
            i = i + 1
            holder.c = [1]  # type: ignore[attr-defined]
        holder.c.append(2)  # type: ignore[attr-defined]
        return first, holder.c, holder.c is first  # type: ignore[attr-defined]

    def shared(x: Any, y: Any) -> Any:
        c = first = {"a": 1}

        def again() -> None:
            nonlocal c
            c = {"a": 1}

        for _ in range(int(y.sum())):
            again()
        c["b"] = 2
        return first, c, c is first

    for function in (attribute, shared):
        check(function, *[(torch.ones(2), y) for y in (torch.zeros(2), torch.ones(2))])


def test_default_factories_in_lists_that_grow(tmp_path: Path) -> None:
    def grown(x: Any, y: Any) -> Any:
        out = []
        for _ in range(int(y.sum())):
            made = collections.defaultdict(list)
            made["a"].append(x)
            out.append(made)
        return out

    def of_two(x: Any, y: Any) -> Any:
        out: list[Any] = [collections.defaultdict(int, a=1)]
        if y.sum() > 0:
            out.append(collections.defaultdict(float, a=2))
        return [one.default_factory for one in out], out

    some = [(torch.ones(2), y) for y in (torch.zeros(2), torch.ones(2))]
    check_saved(grown, check(grown, *some), tmp_path / "saved.d2s", *some)
    check(of_two, *some)
