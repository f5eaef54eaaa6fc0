"""What methods of containers are given: an object that has items is an item, unless the method takes its items."""

from __future__ import annotations

import collections

import pytest
import torch

from dy2static import to_static
from tests.oracle import check

X = torch.tensor([1.0, -2.0, 3.0])


class One:
    """Its ``__iter__`` is a generator function."""

    def __init__(self, value):
        self.value = value

    def __iter__(self):
        yield self.value

    def __eq__(self, other):
        return type(other) is One

    def __hash__(self):
        return 3


class Pairs(One):
    def keys(self):
        yield "a"

    def __getitem__(self, key):
        return self.value


def append(x):
    items = []
    items.append(One(x))
    items[0].value = x * 2
    return items[0].value, type(items[0]).__name__


def append_of_class(x):
    items = []
    list.append(items, One(x))
    method = items.append
    method(One(x))
    return [type(one).__name__ for one in items], items[1].value


def insert(x):
    items = [1]
    items.insert(0, One(x))
    items.__setitem__(1, One(x * 2))
    return items[0].value, items[1].value


def of_a_deque(x):
    items = collections.deque()
    items.append(One(x))
    items.appendleft(One(x * 2))
    return items[0].value, items[1].value


def of_a_dict(x):
    table = {}
    table.setdefault("a", One(x))
    table.__setitem__("b", One(x * 2))
    return table["a"].value, table["b"].value, table.get("c", One(x)).value, table.pop("d", One(x)).value


def of_an_ordered_dict(x):
    table = collections.OrderedDict()
    table.setdefault("a", One(x))
    table.update(b=One(x * 2))
    return table["a"].value, table["b"].value, dict.fromkeys([1], One(x))[1].value


def of_a_set(x):
    items = set()
    items.add(One(1))
    items.discard(One(2))
    return len(items), One(x) in items


def asked_for(x):
    items = [One(x), 2]
    found = items.index(One(x)), items.count(One(x))
    items.remove(One(x))
    return found, items


def in_a_loop(x):
    items = []
    for row in x:
        if row > 0:
            row = row * 2
        items.append(One(row))
    return [one.value for one in items]


def of_staged_length(x):
    items = []
    for row in x:
        if row > 0:
            items.append(One(row * 2).value)
    return items


def tree(x):
    root = One(x)
    root.kids = []
    root.kids.append(One(x * 2))
    root.kids[0].kids = [One(x * 3)]
    return root.kids[0].value, root.kids[0].kids[0].value


def kept_generator(x):
    items = []
    items.append(row * 2 for row in x)
    (generator,) = items
    return type(generator).__name__, list(generator), list(generator)


def whole(x):
    """Methods that do take the items."""
    items = [*One(x)]
    items.extend(One(x * 2))
    items += One(x * 3)
    items[:1] = One(x * 4)
    list.extend(items, One(x * 5))
    row = collections.deque(One(x))
    row.extendleft(One(x * 6))
    table = {"a": x}
    table.update(Pairs(x * 7))
    names = {"a"}
    names.update(One("b"))
    return items, list(row), table, sorted(names | set(One("c"))), "-".join(One("text"))


FUNCTIONS = [append, append_of_class, insert, of_a_deque, of_a_dict, of_an_ordered_dict, of_a_set, asked_for, in_a_loop,
             of_staged_length, tree, kept_generator, whole]  # fmt: skip


@pytest.mark.parametrize("function", FUNCTIONS)
def test_an_object_with_items_is_an_item(function):
    check(function, (X,), (-X,))


def test_a_list_of_the_caller_gets_the_object():
    def f(items, one):
        items.append(one)
        return len(items)

    one, items = One(X), []
    assert to_static(f)(items, one) == 1 and items[0] is one


def test_a_module_is_an_item():
    class Layer(torch.nn.Module):
        def __iter__(self):
            yield from self.parameters()

        def forward(self, x):
            return x * 2

    layer = Layer()

    def f(x):
        layers = []
        layers.append(layer)
        return layers[0](x), layers[0] is layer

    check(f, (X,))
