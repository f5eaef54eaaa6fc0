"""Objects that note whom they are asked by, and programs that ask them: what is noted has to be as in eager.

    class Lookup:      notes each attribute that anybody looks up (``__getattribute__``)
    class Missing:     those that it does not have (``__getattr__``)
    class Class:       who asks for its ``__class__``, as ``isinstance`` does
    class All:         each special method
    class Listed, ...  how its items are taken: ``__iter__``, ``__len__``, ``__getitem__``, ``keys``, ...
"""

from __future__ import annotations

from typing import Any

# What programs are written into a file with.
HEAD = """
import collections
import collections.abc
import copy
import functools
import heapq
import itertools
import math
import statistics

import numpy as np
import torch

from tests.end_to_end.asked_objects import *

G = {}


def sums(*a, **k):
    return sum(a)
"""


def note(owner: Any, name: str) -> None:
    object.__getattribute__(owner, "log").append(name)


class Plain:
    def __init__(self, k: Any) -> None:
        object.__setattr__(self, "log", [])
        object.__setattr__(self, "k", k)
        object.__setattr__(self, "items", [1.0, 2.0])

    def scale(self, x: Any) -> Any:
        return x * self.k

    @property
    def twice(self) -> Any:
        return self.k * 2


class Lookup(Plain):
    def __getattribute__(self, name: Any) -> Any:
        note(self, name)
        return object.__getattribute__(self, name)


class Missing(Plain):
    def __getattr__(self, name: Any) -> Any:
        if name in ("log", "k", "items"):
            raise AttributeError(name)
        note(self, name)
        if name[:1] == "_" or name == "none":
            raise AttributeError(name)
        return 3.0


class Class(Plain):
    @property
    def __class__(self) -> Any:
        note(self, "__class__")
        return dict


class All(Plain):
    def __eq__(self, other: Any) -> Any:
        note(self, "eq")
        return self is other

    def __ne__(self, other: Any) -> Any:
        note(self, "ne")
        return self is not other

    def __hash__(self) -> Any:
        note(self, "hash")
        return 7

    def __bool__(self) -> Any:
        note(self, "bool")
        return True

    def __len__(self) -> Any:
        note(self, "len")
        return 2

    def __iter__(self) -> Any:
        note(self, "iter")
        return iter([1.0, 2.0])

    def __contains__(self, one: Any) -> Any:
        note(self, "contains")
        return one == 1.0

    def __getitem__(self, key: Any) -> Any:
        note(self, "getitem")
        return 2.0

    def __call__(self, x: Any) -> Any:
        note(self, "call")
        return x * 2

    def __repr__(self) -> Any:
        note(self, "repr")
        return "All"

    def __str__(self) -> Any:
        note(self, "str")
        return "all"

    def __format__(self, spec: Any) -> Any:
        note(self, "format")
        return "fmt"

    def __enter__(self) -> Any:
        note(self, "enter")
        return self

    def __exit__(self, *a: Any) -> Any:
        note(self, "exit")
        return False

    def __add__(self, o: Any) -> Any:
        note(self, "add")
        return o * 2

    def __radd__(self, o: Any) -> Any:
        note(self, "radd")
        return o * 3

    def __mul__(self, o: Any) -> Any:
        note(self, "mul")
        return o * 2

    def __float__(self) -> Any:
        note(self, "float")
        return 2.0

    def __int__(self) -> Any:
        note(self, "int")
        return 2

    def __index__(self) -> Any:
        note(self, "index")
        return 1

    def __neg__(self) -> Any:
        note(self, "neg")
        return 1.0

    def __lt__(self, o: Any) -> Any:
        note(self, "lt")
        return True

    def __gt__(self, o: Any) -> Any:
        note(self, "gt")
        return False

    def __reversed__(self) -> Any:
        note(self, "reversed")
        return iter([2.0, 1.0])

    def __setattr__(self, name: Any, value: Any) -> Any:
        note(self, "set " + name)
        object.__setattr__(self, name, value)

    def __delattr__(self, name: Any) -> Any:
        note(self, "del " + name)
        object.__delattr__(self, name)

    def __copy__(self) -> Any:
        note(self, "copy")
        return All(self.k)

    def __deepcopy__(self, memo: Any) -> Any:
        note(self, "deepcopy")
        return All(self.k)


