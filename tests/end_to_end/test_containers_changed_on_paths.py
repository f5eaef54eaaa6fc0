"""Containers of users' classes, and those that hold different things on different paths: changed, asked, returned."""

from __future__ import annotations

import collections
import enum
from collections import deque
from typing import Any

import pytest
import torch

import dy2static
from dy2static import TraceError
from tests.oracle import check

X = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
CALLS = [(X,), (-X.detach(),), (torch.tensor([1.0, -1.0, 0.5]),)]


class Stack(list):  # type: ignore[type-arg]
    def push(self, t):
        self.append(t)
        return self

    @property
    def depth(self):
        return len(self)


class Named(list):  # type: ignore[type-arg]
    name = "plain"


class Counting(list):  # type: ignore[type-arg]
    def __init__(self, *items):
        super().__init__(*items)
        self.n = 0

    def push(self, t):
        self.append(t)
        self.n += 1
        return self

    def __getitem__(self, index):
        return super().__getitem__(index) * (self.n + 1) if self.n else super().__getitem__(index)


class Own(list):  # type: ignore[type-arg]
    def __getitem__(self, index):
        return super().__getitem__(index) * 3

    def __setitem__(self, index, value):
        super().__setitem__(index, value + 1)

    def __len__(self):
        return super().__len__() + 10


class Turned(list):  # type: ignore[type-arg]
    def __iter__(self):
        for t in super().__iter__():
            yield t * 5


class Tagged(dict):  # type: ignore[type-arg]
    tag = "d"

    def put(self, key, value):
        self[key] = value
        self.tag = "e" + key
        return self


class Last(deque):  # type: ignore[type-arg]
    pass


class Side(enum.Enum):
    LEFT = "left"


class Total:
    def __init__(self):
        self.value = 0

    def __iadd__(self, t):
        if t.sum() > 0:
            self.value = self.value + t
        else:
            self.value = self.value - t
        return self


class Positive(list):  # type: ignore[type-arg]
    def __iadd__(self, t):
        if t.sum() > 0:
            self.append(t)
        return self


def a_property(x):
    s = Stack([x])
    if x.sum() > 0:
        s.append(x)
    return s.depth, list(s), x * 1


def an_attribute_of_one_path(x):
    m = Named()
    if x.sum() > 0:
        m.name = "other"
    return m.name, x * 1


def a_method_that_gives_itself(x):
    d = Tagged(a=x)
    if x.sum() > 0:
        d["b"] = 2
    e = d.put("c", x)
    return e is d, d, e.tag, d.tag, x * 1


def one_of_two(x):
    d = Tagged(a=x)
    if x.sum() > 0:
        d["b"] = 2
    other = d
    if x[0] > 0:
        other = Tagged()
    other.put("z", 1)
    other.tag = "q"
    return d, other, d.tag, other is d, x * 1


def items_by_a_method(x):
    s = Counting([x])
    if x.sum() > 0:
        s.append("a")
    s.push(x)
    s.push(x)
    return s[0], s, s.n, x * 1


def every_item_by_a_method(x):
    s = Own([x])
    if x.sum() > 0:
        s.append(x * 2)
    s[-1] = x
    return s[0], s[-1], len(s), s, x * 1


def iterated_by_a_method(x):
    s = Turned([x])
    if x.sum() > 0:
        s.append(x * 2)
    return x * 1


def a_text_beside_a_list(x):
    log = []
    if x.sum() < 1.5:
        log.append([1.0])
    n = int(x.sum() * 4)
    log.append(f"{n}")
    return log


def returned(x):
    s, numbers, empty = Stack([x]), Stack(), Named()
    s.push(x * 2)
    numbers.append(1)
    empty.name = "own"
    return s, numbers, empty, x * 1


def returned_after_it_grew(x):
    s = Last([1, 2], maxlen=3)
    if x.sum() > 0:
        s.append(3)
        s.append(4)
    return s, x * 1


def counted_by_an_object(x):
    count: Any = collections.Counter()
    count[Side.LEFT] += 1
    return count, x * 1


def a_set_that_shrinks(x):
    s = {"a", 1}
    if x.sum() > 0:
        s.add("b")
    s -= {"b"}
    return s, x * 1


def a_set_that_grows(x):
    s = {"a", 1}
    if x.sum() > 0:
        s.add("b")
    s |= {"c"}
    t = s
    t &= {"c", 1}
    return s, t is s, x * 1


