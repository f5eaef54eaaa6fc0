"""Tuples, lists and deques of users' classes taken apart by unpacking, stars and patterns, and tuples of such classes
that paths and iterations make."""

from __future__ import annotations

import functools
from collections import deque
from typing import Any

import pytest
import torch

from dy2static import TraceError
from tests.oracle import check, check_saved

CALLS = tuple((torch.tensor(a, requires_grad=True), torch.tensor(b, requires_grad=True)) for a, b in (
    ([1.0, 2.0, 3.0], [1.0, -0.5, 3.0]), ([-1.0, -2.0, -3.0], [1.0, -2.0, -3.0]), ([0.5, -0.25, 2.0], [-0.5, 0.2, 2.0]),
    ([-0.5, 0.25, -0.1], [0.5, 0.25, 0.1])))  # fmt: skip
PLAIN = tuple(tuple(tensor.detach() for tensor in call) for call in CALLS)


def iterating(base: type) -> Any:
    class Scaled(base):
        def __iter__(self):
            return iter([item * 2 for item in base.__iter__(self)])

    return Scaled


def subscripted(base: type) -> Any:
    class Other(base):
        def __getitem__(self, i):
            return "item"

    return Other


def measured(base: type) -> Any:
    class Long(base):
        def __len__(self):
            return 42

    return Long


class Words(tuple):
    def __iter__(self):
        return iter(("z", "w"))


def given(*args):
    return args


def unpacked(v):
    a, b = v
    return a, b


def unpacked_with_a_star(v):
    a, *b = v
    return a, b


def displayed(v):
    return [*v], (*v, 1)


def starred(v):
    return given(*v)


def matched(v):
    match v:
        case (a, b):
            return a, b
        case (a, *b):
            return a, b, "more"


def matched_behind(v):
    match v:
        case (*a, b):
            return a, b


def matched_without_the_rest(v):
    match v:
        case (a, *_):
            return a


def listed(v):
    return list(v), tuple(v), [item for item in v]


TAKEN = [unpacked, unpacked_with_a_star, displayed, starred, matched, matched_behind, matched_without_the_rest, listed]
MADE = [make(base) for base in (tuple, list, deque) for make in (iterating, subscripted, measured)] + [Words]


@pytest.mark.parametrize("kind", MADE, ids=[f"{kind.__qualname__} {kind.__mro__[1].__name__}" for kind in MADE])
@pytest.mark.parametrize("take", TAKEN)
def test_taken_apart(take: Any, kind: Any) -> None:
    def of_several(x, y):
        v = kind((x, y))
        if x.sum() > 0:
            v = kind((y, x))
        return take(v)

    def chosen(x, y):
        return take(kind((x, y)) if x.sum() > 0 else kind((y, x * 2)))

    def of_one(x, y):
        return take(kind((x, y)))

    for program in (of_several, chosen, of_one):
        check(program, *CALLS, none_is_zero=True)
    check(of_several, *PLAIN)


# -- joins


class Pair(tuple):
    pass


class Vector(tuple):
    __slots__ = ()

    def __new__(cls, *items):
        return super().__new__(cls, items)

    @property
    def first(self):
        return self[0]

    def __add__(self, other):
        return Vector(*(a + b for a, b in zip(self, other)))


class Odd(tuple):
    def __iter__(self):
        return iter((1, 2))

    def __len__(self):
        return 7

    def __getitem__(self, i):
        return "item", tuple.__getitem__(self, i)


class Named(tuple):
    def __new__(cls, items, name):
        made = super().__new__(cls, items)
        made.name = name
        return made


class Summed(tuple):
    @functools.cached_property
    def total(self):
        return len(self)


def from_a_branch(x, y):
    v = Pair((x, y))
    if x.sum() > 0:
        v = Pair((x * 2, y))
    return v, v[0], len(v), type(v) is Pair, v[1] is y, v + (1,), [t.sum() for t in v]


def from_a_loop(x, y):
    v, i = Vector(x, y), 0
    while x.sum() > i and i < 3:
        v = Vector(v.first * 2, y)
        i += 1
    return v, v.first, v[1] is y, v + v