class Giving:
    def __init__(self, k: Any) -> None:
        self.log = []
        self.k = k
        self.at = 0


class Listed(Giving):
    def __iter__(self) -> Any:
        note(self, "iter")
        return iter([2.0, 1.0])

    def __len__(self) -> Any:
        note(self, "len")
        return 2


class Yields(Giving):
    def __iter__(self) -> Any:
        note(self, "iter")
        yield 2.0
        note(self, "between")
        yield 1.0
        note(self, "end")

    def __len__(self) -> Any:
        note(self, "len")
        return 2


class ByPlace(Giving):
    def __getitem__(self, i: Any) -> Any:
        note(self, f"item {i}")
        if i > 1:
            raise IndexError
        return 2.0 - i

    def __len__(self) -> Any:
        note(self, "len")
        return 2


class Own(Giving):
    def __iter__(self) -> Any:
        note(self, "iter")
        self.at = 0
        return self

    def __next__(self) -> Any:
        note(self, "next")
        self.at += 1
        if self.at > 2:
            raise StopIteration
        return 3.0 - self.at

    def __length_hint__(self) -> Any:
        note(self, "hint")
        return 2


class Odd(Giving):
    def __iter__(self) -> Any:
        note(self, "iter")
        return iter((2.0, 1.0))

    def __length_hint__(self) -> Any:
        note(self, "hint")
        return NotImplemented


class Both(Giving):
    def __iter__(self) -> Any:
        note(self, "iter")
        return iter((2.0, 1.0))

    def __len__(self) -> Any:
        note(self, "len")
        raise TypeError("no")

    def __length_hint__(self) -> Any:
        note(self, "hint")
        return 1


class Negative(Giving):
    def __iter__(self) -> Any:
        note(self, "iter")
        return iter((2.0, 1.0))

    def __len__(self) -> Any:
        note(self, "len")
        return -1


class Whole(Giving):
    def __iter__(self) -> Any:
        note(self, "iter")
        return iter((2, 1))

    def __len__(self) -> Any:
        note(self, "len")
        return 2

    def __contains__(self, x: Any) -> Any:
        note(self, "contains")
        return True

    def __getitem__(self, i: Any) -> Any:
        note(self, f"item {i}")
        return (2, 1)[i]

    def __reversed__(self) -> Any:
        note(self, "reversed")
        return iter((1, 2))


class Keys(Giving):
    def keys(self) -> Any:
        note(self, "keys")
        return ["a", "b"]

    def __getitem__(self, k: Any) -> Any:
        note(self, f"item {k}")
        return 2.0

    def __len__(self) -> Any:
        note(self, "len")
        return 2

    def __iter__(self) -> Any:
        note(self, "iter")
        return iter(["a", "b"])


class Steps:
    def __init__(self, owner: Any) -> None:
        self.owner, self.at = owner, 0

    def __iter__(self) -> Any:
        note(self.owner, "own iter")
        return self

    def __next__(self) -> Any:
        note(self.owner, "own next")
        self.at += 1
        if self.at > 2:
            raise StopIteration
        return 3.0 - self.at

    def __len__(self) -> Any:
        note(self.owner, "own len")
        return 1

    def __length_hint__(self) -> Any:
        note(self.owner, "own hint")
        return 1


class Apart(Giving):
    def __iter__(self) -> Any:
        note(self, "iter")
        return Steps(self)


