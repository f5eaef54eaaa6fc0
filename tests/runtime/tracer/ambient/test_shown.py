"""Views, proxies and iterators: whose items they show, whatever these are by then."""

from __future__ import annotations

import collections
import itertools
import types
from collections import OrderedDict, UserDict, deque
from collections.abc import Callable
from typing import Any

import pytest

from runtime.tracer.ambient.shown import VIEWS, dict_behind, like, read_by, shows


class Keyed(dict):  # type: ignore[type-arg]
    pass


DICTS: list[Callable[[], Any]] = [
    lambda: {"a": 1}, lambda: OrderedDict(a=1), lambda: Keyed(a=1), lambda: collections.defaultdict(int, a=1),
    lambda: collections.Counter("a"),
]  # fmt: skip
SHOWN: dict[str, Callable[[Any], Any]] = {
    "keys": lambda d: d.keys(), "values": lambda d: d.values(), "items": lambda d: d.items(),
    "proxy": types.MappingProxyType,
}  # fmt: skip


@pytest.mark.parametrize("make", DICTS, ids=lambda make: type(make()).__name__)
@pytest.mark.parametrize("kind", SHOWN)
def test_what_shows_a_dict(kind: str, make: Callable[[], Any]) -> None:
    owner, other = make(), make()
    view = SHOWN[kind](owner)
    assert shows(view) and dict_behind(view) is owner and view is not owner
    other["b"] = 2
    made = like(view, other)
    assert type(made) is type(view) and dict_behind(made) is other
    assert list(made) == list(SHOWN[kind](other)) != list(view)


def test_the_views_there_are() -> None:
    assert len(VIEWS) == 6 and set(VIEWS.values()) == {"keys", "values", "items"}
    for make in DICTS:
        for kind in VIEWS.values():
            assert VIEWS[type(getattr(make(), kind)())] == kind


@pytest.mark.parametrize("value", [
    {}, [1], (1,), {1}, "a", 3, None, iter({}), iter([1]), range(3), UserDict(a=1), UserDict(a=1).keys(), dict,
], ids=lambda one: type(one).__name__)  # fmt: skip
def test_what_shows_nothing(value: Any) -> None:
    assert not shows(value)


def test_a_proxy_of_no_dict() -> None:
    assert dict_behind(types.MappingProxyType(UserDict(a=1))) is None


def test_a_class_is_shown_by_a_proxy() -> None:
    class Own:
        pass

    assert shows(Own.__dict__) and dict_behind(Own.__dict__) is not None and "__module__" in dict_behind(Own.__dict__)


ITERATORS: dict[str, Callable[[Any], Any]] = {
    "iter": iter, "reversed": reversed, "enumerate": enumerate, "zip": lambda xs: zip(xs, range(3)),
    "map": lambda xs: map(str, xs), "filter": lambda xs: filter(None, xs), "chain": itertools.chain,
    "islice": lambda xs: itertools.islice(xs, 2), "cycle": itertools.cycle, "product": itertools.product,
    "starmap": lambda xs: itertools.starmap(str, zip(xs)), "takewhile": lambda xs: itertools.takewhile(bool, xs),
    "pairs": lambda xs: itertools.pairwise(xs),
    "accumulate": itertools.accumulate, "zip_longest": lambda xs: itertools.zip_longest(xs, [1]),
    "groups": itertools.groupby, "nested": lambda xs: enumerate(zip(map(str, xs))),
    "chained": lambda xs: itertools.chain.from_iterable([xs]), "through a tuple": lambda xs: itertools.chain((1,), xs),
}  # fmt: skip
COPYING = {"product"}
"""It takes all items at once."""
CONTAINERS: list[Callable[[], Any]] = [
    lambda: [1, 2], lambda: {1: 2}, lambda: {1, 2}, lambda: OrderedDict({1: 2}), lambda: Keyed({1: 2}),
]  # fmt: skip


@pytest.mark.parametrize("make", CONTAINERS, ids=["list", "dict", "set", "ordered", "keyed"])
@pytest.mark.parametrize("kind", ITERATORS)
def test_what_an_iterator_goes_on_reading(kind: str, make: Callable[[], Any]) -> None:
    items = make()
    if kind == "reversed" and isinstance(items, set):
        return
    found = read_by(ITERATORS[kind](items))
    if kind in COPYING:
        assert all(one is not items for one in found)
    elif kind == "chained":
        assert any(one is items or one == [items] for one in found)
    else:
        assert any(one is items for one in found)


@pytest.mark.parametrize("make", [
    lambda items: iter(deque(items)), lambda items: reversed(deque(items)), lambda items: itertools.tee(items)[0],
], ids=["deque", "deque reversed", "tee"])  # fmt: skip
def test_other_iterators_of_pythons_own(make: Callable[[Any], Any]) -> None:
    assert read_by(make([1, 2])) != []


def test_through_a_view() -> None:
    owner = {"a": 1}
    for view in (owner.keys(), owner.values(), owner.items(), types.MappingProxyType(owner)):
        assert any(one is owner for one in read_by(iter(view)))
        assert any(one is owner for one in read_by(enumerate(view)))
        assert read_by(view) == [owner]


def test_several_at_once() -> None:
    one, other, key = [1], [2], {1: 2}
    found = read_by(zip(one, other, key))
    assert {id(each) for each in found} == {id(one), id(other), id(key)}


@pytest.mark.parametrize("value", [[1], {1: 2}, {1}, deque(), (1, [2]), 3, None, iter(()), iter("ab"), iter(range(3)),
                                   iter((1, 2)), itertools.count()], ids=lambda one: type(one).__name__)  # fmt: skip
def test_what_reads_nothing_that_may_change(value: Any) -> None:
    assert read_by(value) == []


def test_what_items_hold_is_their_own_matter() -> None:
    inner = [1]
    assert read_by(iter([inner])) == [[inner]]
    assert read_by(iter([[1], {"k": [2]}])) == [[[1], {"k": [2]}]]


def test_an_iterator_that_has_ended() -> None:
    items = [1]
    going = iter(items)
    list(going)
    assert read_by(going) == []


def test_however_many_iterators_are_in_each_other() -> None:
    items = [1]
    assert any(one is items for one in read_by(enumerate(zip(enumerate(zip(items, items)), itertools.count()))))
