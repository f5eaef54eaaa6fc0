"""Objects that a function comes by through a weak reference: nothing else may lead to them but a caller's variable."""

from __future__ import annotations

import dataclasses
import gc
import types
import weakref
from collections.abc import Callable
from typing import Any

import numpy
import pytest
import torch

from dy2static import to_static
from dy2static.errors import Dy2StaticError


class Point:
    pass


class Items(list):  # type: ignore[type-arg]
    pass


class Members(set):  # type: ignore[type-arg]
    pass


@dataclasses.dataclass(eq=False)
class Holder:
    a: Any = None


MADE: dict[str, Callable[[], Any]] = {
    "object": Point, "list": lambda: Items([1]), "set": lambda: Members([1]), "record": lambda: Holder(1),
    "module": lambda: torch.nn.Linear(1, 1), "function": lambda: lambda: 3, "class": lambda: type("Inner", (), {}),
    "array": lambda: numpy.ones(3), "generator": lambda: (one for one in range(3)),
}  # fmt: skip
W: Any = None


def is_it(x, kept):
    return weak_of() is kept.a, kept.a is weak_of(), x * 1


def given(x, kept):
    return weak_of(), x * 1


def held(x, kept):
    one = weak_of()
    return [one, {"one": one}], x * 1


def of_a_table(x, kept):
    return W.table["a"], W.table.get("a"), x * 1


def of_a_set(x, kept):
    return [one for one in W.members][0], x * 1


def on_a_path(x, kept):
    return weak_of() if x.sum() > 0 else 3, x * 1


def weak_of():
    return W.weak()


def objects_in(value: Any) -> list[Any]:
    if type(value) in (list, tuple):
        return [one for item in value for one in objects_in(item)]
    if type(value) is dict:
        return objects_in(list(value.values()))
    return [] if isinstance(value, torch.Tensor) else [value]


@pytest.mark.sample(8)
@pytest.mark.filterwarnings("ignore::dy2static.RetraceWarning")  # of what a table gives nobody says how old it is
@pytest.mark.parametrize("function", [is_it, given, held, of_a_table, of_a_set, on_a_path], ids=lambda f: f.__name__)
@pytest.mark.parametrize("kind", MADE)
def test_it_is_the_callers_object(kind: str, function: Any) -> None:
    kept = Holder(MADE[kind]())
    globals()["W"] = types.SimpleNamespace(
        weak=weakref.ref(kept.a), table=weakref.WeakValueDictionary(a=kept.a),
        members=weakref.WeakSet([kept.a] if kind not in ("list", "set", "array") else []))  # fmt: skip
    if function is of_a_set and not W.members:
        pytest.skip("it has no hash")
    static = to_static(function)
    for _ in range(2):
        for argument in (kept, None) if function is not is_it else (kept,):
            got = objects_in(static(torch.ones(1), argument))
            expected = objects_in(function(torch.ones(1), argument))
            assert len(got) == len(expected)
            assert all(mine is theirs for mine, theirs in zip(got, expected))


def test_it_may_die() -> None:
    one = Point()
    weak = weakref.ref(one)

    def function(x):
        return x * 7 if weak() is None else x * 2

    static = to_static(function)
    assert static(torch.ones(1)) == static(torch.ones(1)) == 2
    assert len(static.programs) == 1
    del one
    gc.collect()
    assert weak() is None
    assert static(torch.ones(1)) == 7


def test_a_list_is_changed() -> None:
    one = Items([1])
    weak = weakref.ref(one)

    def function(x):
        found = weak()
        found.append(x.sum())
        return x * len(found)

    static = to_static(function)
    assert [float(static(torch.ones(1))) for _ in range(3)] == [2, 3, 4]
    assert one == [1, 1, 1, 1]


def test_an_object_is_changed_on_a_path() -> None:
    one = Holder(1)
    weak = weakref.ref(one)

    def function(x):
        if x.sum() > 0:
            weak().a = weak().a + 1
        return x * weak().a

    static = to_static(function)
    assert [float(static(torch.tensor([value]))) for value in (1.0, -1.0, 1.0)] == [2, -2, 3]
    assert one.a == 3


def test_a_reference_made_inside_is_the_one_that_was_there() -> None:
    one = Holder(1)
    weak = weakref.ref(one)

    def function(x, held):
        return weakref.ref(held) is weak, weakref.ref(held), x * weakref.ref(held)().a

    static = to_static(function)
    for value in (1, 5):
        one.a = value
        same, found, result = static(torch.ones(1), one)
        assert same and found is weak and result == value


def test_a_reference_to_what_is_made_inside() -> None:
    def function(x):
        made = Holder(x * 2)
        weak = weakref.ref(made)
        weak().a = weak().a + 1
        return made.a, weak() is made

    static = to_static(function)
    for value in (1.0, 2.0):
        result, same = static(torch.tensor([value]))
        assert same is True and result == value * 2 + 1


GONE: dict[str, Callable[[Any], Any]] = {}


def _gone(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    GONE[function.__name__] = function
    return function


@_gone
def deleted(x):
    made = Holder(x)
    weak = weakref.ref(made)
    del made
    return x, weak() is None


@_gone
def bound_anew(x):
    made = Holder(x)
    weak = weakref.ref(made)
    made = 1
    return x * made, weak() is None


@_gone
def of_a_function(x):
    return x, _reference(x)() is None


def _reference(x):
    made = Holder(x)
    return weakref.ref(made)


@_gone
def out_of_a_list(x):
    items = [Holder(x), Holder(x)]
    weak = weakref.ref(items[0])
    items.pop(0)
    return x, weak() is None


@_gone
def out_of_an_attribute(x):
    holder = Holder(Holder(x))
    weak = weakref.ref(holder.a)
    holder.a = None
    return x, weak() is None


@pytest.mark.parametrize("name", GONE)
def test_what_nothing_leads_to_any_more(name: str) -> None:
    """The tracer keeps what the function made; eager does not."""
    assert GONE[name](torch.ones(1))[1] is True
    with pytest.raises(Dy2StaticError, match="no variable leads to") as caught:
        to_static(GONE[name])(torch.ones(1))
    assert caught.value.code == "D2S264"


def test_what_something_leads_to() -> None:
    def function(x):
        items, holder = [Holder(x)], Holder(Holder(x))
        first, second = weakref.ref(items[0]), weakref.ref(holder.a)
        return first() is items[0], second().a, [one() is None for one in (first, second)]

    assert to_static(function)(torch.ones(1)) == (True, torch.ones(1), [False, False])
