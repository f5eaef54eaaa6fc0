"""Instances of dataclasses that can be changed are objects: joins and loops keep which one is which."""

from __future__ import annotations

import copy
import dataclasses
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch

import dy2static
from tests.oracle import check

X = torch.tensor([1.0, 2.0, 3.0])
CALLS = [
    (X,), (-X,), (torch.tensor([1.0, -1.0, -1.0]),), (torch.tensor([1.0, -1.0, 0.5]),), (X.clone().requires_grad_(),),
]  # fmt: skip
"""Three positive items (the sum is, too), none, one, two."""


@dataclass
class D:
    value: Any
    hits: int = 0


@dataclass
class Post:
    value: Any
    items: list[Any] = field(default_factory=list)
    total: Any = field(init=False)

    def __post_init__(self):
        self.total = self.value.sum()
        self.extra = self.value + 1


@dataclass
class Slotted:
    __slots__ = ("hits", "value")
    value: Any
    hits: Any


@dataclass(frozen=True)
class Frozen:
    value: Any
    hits: int = 0


@dataclass(eq=False)
class Sub(D):
    def push(self, a):
        self.value = self.value + a
        self.hits += 1

    @property
    def double(self):
        return self.value * 2

    @classmethod
    def of(cls, x):
        return cls(x + 1)


def older_or_made(x):
    first = D(x)
    box = D(x * 2) if x.sum() > 0 else first
    box.hits = 7
    return first, box.value, box.hits, first is box


def store_to_the_older(x):
    first = D(x)
    box = D(x * 2) if x.sum() > 0 else first
    first.hits = 7
    first.value = first.value + 1
    return first.value, box.value, box.hits, box is first


def both_made(x):
    if x.sum() > 0:
        a = D(x)
        b = a
    else:
        a = D(x * 2, 1)
        b = D(x * 3, 2)
    b.hits += 5
    b.value = b.value * a.hits
    return a.value, a.hits, b.value, b.hits, a is b


def swapped(x):
    a, b = D(x), D(x + 1, 1)
    first, second = a, b
    if x.sum() > 0:
        a, b = b, a
    a.hits = 10
    b.value = a.value * 2
    return first, second, a.hits, b.value, a is first, b is first, a is second


def made_and_swapped(x):
    a, b = D(x), D(x + 1, 1)
    old = a
    if x.sum() > 0:
        c = D(x * 3, 4)
        a, b = b, c
        c.hits = 9
    a.hits += 1
    b.hits += 2
    return a.hits, b.hits, a.value, b.value, old.hits, old is a


def stored_inside(x):
    first = D(x)
    box = first
    if x.sum() > 0:
        box.hits = 3
        box = D(x * 2, box.hits)
        box.hits += 1
        first.value = x * 5
    else:
        first.hits = 8
    box.value = box.value + first.hits
    return first.value, first.hits, box.value, box.hits


def nested(x):
    first = D(x)
    box = first
    if x.sum() > 0:
        if x[1] > 0:
            box = D(x * 2)
        box.hits += 1
    box.hits += 2
    return first.hits, box.hits, first is box


def of_unequal_kinds(x):
    box = D(x) if x.sum() > 0 else Sub(None, 3)
    box.hits += 1
    return box.hits, box.value is None


def other_kind_or_none(x):
    box = None
    if x.sum() > 0:
        box = D(x)
        keep = box
        keep.hits = 4
    if box is not None:
        return box.hits, box.value
    return None


def in_a_list(x):
    box = D(x)
    held = [box, D(x * 2)]
    if x.sum() > 0:
        held = [held[1], held[0]]
    held[0].hits = 3
    box.value = x * 7
    return box.hits, held[0].hits, held[1].hits, held[0].value, held[0] is box


def in_a_dict(x):
    box = D(x)
    d = {"a": box}
    if x.sum() > 0:
        d["a"] = D(x * 2)
    d["a"].hits = 3
    box.value = x + 4
    return box.hits, d["a"].value, d["a"] is box


def in_another(x):
    inner = D(x)
    outer = D(inner)
    if x.sum() > 0:
        outer = D(D(x * 2))
    outer.value.hits = 3
    inner.value = inner.value + 1
    return inner.hits, outer.value.value, outer.value is inner


def in_a_frozen_one(x):
    inner = D(x)
    outer = Frozen(inner) if x.sum() > 0 else Frozen(D(x * 2), 1)
    outer.value.hits = 3
    return inner.hits, outer.value is inner, outer.value.value, outer.hits


def no_fields(x):
    first = D(x)
    first.note = x + 3
    box = first
    if x.sum() > 0:
        box = D(x * 2)
        box.note = x * 4
    box.note = box.note + 1
    return first.note, box.note


def post_init(x):
    a = Post(x)
    if x.sum() > 0:
        b = Post(x * 2)
        b.items.append(x)
    else:
        b = a
    b.total = b.total + 1
    b.items.append(b.extra)
    return a.total, a.items[-1:], b.total, b.extra, len(b.items), a is b