ASKED: dict[str, str] = {
    "attribute": "y = y + w.k",
    "method": "y = w.scale(y)",
    "property": "y = y * w.twice",
    "store": "w.k = w.k + 1.0",
    "new": "w.fresh = 2.0\ny = y + w.fresh",
    "getattr": "y = y * getattr(w, 'k')",
    "getattr default": "y = y * getattr(w, 'none', 2.0)",
    "hasattr": "y = y + (1.0 if hasattr(w, 'k') else 2.0)",
    "hasattr none": "y = y + (1.0 if hasattr(w, 'none') else 2.0)",
    "setattr": "setattr(w, 'k', 3.0)",
    "delattr": "w.gone = 1.0\ndel w.gone",
    "vars": "y = y * vars(w)['k']",
    "dict": "y = y * w.__dict__['k']",
    "isinstance": "y = y + isinstance(w, list)",
    "isinstance abstract": "y = y + isinstance(w, collections.abc.Mapping)",
    "isinstance sized": "y = y + isinstance(w, (int, collections.abc.Sized))",
    "isinstances": "y = y + isinstance(w, (list, Plain, dict))",
    "type": "y = y + (type(w) is Plain)",
    "class": "y = y + (w.__class__ is Plain)",
    "is": "y = y + (w is y)",
    "is none": "y = y + (w is None)",
    "id": "y = y + (id(w) == 0)",
    "callable": "y = y + callable(w)",
    "eq": "y = y + (w == 3)",
    "ne": "y = y + (w != 3)",
    "eq self": "y = y + (w == w)",
    "in list": "y = y + (w in [1, 2, w])",
    "not in": "y = y + (3 in [w, 3])",
    "index": "y = y + [1, w].index(w)",
    "count": "y = y + [w, 1].count(w)",
    "remove": "q = [1, w]\nq.remove(w)\ny = y + len(q)",
    "key": "d = {w: 2.0}\ny = y * d[w]",
    "set": "s = {w, 1}\ny = y + len(s) + (w in s)",
    "hash": "y = y + (hash(w) == 7)",
    "bool": "y = y + (1.0 if w else 2.0)",
    "not": "y = y + (not w)",
    "and": "y = y + (1.0 if w and True else 2.0)",
    "or": "z = w or y",
    "len": "y = y + len(w)",
    "for": "for one in w:\n    y = y + one",
    "list": "y = y + sum(list(w))",
    "star": "y = y + sum([*w])",
    "unpack": "p, q = w\ny = y + p - q",
    "contains": "y = y + (1.0 in w)",
    "item": "y = y * w[0]",
    "call": "y = w(y)",
    "repr": "t = repr(w)\ny = y + len(t)",
    "str": "y = y + len(str(w))",
    "format": "y = y + len(f'{w}')",
    "format r": "y = y + len(f'{w!r:>5}')",
    "print": "print(w)",
    "print list": "print([w])",
    "percent": "t = '%s %r' % (w, w)\ny = y + len(t)",
    "with": "with w as v:\n    y = y + 1",
    "add": "y = (w + 2.0) + y",
    "radd": "y = (2.0 + w) + y",
    "add tensor": "y = y + (y + w) * 0",
    "mul": "y = (w * 2.0) + y",
    "float": "y = y + float(w)",
    "int": "y = y + int(w)",
    "of list": "y = y + [1.0, 2.0][w]",
    "range": "y = y + len(range(w))",
    "neg": "y = y + (-w)",
    "lt": "y = y + (w < 3)",
    "min": "z = min(w, w)",
    "sorted": "z = sorted([w, w])",
    "reversed": "y = y + list(reversed(w))[0]",
    "copy": "v = copy.copy(w)\ny = y * v.k",
    "deepcopy": "v = copy.deepcopy(w)\ny = y * v.k",
    "append": "q = []\nq.append(w)\ny = y * q[0].k",
    "dict value": "d = {'a': w}\ny = y * d['a'].k",
    "tuple": "t = (w, y)\ny = t[1] * t[0].k",
    "swap": "v, w = w, w",
    "lambda": "f = lambda a: a.k\ny = y * f(w)",
    "comprehension": "y = y * sum([a.k for a in [w, w]])",
    "zip": "for a, b in zip([w], [1.0]):\n    y = y * a.k * b",
    "any": "y = y + any(a.k > 1 for a in [w])",
    "sum": "y = y + sum(a.k for a in (w, w))",
    "map": "y = y + sum(map(lambda a: a.k, [w]))",
    "default": "def f(a=w):\n    return a.k\ny = y * f()",
    "kwargs": "y = y * (lambda **k: k['a'].k)(a=w)",
    "star call": "y = y * (lambda *k: k[0].k)(*[w])",
    "try": "try:\n    y = y * w.k\nexcept ValueError:\n    y = y + 1",
    "match": "match w:\n    case int():\n        y = y + 1\n    case _:\n        y = y * 2",
    "assert": "assert w is not None",
    "del": "v = w\ndel v",
    "walrus": "y = y * (v := w).k",
    "ternary": "y = y * (w if True else None).k",
    "choice": "v = w if x.sum() > 0 else None\nif v is not None:\n    y = y + 1",
    "choice two": "v = w if x.sum() > 0 else Plain(1.0)\ny = y * v.k",
    "items": "w.items.append(3.0)\ny = y + len(w.items)",
}
TAKEN: dict[str, str] = {
    "list": "y = y + sum(list(w))",
    "tuple": "y = y + sum(tuple(w))",
    "sorted": "y = y + sorted(w)[0]",
    "set": "y = y + len(set(w))",
    "frozenset": "y = y + len(frozenset(w))",
    "fromkeys": "y = y + len(dict.fromkeys(w))",
    "deque": "y = y + len(collections.deque(w))",
    "counter": "y = y + len(collections.Counter(w))",
    "extend": "q = [1.0]\nq.extend(w)\ny = y + len(q)",
    "iadd": "q = [1.0]\nq += w\ny = y + len(q)",
    "slice": "q = [1.0, 2.0]\nq[1:] = w\ny = y + len(q)",
    "deque extend": "q = collections.deque([1.0])\nq.extend(w)\ny = y + len(q)",
    "set update": "s = {1.0}\ns.update(w)\ny = y + len(s)",
    "set or": "s = {1.0}.union(w)\ny = y + len(s)",
    "inter": "s = {1.0}.intersection(w)\ny = y + len(s)",
    "diff": "s = {1.0}.difference(w)\ny = y + len(s)",
    "disjoint": "y = y + {1.0}.isdisjoint(w)",
    "superset": "y = y + {1.0, 2.0}.issuperset(w)",
    "join": "t = ','.join(map(str, w))\ny = y + len(t)",
    "sum": "y = y + sum(w)",
    "any": "y = y + any(w)",
    "all": "y = y + all(w)",
    "min": "y = y + min(w)",
    "max": "y = y + max(w, default=0)",
    "zip": "for a, b in zip(w, [1.0, 2.0]):\n    y = y + a * b",
    "zip second": "for a, b in zip([1.0, 2.0], w):\n    y = y + a * b",
    "list zip": "y = y + len(list(zip(w)))",
    "enumerate": "for a, b in enumerate(w):\n    y = y + a * b",
    "list enumerate": "y = y + len(list(enumerate(w)))",
    "map": "y = y + sum(map(lambda a: a * 2, w))",
    "list map": "y = y + len(list(map(lambda a: a, w)))",
    "filter": "y = y + sum(filter(None, w))",
    "list filter": "y = y + len(list(filter(None, w)))",
    "reversed": "y = y + list(reversed(w))[0]",
    "for reversed": "for a in reversed(w):\n    y = y + a",
    "for": "for a in w:\n    y = y + a",
    "for break": "for a in w:\n    y = y + a\n    break",
    "for else": "for a in w:\n    y = y + a\nelse:\n    y = y + 1",
    "unpack": "a, b = w\ny = y + a",
    "star unpack": "a, *b = w\ny = y + a + len(b)",
    "star first": "*a, b = w\ny = y + b",
    "nested": "(a, b), c = w, 1.0\ny = y + a",
    "bracket": "[a, b] = w\ny = y + a",
    "display": "q = [*w]\ny = y + len(q)",
    "display more": "q = [1.0, *w, *w]\ny = y + len(q)",
    "tuple display": "q = (*w, 1.0)\ny = y + len(q)",
    "tuple alone": "q = (*w,)\ny = y + len(q)",
    "set display": "q = {*w}\ny = y + len(q)",
    "call": "y = y + sums(*w)",
    "call more": "y = y + sums(1.0, *w)",
    "call two": "y = y + sums(*w, *w)",
    "max star": "y = y + max(*w)",
    "print": "print(*w)",
    "dict star": "d = {**w}\ny = y + len(d)",
    "call dict": "y = y + sums(**w)",
    "dict": "d = dict(w)\ny = y + len(d)",
    "dict update": "d = {}\nd.update(w)\ny = y + len(d)",
    "dict pairs": "d = dict([w])\ny = y + len(d)",
    "comp": "q = [a for a in w]\ny = y + len(q)",
    "set comp": "q = {a for a in w}\ny = y + len(q)",
    "dict comp": "q = {a: 1 for a in w}\ny = y + len(q)",
    "gen": "y = y + sum(a for a in w)",
    "in": "y = y + (1.0 in w)",
    "not in": "y = y + (5.0 not in w)",
    "index": "y = y + w[0]",
    "len": "y = y + len(w)",
    "bool": "y = y + (1.0 if w else 2.0)",
    "iter next": "it = iter(w)\ny = y + next(it)",
    "next list": "it = iter(w)\ny = y + next(it)\ny = y + len(list(it))",
    "chain": "y = y + sum(itertools.chain(w, [1.0]))",
    "chain from": "y = y + sum(itertools.chain.from_iterable([w, w]))",
    "islice": "y = y + sum(itertools.islice(w, 1))",
    "product": "y = y + len(list(itertools.product(w, [1, 2])))",
    "permutations": "y = y + len(list(itertools.permutations(w)))",
    "combinations": "y = y + len(list(itertools.combinations(w, 2)))",
    "accumulate": "y = y + len(list(itertools.accumulate(w)))",
    "takewhile": "y = y + len(list(itertools.takewhile(lambda a: a > 1, w)))",
    "zip longest": "y = y + len(list(itertools.zip_longest(w, [1])))",
    "cycle": "y = y + sum(itertools.islice(itertools.cycle(w), 3))",
    "tee": "a, b = itertools.tee(w)\ny = y + sum(a) + sum(b)",
    "repeat": "y = y + len(list(itertools.repeat(w, 2)))",
    "starmap": "y = y + sum(itertools.starmap(lambda a, b: a, [w]))",
    "reduce": "y = y + functools.reduce(lambda a, b: a + b, w)",
    "heapify": "q = list(w)\nheapq.heapify(q)\ny = y + q[0]",
    "nlargest": "y = y + heapq.nlargest(1, w)[0]",
    "fsum": "y = y + math.fsum(w)",
    "prod": "y = y + math.prod(w)",
    "dist": "y = y + math.dist(w, w)",
    "mean": "y = y + statistics.fmean(w)",
    "tensor": "y = y + torch.tensor(list(w)).sum()",
    "tensor direct": "y = y + torch.tensor(w).sum()",
    "array": "y = y + float(np.array(w).sum())",
    "dict get": "d = {'a': w}\ny = y + sum(d['a'])",
    "str": "y = y + len(str(list(w)))",
    "bytes": "y = y + len(bytes(w))",
    "sort key": "q = sorted(w, key=lambda a: -a)\ny = y + q[0]",
    "eq list": "y = y + (list(w) == [2.0, 1.0])",
    "mult": "q = list(w) * 2\ny = y + len(q)",
    "stack": "q = torch.stack([y * a for a in w])\ny = q.sum(0)",
    "yield from": "def g():\n    yield from w\ny = y + sum(g())",
    "aug tuple": "q = (1.0,)\nq += tuple(w)\ny = y + len(q)",
    "min two": "y = y + min(*w, 0.5)",
    "any gen": "y = y + any(a > 1 for a in w)",
    "range": "for i, a in zip(range(5), w):\n    y = y + a",
    "match": "match w:\n    case [a, b]:\n        y = y + a\n    case _:\n        y = y * 2",
    "insort": "q = list(w)\nq.sort()\ny = y + q[0]",
    "namedtuple": "P = collections.namedtuple('P', 'a b')\ny = y + P._make(w).a",
    "pack": "y = y + (lambda a, b: a)(*w)",
    "format": "y = y + len('{} {}'.format(*w))",
    "size": "y = y + torch.zeros(*w).sum()",
    "view": "y = y + torch.zeros(w).sum()",
}


__all__ = [
    "All", "Apart", "Both", "ByPlace", "Class", "Giving", "Keys", "Listed", "Lookup", "Missing", "Negative", "Odd",
    "Own", "Plain", "Steps", "Whole", "Yields", "note",
]