def from_iterations(x, y):
    v = Vector(x * 1, y)
    for t in x:
        if t > 0:
            v = v + Vector(t, y)
    return v


def the_last_of_a_list(x, y):
    items = [Pair((x, y))]
    for t in x:
        if t > 0:
            items.append(Pair((t, y)))
    return items[-1][0], items[-1]


def grown(x, y):
    items = []
    for t in x:
        if t > 0:
            items.append(Pair((t * 2, 1)))
    return items, len(items)


def odd(x, y):
    v = Odd((x, y))
    if x.sum() > 0:
        v = Odd((x * 2, y))
    return v, v[0], [*v], len(v)


def of_another_length(x, y):
    v = Pair((x * 3,)) if x.sum() > 0 else Pair((x * 2, y))
    return v, len(v), v[0]


def of_another_class(x, y):
    v = Pair((x * 3, y)) if x.sum() > 0 else (x * 2, y)
    return v, len(v), v[0]


def or_none(x, y):
    v = Pair((x * 1, y)) if x.sum() > 0 else None
    return v, v is None


def nested(x, y):
    v = Pair((Vector(x * 1, y), {"a": x}))
    if x.sum() > 0:
        v = Pair((Vector(x * 2, y), {"a": y}))
    return v, v[0] + v[0], v[1]["a"]


def identity(x, y):
    w = Pair((x * 3, y))
    v = w
    if x.sum() > 0:
        v = Pair((x * 2, y))
    return v is w, v, w


def with_a_list(x, y):
    v = Pair(([x], y))
    if x.sum() > 0:
        v = Pair(([x * 2], y))
    v[0].append(3)
    return v


def from_an_exception(x, y):
    try:
        if x.sum() > 0:
            raise ValueError(Pair((x * 2, y)))
        v = Pair((x * 3, y))
    except ValueError as error:
        v = error.args[0]
    return v


def from_a_recursion(x, y):
    def f(n, held):
        if n == 0 or held[0].sum() > 30:
            return held
        return f(n - 1, Pair((held[0] * 2, held[1])))

    return f(3, Pair((x, y)))


def an_attribute_later(x, y):
    w = Pair((x * 3, y))
    v = w
    if x.sum() > 0:
        v = Pair((y, x))
    v.name = 1
    return hasattr(w, "name"), v.name


def an_attribute_of_the_state(x, y):
    v = Named((x, y), "a")
    if x.sum() > 0:
        v = Named((y, x), "b")
    return v, v.name, v[0]


def a_cached_property(x, y):
    v = Summed((x, y))
    if x.sum() > 0:
        v = Summed((y, x, x))
    return v.total, v[0]


def keys(x, y):
    held = {Pair((1, 2)): x, Pair((3, 4)): y}
    return held[Pair((1, 2)) if x.sum() > 0 else Pair((3, 4))]


JOINED = [from_a_branch, from_a_loop, from_iterations, the_last_of_a_list, grown, odd, of_another_length,
          of_another_class, or_none, nested, identity, with_a_list, from_an_exception, from_a_recursion,
          an_attribute_later, an_attribute_of_the_state, a_cached_property, keys]  # fmt: skip


@pytest.mark.parametrize("program", JOINED)
def test_joined(program: Any) -> None:
    check(program, *CALLS, none_is_zero=True)
    check(program, *PLAIN)


@pytest.mark.parametrize("program", [from_a_branch, from_a_loop, grown, of_another_length])
def test_joined_in_a_file(program: Any, tmp_path: Any) -> None:
    def items(x, y):
        found = program(x, y)[0]
        return [tuple(one) for one in found] if isinstance(found, list) else tuple(found)

    static = check(items, *PLAIN)
    check_saved(items, static, tmp_path / "program.d2s", PLAIN[0])


def test_items_of_a_path_beside_attributes() -> None:
    def f(x, y):
        v = Named((x, y), "a")
        if x.sum() > 0:
            v = Named((x * 2, y), "b")
        return v[0]

    with pytest.raises(TraceError, match="D2S220"):
        check(f, *CALLS)
