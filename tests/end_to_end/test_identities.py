"""``id`` and ``hash`` of what each call has its own of: right inside the function, refused where they are numbers."""

from __future__ import annotations

import collections
import math
import operator
from typing import Any

import pytest
import torch

from dy2static import to_static
from runtime.errors import TraceError

G = torch.ones(2)


class Thing:
    a: Any = None


OLD = Thing()
SPACE = Thing()


def stored(x: Any) -> Any:
    SPACE.a = id(x)
    return x


def in_a_branch(x: Any) -> Any:
    number = id(x)
    if x.sum() > 0:
        number = id(x * 2)
    return number


REFUSED: dict[str, Any] = {
    "id": lambda x: id(x),
    "hash": lambda x: hash(x),
    "hash of a tuple": lambda x: hash((x, 1)),
    "hash of a frozenset": lambda x: hash(frozenset([x])),
    "method": lambda x: x.__hash__(),
    "key": lambda x: {id(x): 1},
    "key in a tuple": lambda x: {(id(x), 1): 1},
    "item": lambda x: [id(x)],
    "keys": lambda x: list({id(x): x}),
    "set": lambda x: {id(x)},
    "text": lambda x: f"{id(x)}",
    "str": lambda x: str(id(x)),
    "percent": lambda x: "%d" % id(x),
    "hex": lambda x: hex(id(x)),
    "sum": lambda x: id(x) + 1,
    "rest": lambda x: id(x) % 7,
    "number of a tensor": lambda x: x + id(x),
    "order": lambda x: id(x) < id(x * 2),
    "sorted": lambda x: sorted([x, G], key=id)[0],
    "map": lambda x: list(map(id, [x])),
    "new tensor": lambda x: id(x * 2),
    "new object": lambda x: id(Thing()),
    "hash of a new object": lambda x: hash(Thing()),
    "list": lambda x: id([x]),
    "stored": stored,
    "of a branch": in_a_branch,
    "attribute": lambda x: x * (id(x).real % 2), "numerator": lambda x: x * hash(x).numerator,
    "range": lambda x: x * len(range(id(x))), "index": lambda x: x * operator.index(id(x)),
    "bits": lambda x: x * id(x).bit_length(), "bin": lambda x: bin(id(x)), "a size": lambda x: torch.ones(id(x)),
    "in a size": lambda x: x.new_zeros([id(x)]), "data": lambda x: torch.tensor([id(x)]),
    "to C": lambda x: math.gcd(id(x), 4),
    "a number from outside": lambda x: x * 2 if id(x) == NUMBERS[0] else x,
    "among numbers from outside": lambda x: x * (id(x) in NUMBERS),
    "key of a dict from outside": lambda x: x * TABLE.get(id(x), 2),
    "item of a dict from outside": lambda x: x * TABLE[id(x)],
    "in a dict": lambda x: x * (id(x) in TABLE), "in its keys": lambda x: x * (id(x) in TABLE.keys()),
    "in a set": lambda x: x * (id(x) in set(NUMBERS)), "set operator": lambda x: x * len({id(x)} & set(NUMBERS)),
    "keys' operator": lambda x: x * len({id(x)} & TABLE.keys()), "dicts": lambda x: x * ({id(x): 3} == TABLE),
    "sets": lambda x: x * ({id(x)} == set(NUMBERS)), "method of a set": lambda x: x * len({id(x)}.union(NUMBERS)),
    "in a tuple": lambda x: x * ((id(x), 1) in {(one, 1) for one in NUMBERS}),
}  # fmt: skip
NUMBERS = [id(G)]
TABLE = {id(G): 3}


@pytest.mark.parametrize("name", REFUSED)
def test_numbers_of_the_trace_are_refused(name):
    with pytest.raises(TraceError) as caught:
        to_static(REFUSED[name])(torch.ones(2))
    assert caught.value.code == "D2S264" and caught.value.location is not None


INSIDE: dict[str, Any] = {
    "equal": lambda x: (id(x) == id(x), id(x) != id(x * 2), hash(x) == hash(x)),
    "global": lambda x: id(x) == id(G),
    "set": lambda x: id(x) in {id(x)},
    "memo": lambda x: {id(x): x + 1}[id(x)],
    "seen": lambda x: len({id(x), id(x), id(G)}),
    "type": lambda x: type(id(x)) is int and isinstance(id(x), int),
    "truth": lambda x: bool(id(x)),
    "old object": lambda x: (id(OLD), hash(OLD), id(len), id(Thing), hash("a"), hash(3)),
    "global tensor": lambda x: id(G) if x is not G else 0,
    "tensor as a key": lambda x: {x: 1, (x, 2): 3},
    "tensor in a set": lambda x: {x},
    "tensor as a key of others": lambda x: (collections.OrderedDict([(x, 1)]), collections.Counter([x])),
}


@pytest.mark.parametrize("name", INSIDE)
def test_inside_they_mean_what_they_mean(name):
    converted = to_static(INSIDE[name])
    for x in (torch.ones(2), torch.ones(2), G, torch.ones(2)):
        mine, eager = converted(x), INSIDE[name](x)
        assert type(mine) is type(eager)
        assert torch.equal(mine, eager) if isinstance(mine, torch.Tensor) else mine == eager


PAIRS: dict[str, Any] = {
    "list": lambda a: dict([(G, 1), (a, 2)]),
    "lists": lambda a: dict([[G, 1], [a, 2]]),
    "tuple": lambda a: dict(((G, 1), (a, 2))),
    "zip": lambda a: dict(zip([G, a], [1, 2])),
    "generator": lambda a: dict((key, 1) for key in [G, a]),
    "iterator": lambda a: dict(iter([(G, 1), (a, 2)])),
    "keywords": lambda a: dict([(G, 1), (a, 2)], z=1),
    "tuples as keys": lambda a: dict([((G, 1), 1), ((a, 1), 2)]),
    "ordered": lambda a: collections.OrderedDict([(G, 1), (a, 2)]),
    "default": lambda a: collections.defaultdict(list, [(G, 1), (a, 2)]),
    "counter": lambda a: collections.Counter([G, a]),
    "user's": lambda a: collections.UserDict([(G, 1), (a, 2)]),
    "fromkeys": lambda a: dict.fromkeys([G, a]),
    "display": lambda a: {G: 1, a: 2},
    "joined": lambda a: {G: 1} | {a: 2},
    "set": lambda a: set([G, a]),
    "update": lambda a: updated({}, [(G, 1), (a, 2)]),
    "update of a counter": lambda a: updated(collections.Counter(), [G, a]),
    "update of a user's": lambda a: updated(collections.UserDict(), [(G, 1), (a, 2)]),
}


def updated(made: Any, items: Any) -> Any:
    made.update(items)
    return made


@pytest.mark.parametrize("name", PAIRS)
def test_a_global_tensor_and_an_argument_are_one_key(name):
    converted = to_static(PAIRS[name])
    for a in (G, torch.ones(2), G, torch.ones(2)):
        mine, eager = converted(a), PAIRS[name](a)
        assert type(mine) is type(eager) and len(mine) == len(eager) and mine == eager