def slots(x):
    a = Slotted(x, 1)
    b = Slotted(x * 2, 2) if x.sum() > 0 else a
    b.hits += 1
    for j in range((x > 0).sum()):
        b = Slotted(b.value + j, b.hits)
    return a.hits, b.hits, b.value


def methods(x):
    first = Sub(x)
    box = first
    for _ in range((x > 0).sum()):
        box = Sub(x)
        box.push(x)
        first.push(box.value)
    if x.sum() > 0:
        box = first
    box.push(x * 2)
    return first.value, first.hits, box.value, box is first


def copies(x):
    first = D(x)
    if x.sum() > 0:
        box = copy.copy(first)
        other = dataclasses.replace(first, hits=3)
    else:
        box = first
        other = first
    box.hits += 1
    other.value = other.value * 2
    return first.hits, first.value, box.hits, other.hits, other.value


def of_a_choice(x):
    first = D(1.5)
    box = D(D(2), 3) if x.sum() > 0 else first
    new = dataclasses.replace(box, hits=9)
    new.hits += 1
    names = [f.name for f in dataclasses.fields(box)]
    held = D(box, 1)
    parts = dataclasses.asdict(held)
    parts["value"]["hits"] += 1
    return new, box.hits, names, parts, dataclasses.astuple(box), dataclasses.is_dataclass(box), first.hits


def compared(x):
    first = D(1, 2)
    box = D(1, 2) if x.sum() > 0 else first
    return box == first, box is first, box == D(1, 3)


def matched(x):
    box = D(x) if x.sum() > 0 else D(x * 2, 4)
    match box:
        case D(value=v, hits=0):
            return v + 1
        case D(value=v):
            return v - 1


def frozen(x):
    a = Frozen(x)
    b = Frozen(x * 2, 1) if x.sum() > 0 else a
    for j in range((x > 0).sum()):
        b = Frozen(b.value + j, b.hits)
    return a, b


def returned(x):
    first = D(x)
    box = D(x * 2) if x.sum() > 0 else first
    box.hits = 2
    return first, box, [box, first]


def joined_in_a_function(x):
    def make(a):
        if a.sum() > 0:
            return D(a, 1)
        return D(a * 2, 2)

    box, other = make(x), make(-x)
    box.hits += other.hits
    other.value = other.value + box.value
    return box.hits, other.value, box is other


def shared_in_a_tuple(x):
    a = D(x)
    both = (a, a) if x.sum() > 0 else (a, D(x * 2))
    both[1].hits = 4
    return both[0].hits, both[0] is both[1]


def raised_and_caught(x):
    box = D(x)
    try:
        if x.sum() > 0:
            box = D(x * 2)
            raise ValueError("no")
        box.hits = 2
    except ValueError:
        box.hits += 5
    return box


def property_of_one_of_two(x):
    box = Sub.of(x) if x.sum() > 0 else Sub(x * 2)
    return box.double, isinstance(box, D), hasattr(box, "note")


AS_EAGER = [
    older_or_made, store_to_the_older, both_made, swapped, made_and_swapped, stored_inside, nested, of_unequal_kinds,
    other_kind_or_none, in_a_list, in_a_dict, in_another, in_a_frozen_one, no_fields, post_init, slots, methods,
    copies, of_a_choice, compared, matched, frozen, returned, joined_in_a_function, shared_in_a_tuple,
    raised_and_caught, property_of_one_of_two,
]  # fmt: skip


@pytest.mark.parametrize("function", AS_EAGER, ids=lambda f: f.__name__)
def test_as_eager(function):
    check(function, *CALLS)


class Holder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.state = D(None)

    def forward(self, x):
        before = self.state
        if x.sum() > 0:
            self.state = D(x.sum(), before.hits + 1)
        self.state.hits += 1
        return self.state.hits, before is self.state


def test_a_module_holds_one():
    eager, static = Holder(), Holder()
    converted = dy2static.to_static(static)
    for (x,) in CALLS:
        assert converted(x) == eager(x)
        assert static.state.hits == eager.state.hits


def argument_or_made(x, given):
    box = D(x * 2) if x.sum() > 0 else given
    box.hits = 7
    return box.value, box is given


@pytest.mark.parametrize("x", [X, -X])
def test_an_argument_is_stored_to_where_it_was_taken(x):
    eager, static = D(x), D(x)
    expected = argument_or_made(x, eager)
    got = dy2static.to_static(argument_or_made)(x, static)
    assert torch.equal(got[0], expected[0]) and got[1] is expected[1]
    assert static.hits == eager.hits


@pytest.mark.parametrize("x", [X, -X])
def test_one_object_is_returned_as_one(x):
    first, box, held = dy2static.to_static(returned)(x)
    assert held[0] is box and held[1] is first and (box is first) == bool(x.sum() <= 0)