def one_of_two_sets(x):
    s = {"a"}
    if x.sum() > 0:
        pass
    else:
        s = s | {"b"}
    s.update(["a", 2])
    s -= {"b"}
    return s, x * 1


def a_set_that_a_loop_meets(x):
    s = {"a", 1}
    if x.sum() > 0:
        s.add(2)
    for _ in range(int((x > 0).sum())):
        s &= {"a", "b", 1}
    return s, x * 1


def a_dict_that_takes_another(x):
    d = {"a": 1}
    if x.sum() > 0:
        d["b"] = 1
    same = d
    if x[0] > 0:
        d = {"z": 1}
    d |= {"d": 1}
    return d, same, x * 1


def a_dict_in_a_dict(x):
    d: Any = {}
    if x.sum() > 0:
        d["b"] = 2
    g: Any = {}
    g.setdefault("k", d)
    g.update({"m": d})
    d["c"] = x
    if x[1] > 0:
        d["e"] = x
    return g, g["k"] is d, g["m"] is d, x * 1


def a_dict_of_several_that_takes_another(x):
    found, key = {"up": x}, None
    for _ in range(int((x > 0).sum())):
        if x.sum() > 1:
            key = 0
        found["up"] = 1
    if x.sum() > 0.5:
        found |= {key: x + 1}
    return found


def a_list_of_several_that_takes_more(x):
    found = [x]
    for _ in range(int((x > 0).sum())):
        found[0] = 1
    if x.sum() > 0.5:
        found += [x + 1]
    found *= 2
    return found


def a_set_made_anew_and_changed(x):
    names, found = {"a", 1}, {"a": x, "b": x}
    if x[0] > 0.5:
        found = {"a": x}
    for _ in range(int((x > 0).sum())):
        names.update(["a", 2])
        found = {name: value * 2 for name, value in found.items()}
        names = names | {"a"}
    return names, found


def in_place_by_a_method(x):
    a, b = Total(), Positive()
    a += x
    b += x
    b += x
    return a.value, list(b), x * 1


def a_chain_of_maps(x):
    p, q = x * 0.5, x * 2
    d = {"up": p}
    name = "none" if x.sum() > 0 else "up"
    q = collections.ChainMap({name: q}, d).get("up", q)
    return p, q, d, d["up"] is p


def made_in_a_loop(x):
    if x.sum() < 100:
        for _ in range(int((x > 0).sum())):
            s = Stack([x * 2, x])
            s.extend([x])
    return x * 1


def put_in_on_a_path_of_a_loop(x):
    rows: list[Any] = []
    if x.sum() > 0:
        n = 1
    else:
        n = 2
        for _ in range(int((x < 0).sum())):
            if x.sum() > -100:
                continue
            rows.append({"t": x + 1})
    return x * n


def rows_made_anew(x):
    g: list[Any] = [[x]]
    if (x > 0).any():
        current: list[Any] = []
        g.append(current)
    else:
        for _ in range(int((x < 0).sum())):
            g = [row + [x] for row in g]
    return x * 1


WORKING = [
    a_property, an_attribute_of_one_path, a_method_that_gives_itself, one_of_two, items_by_a_method,
    every_item_by_a_method, iterated_by_a_method, returned, returned_after_it_grew, counted_by_an_object,
    a_set_that_shrinks, a_set_that_grows, one_of_two_sets, a_set_that_a_loop_meets,
    a_dict_that_takes_another, a_dict_in_a_dict, a_dict_of_several_that_takes_another,
    a_list_of_several_that_takes_more, a_set_made_anew_and_changed,
    in_place_by_a_method, a_chain_of_maps, made_in_a_loop, put_in_on_a_path_of_a_loop, rows_made_anew,
    a_text_beside_a_list,
]  # fmt: skip


@pytest.mark.parametrize("function", WORKING, ids=lambda f: f.__name__)
def test_as_eager(function: Any) -> None:
    check(function, *CALLS)


def test_each_call_makes_its_own() -> None:
    static = dy2static.to_static(returned)
    first, second = static(X), static(X)
    first[1].append(5)
    assert second[1] == [1] and static(X)[1] == [1]
    assert first[2] is not second[2]


def test_an_item_of_a_list_that_grew_may_be_any() -> None:
    """Which tensor an item is is only known while the Program runs."""

    def function(x):
        a = [x]
        if x.sum() > 0:
            a.append(x * 2)
        return a[0] is x, x * 1

    with pytest.raises(TraceError, match="D2S264"):
        check(function, *CALLS)
