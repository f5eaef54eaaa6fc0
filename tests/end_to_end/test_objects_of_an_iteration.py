"""Objects that an iteration of a staged loop makes: later iterations and the code after it know them as one."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch

import dy2static
from dy2static import TraceError
from tests.oracle import check

X = torch.tensor([1.0, 2.0, 3.0])
CALLS = [
    (X,), (-X,), (torch.tensor([1.0, -1.0, -1.0]),), (torch.tensor([1.0, -1.0, 0.5]),), (X.clone().requires_grad_(),),
]  # fmt: skip
"""Three iterations, none, one, two."""
STORE: dict[str, object] = {}


class Box:
    def __init__(self, value, hits=0):
        self.value, self.hits = value, hits

    def push(self, a):
        self.value = self.value + a
        self.hits += 1
        return self.value


@dataclass
class Record:
    value: object
    hits: int = 0


class Slots:
    __slots__ = ("a", "b")

    def __init__(self, a):
        self.a = a


class Table:
    def __init__(self, v):
        self.v, self.items, self.table = v, [v], {"n": 0, "p": v}


def made_anew(x):
    for j in range((x > 0).sum()):
        box = Box(x * 2)
    return box.value, box.hits


def two_names(x):
    keep = None
    for _ in range((x > 0).sum()):
        box = Box(x * 2)
        keep = box
        box.hits = 5
    if keep is not None:
        box.hits += 1
        return keep.hits, keep is box
    return 0, False


def replaced_in_some_iterations(x):
    first = Box(x)
    box = first
    for j in range((x > 0).sum()):
        box.hits += 1
        if j > 0:
            box = Box(x * 2, j)
        box.push(x)
    return first.hits, box is first, box.hits, box.value, first.value


def replaced_never(x):
    first = Box(x)
    box = first
    for j in range((x > 0).sum()):
        if x.sum() > 100:
            box = Box(x * 2)
    box.hits = 7
    return first.hits, box is first


def the_best(x):
    keep = Box(x, -1)
    for j in range((x > 0).sum()):
        box = Box(x * j, j)
        if box.value.sum() < 10:
            keep = box
        box.hits += 1
        keep.hits += 10
    return keep.value, keep.hits


def the_one_before(x):
    before = box = None
    for j in range((x > 0).sum()):
        before = box
        box = Box(x * j, j)
        if before is not None:
            box.value = box.value + before.value
            before.hits += 7
    return None if before is None else (before.value, before.hits, box.value, box.hits, before is box)


def item_of_a_list(x):
    xs = [Box(x), Box(x + 1)]
    for j in range((x > 0).sum()):
        xs[0] = Box(x * j, j)
        b = xs[0]
        b.push(x)
    xs[0].push(x)
    return xs[0].value, xs[1].value, xs[0].hits


def value_of_a_dict(x):
    d = {"k": None}
    for j in range((x > 0).sum()):
        d["k"] = Box(x, j)
        e = d["k"]
    if d["k"] is None:
        return 0
    d["k"].push(x)
    return e.hits, e is d["k"]


def attribute_of_an_older_one(x):
    o = Box(x)
    o.child = None
    for j in range((x > 0).sum()):
        o.child = Box(x, j)
        if j > 0:
            o.child.push(x)
    return (o.child.hits, o.child.value) if o.child is not None else 1


def one_in_another(x):
    for j in range((x > 0).sum()):
        b = Box(Box(x, j), [x, 2])
        c = b.value
        b.value.push(x)
        b.hits[1] = j
        b.hits.append(x)
    c.push(x)
    b.hits[0] = x * 7
    return b.value.value, c.hits, b.hits, c is b.value


def one_in_two_others(x):
    c = None
    for j in range((x > 0).sum()):
        c = Box(x * j)
        a, b = Box(c), Box(c)
        a.value.push(x)
    b.value.push(x)
    return a.value.value, c.hits, a.value is b.value, a is b


def changes_its_owner(x):
    for j in range((x > 0).sum()):
        a = Box(Box(x * j))
        c = a.value
        if j > 1:
            a = Box(c, 1)
        a.value.hits += 1
    c.push(x)
    return a.value.value, a.hits, c.hits


def attributes_differ(x):
    box = Box(x)
    for j in range((x > 0).sum()):
        box = Box(x * 2)
        box.hits = 1.5 if j > 0 else 2
        if j > 1:
            box.more = x + 1
    return box.hits, box.more if hasattr(box, "more") else 3


def an_attribute_deleted(x):
    for j in range((x > 0).sum()):
        p = Box(x)
        del p.hits
        if j > 0:
            p.hits = j
    return p.hits


def with_slots(x):
    for j in range((x > 0).sum()):
        s = Slots(x * j)
        if j > 0:
            s.b = j
    return s.a, s.b


def one_of_two_classes(x):
    b = None
    for j in range((x > 0).sum()):
        b = Table(x * j) if j > 0 else Box(x)
        b.more = j
        k = b
    return isinstance(b, Table), isinstance(b, Box), b.__class__ is Table, b is k


def one_of_two_objects(x):
    for j in range((x > 0).sum()):
        box = Box(x, j) if j > 0 else Box(x * 2, 5)
        other = box
        box.push(x)
    other.push(x)
    return box.value, box.hits, other is box


def crosswise(x):
    a = b = None
    for j in range((x > 0).sum()):
        p, q = Box(x), Box(x * 2)
        if j > 0:
            a, b = p, q
        else:
            a, b = q, p
        p.hits += 1
    return None if a is None else (a.hits, b.hits, a is b, a is p)


def change_places(x):
    a = b = None
    for j in range((x > 0).sum()):
        if j == 0:
            a, b = Box(x), Box(x * 2)
        else:
            a, b = b, a
        a.hits += j + 1
    return (a.value, a.hits, b.value, b.hits) if a is not None else 0


def grown_lists(x):
    k = None
    for j in range((x > 0).sum()):
        t = Table(x * j)
        for _ in range((x > 1).sum()):
            t.items.append(x)
        if j != 1:
            k = t
    return (k.items, len(t.items)) if k is not None else 0


def lists_of_two_lengths(x):
    k = None
    for j in range((x > 0).sum()):
        t = Table(x * j)
        if j > 0:
            t.items = [x, x]
        if j > 1:
            k = t
        elif j == 1:
            k = Table(x)
    return (k.items, k.table, t.items) if k is not None else 0


def in_a_tuple(x):
    s = (Box(x), None)
    for _ in range((x > 0).sum()):
        a = Box(s[0].value + 1)
        s = (a, a)
    s[0].hits = 4
    return s[0] is s[1], s[0].hits, s[0].value


def nested_loops(x):
    for j in range((x > 0).sum()):
        t = Box(x * j)
        for i in range((x > -1).sum()):
            t.push(x)
            u = Box(t, i)
        u.value.hits += 100
    u.hits += 1
    return t.value, t.hits, u.hits, u.value is t


def in_the_inner_loop(x):
    t = Box(x)
    for j in range((x > 0).sum()):
        for i in range((x > 0).sum()):
            if i > j:
                t = Box(t.value + 1, t.hits)
            t.hits += 1
    return t.value, t.hits


def in_a_branch(x):
    first = Box(x)
    b = first
    if x.sum() > 0:
        for j in range((x > 0).sum()):
            b = Box(x * j)
            b.push(x)
    b.hits += 3
    return b.value, b.hits, first.hits, b is first


def in_a_closure(x):
    def doubled():
        return t.value * 2

    for j in range((x > 0).sum()):
        t = Box(x * j)
        r = doubled()
    t.push(x)
    return doubled(), r


def in_a_generator(x):
    def boxes():
        b = Box(x)
        while b.value.abs().sum() < 30:
            b = Box(b.value * 2, b.hits + 1)
            yield b

    last = Box(x)
    for o in boxes():
        last = o
        o.hits += 100
    return last.hits, last.value


def caught(x):
    for j in range((x > 0).sum()):
        try:
            b = Box(x, j)
            if j > 1:
                raise ValueError("x")
        except ValueError:
            b = Box(x * 2, 50)
    return b.value, b.hits


def left_by_break(x):
    for j in range((x > 0).sum()):
        b = Box(x, j)
        if j > 0:
            break
    return b.value, b.hits


def written_in_place(x):
    k = None
    y = x * 1
    for j in range((x > 0).sum()):
        b = Box(y * 2)
        if j < 2:
            k = b
        k.value.add_(1)
    if k is None:
        return y
    k.value.mul_(2)
    return b.value, k.value, y, k is b


def memory_of_a_variable(x):
    t = x * 1
    k = None
    for j in range((x > 0).sum()):
        a, b = Box(t), Box(t)
        a.value += 1
        if j == 0:
            k = b
    return t, None if k is None else k.value


def memory_from_before(x):
    y = x * 1
    o = Box(y)
    for j in range((x > 0).sum()):
        o.value.add_(1)
        if j > 0:
            o = Box(x * j)
    o.value.mul_(3)
    return y, o.value


def needs_a_gradient_sometimes(x):
    for j in range((x > 0).sum()):
        with torch.no_grad():
            b = Box(x * 2)
        c = Box(x * 3)
        if j > 0:
            b = c
    return b.value, c.value


def carries_a_value_on(x):
    b = Box(x)
    while b.value.sum() < 30 and b.hits < 4:
        b = Box(b.value * 2, b.hits + 1)
    return b.value, b.hits


def in_a_dataclass(x):
    for j in range((x > 0).sum()):
        p, q = Box(x, j), Box(x * 2, j)
        b = p if j > 0 else q
        r = Record(p, x.sum())
    r.value.hits += 10
    return b.hits, b is r.value, r.value.value


def in_a_kept_dataclass(x):
    r = None
    for j in range((x > 0).sum()):
        b = Box(x, j)
        if j < 2:
            r = Record(b, x.sum())
    return None if r is None else (r.value.hits, r.value is b)


def returned_from_it(x):
    b = Box(x)
    for j in range((x > 0).sum()):
        b = Box(b.value + 1, j)
        if j == 1:
            return b, 1
    b.hits += 9
    return b, 2


def compared(x):
    a, s = None, None
    for _ in range((x > 0).sum()):
        b = Box(x)
        s = b == a
        a = b
    return s


def returned(x):
    b = c = None
    for j in range((x > 0).sum()):
        b = Box(x, j)
        c = b
    return b, [c]


def a_global(x):
    for j in range((x > 0).sum()):
        STORE["k"] = Box(x, j)
    return STORE["k"].hits if "k" in STORE else 3


PLAIN = [
    made_anew, two_names, the_best, the_one_before, carries_a_value_on, in_a_dataclass,
    replaced_in_some_iterations, replaced_never, item_of_a_list, value_of_a_dict, attribute_of_an_older_one,
    one_in_another, one_in_two_others, changes_its_owner, attributes_differ, an_attribute_deleted, with_slots,
    one_of_two_classes, one_of_two_objects, crosswise, change_places, grown_lists, lists_of_two_lengths, in_a_tuple,
    nested_loops, in_the_inner_loop, in_a_branch, in_a_closure, in_a_generator, caught, left_by_break, written_in_place,
    memory_of_a_variable, memory_from_before, needs_a_gradient_sometimes, compared, returned, in_a_kept_dataclass,
    returned_from_it,
]  # fmt: skip


@pytest.mark.parametrize("function", PLAIN, ids=lambda f: f.__name__)
def test_later_code_knows_the_object(function):
    check(function, *CALLS)


def test_a_global_holds_it():
    STORE.clear()
    with pytest.warns(dy2static.RetraceWarning, match="global 'STORE' has changed"):
        check(a_global, *CALLS)


class Keeps(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 3)
        self.last = None

    def forward(self, x):
        for j in range((x > 0).sum()):
            self.last = Box(self.linear(x), j)
            self.last.push(x)
        return x if self.last is None else self.last.value * 2


def test_a_module_keeps_it():
    with pytest.warns(dy2static.RetraceWarning, match="attribute 'last' of Keeps has changed"):
        check(Keeps(), *CALLS)


def test_the_callers_object_holds_it():
    def stored(x, o):
        b = o
        for j in range((x > 0).sum()):
            if j > 0:
                b = Box(x, j)
            b.hits += 1
            o.value = Box(x * j)
        return b.hits, b is o

    check(stored, *((x, Box(1)) for (x,) in CALLS))


def test_identity_of_what_is_returned():
    converted = dy2static.to_static(returned)
    one, (other,) = converted(X)
    assert one is other and type(one) is Box and one.hits == 2


def grows(x):
    xs = []
    for _ in range((x > 0).sum()):
        xs.append(Box(x))
    return len(xs)


def holds_itself(x):
    for _ in range((x > 0).sum()):
        b = Box(x)
        b.me = b
    return b.value


def chained(x):
    h = None
    for _ in range((x > 0).sum()):
        h = Box(x, h)
    return h.value


def known_to_several_on_some_paths(x):
    for j in range((x > 0).sum()):
        p, q = Box(x), Box(x * 2)
        a, b = (p, q) if j > 0 else (q, p)
        a.hits += 1
        p.hits += 10
    return a.hits, b.hits


def its_method(x):
    for j in range((x > 0).sum()):
        push = Box(x * j).push
    return push(x)


@pytest.mark.parametrize(
    "function", [grows, holds_itself, chained, known_to_several_on_some_paths], ids=lambda f: f.__name__)
def test_objects_that_no_stand_in_can_be(function):
    check(function, *CALLS)


def test_a_method_of_an_object_of_the_iteration_is_refused():
    with pytest.raises(TraceError) as caught:
        dy2static.to_static(its_method)(X)
    assert caught.value.code == "D2S250"


def rows(x):
    xs = []
    for j in range((x > 0).sum()):
        r = Record(x * j, j)
        xs.append(r)
    return len(xs), [r.value for r in xs]


def test_a_list_that_grows_holds_dataclasses():
    check(rows, *CALLS)
