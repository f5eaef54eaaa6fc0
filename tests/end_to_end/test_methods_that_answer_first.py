"""Containers of users' classes whose ``[]``, ``[] =``, ``del`` and ``in`` are methods in Python: these answer, and what
they ask ``super()`` for, or ``list`` and its like, is what the container itself holds."""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import Any

import pytest
import torch
from torch import nn

from tests.oracle import check, check_saved

VALUES = ([1.0, 2.0], [-1.0, -2.0], [3.0, -1.0], [-3.0, 1.0])
CALLS = tuple((torch.tensor(a, requires_grad=True), torch.tensor(b, requires_grad=True))
              for a, b in zip(VALUES, (VALUES[0], VALUES[2], VALUES[1], VALUES[3])))  # fmt: skip
PLAIN = tuple(tuple(tensor.detach() for tensor in call) for call in CALLS)


def delegating(base: type) -> Any:
    class Same(base):
        def __getitem__(self, i):
            return super().__getitem__(i)

        def __setitem__(self, i, v):
            super().__setitem__(i, v)

        def __delitem__(self, i):
            super().__delitem__(i)

        def __contains__(self, v):
            return super().__contains__(v)

    return Same


def by_class(base: type) -> Any:
    class Same(base):
        def __getitem__(self, i):
            return base.__getitem__(self, i)

        def __setitem__(self, i, v):
            base.__setitem__(self, i, v)

        def __delitem__(self, i):
            base.__delitem__(self, i)

        def __contains__(self, v):
            return base.__contains__(self, v)

    return Same


def shifted(base: type) -> Any:
    class Shifted(base):
        def __getitem__(self, i):
            return super().__getitem__(i - 1)

        def __setitem__(self, i, v):
            super().__setitem__(i - 1, v)

        def __delitem__(self, i):
            super().__delitem__(i - 1)

        def __contains__(self, v):
            return super().__contains__(v - 1)

    return Shifted


class Clamped(list):
    def __getitem__(self, i):
        return list.__getitem__(self, max(0, min(i, len(self) - 1)))


class Ring(deque):
    def __getitem__(self, i):
        return super().__getitem__(i % len(self))


class Doubled(shifted(list)):
    def __getitem__(self, i):
        return super().__getitem__(i) * 2


class Says(list):
    """What is written is appended, what is read is where it was asked for."""

    def __getitem__(self, i):
        return "item", i

    def __setitem__(self, i, v):
        list.append(self, v)

    def __contains__(self, v):
        return "yes"

    def __iter__(self):
        return iter(["it"])

    def __len__(self):
        return 7


def at_a_chosen_index(kind):
    def f(x, y):
        i = 2 if x.sum() > 0 else 1
        return kind([x, y, x * 3])[i], kind([1.0, 2.0, 3.0])[i]

    return f


def at_a_computed_index(kind):
    def f(x, y):
        i = int(x.sum() > 0) + 1
        return kind([x, y, x * 3])[i], kind([1.0, 2.0, 3.0])[i], kind([1.0, 2.0, 3.0])[(x.sum() > 0).long() + 1]

    return f


def of_a_grown_one(kind):
    def f(x, y):
        items, i = kind([1.0, 4.0]), 2 if y.sum() > 0 else 1
        if x.sum() > 0:
            items.append(2.0)
        total = 0.0
        for place in range(1, len(items)):
            total = total + items[place]
        return items[i], items[i] * 2, items[len(items) - 1], total, items[1]

    return f


def stores(kind):
    def f(x, y):
        items, i = kind([1.0, 4.0, 5.0]), 2 if y.sum() > 0 else 1
        items[i] = x
        items[int(x.sum() > 0) + 1] = y
        return items, len(items)

    return f


def stores_in_a_grown_one(kind):
    def f(x, y):
        items, i = kind([1.0, 4.0]), 2 if y.sum() > 0 else 1
        if x.sum() > 0:
            items.append(2.0)
        items[i] = 8.0
        items[len(items) - 1] = 9.0
        return items, len(items)

    return f


def deletes_from_a_grown_one(kind):
    def f(x, y):
        items = kind([1.0, 4.0, 6.0])
        if x.sum() > 0:
            items.append(2.0)
        del items[2 if y.sum() > 0 else 1]
        return items, len(items)

    return f


def finds(kind):
    def f(x, y):
        items, n = kind([1.0, 2.0]), 3 if x.sum() > 0 else 7
        grown = kind([1.0])
        if x.sum() > 0:
            grown.append(2.0)
        return n in items, int(y.sum() > 0) + 2 in items, 3 in grown, n in grown, 2 in items

    return f


KINDS = [make(base) for base in (list, deque) for make in (delegating, by_class, shifted)] + [Clamped, Doubled]
USES = [at_a_chosen_index, at_a_computed_index, of_a_grown_one, stores, stores_in_a_grown_one,
        deletes_from_a_grown_one, finds]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS, ids=[f"{kind.__qualname__} {kind.__mro__[1].__name__}" for kind in KINDS])
@pytest.mark.parametrize("use", USES)
def test_of_lists_and_deques(use: Any, kind: Any) -> None:
    check(use(kind), *CALLS, none_is_zero=True)
    check(use(kind), *PLAIN)


@pytest.mark.parametrize("use", [at_a_chosen_index, at_a_computed_index, finds])
def test_of_tuples(use: Any) -> None:
    for make in (delegating, by_class, shifted):
        kind = make(tuple)
        program = use(kind)
        if use is finds:
            def program(x, y, kind=kind):
                items, n = kind([1.0, 2.0]), 3 if x.sum() > 0 else 7
                return n in items, int(y.sum() > 0) + 2 in items, 2 in items
        check(program, *CALLS, none_is_zero=True)


def test_of_texts() -> None:
    class Text(str):
        def __getitem__(self, i):
            return super().__getitem__(-1 - i).upper()

        def __contains__(self, part):
            return not super().__contains__(part)

    def f(x, y):
        i, part = 1 if x.sum() > 0 else 0, "a" if x.sum() > 0 else "z"
        return Text("abc")[i], Text("abc")[int(y.sum() > 0)], part in Text("abc")

    check(f, *CALLS)


def what_is_said(x, y):
    items, i = Says([x, y]), 0 if x.sum() > 0 else 1
    items[i] = 9
    return items[i], items[int(y.sum() > 0)], items, x in items, items[0:i]


def of_several(x, y):
    items = Doubled([x, y]) if x.sum() > 0 else Ring([y, x, x])
    i = 2 if y.sum() > 0 else 1
    items[i] = x * 5
    return items[i], items, x in [1, items]


class Names(list):
    def __contains__(self, v):
        return super().__contains__(v.lower())


class These(list):
    def __contains__(self, t):
        return any(t is v for v in self)


class Nothing(dict):
    def __contains__(self, k):
        return False

    def has(self, k):
        return dict.__contains__(self, k)


class Lower(OrderedDict):
    def __contains__(self, k):
        return super().__contains__(k.lower())

    def __getitem__(self, k):
        return super().__getitem__(k.lower())


class Others(set):
    def __contains__(self, v):
        return not super().__contains__(v)


def names(x, y):
    found, k = Names(["up"]), "UP" if x.sum() > 0 else "Q"
    known = k in found
    if y.sum() > 0:
        found.append("down")
    return known, k in found, "DOWN" in found


def these(x, y):
    return x in These([y, x]), (x + 1) in These([y, x]), x in These([y, 1])


def nothing(x, y):
    held = Nothing(a=1)
    if x.sum() > 0:
        held["b"] = 2
    return "b" in held, "a" in held, held.has("b"), held.has("a")


def lower(x, y):
    held, k = Lower(a=x), "A" if y.sum() > 0 else "B"
    if x.sum() > 0:
        held["b"] = y
    return "B" in held, k in held, "Z" in held, held[k] if k in held else None


def others(x, y):
    held = Others([1, 2])
    if x.sum() > 0:
        held.discard(1)
    return 1 in held, 5 in held, (1 if y.sum() > 0 else 9) in held


def a_grown_set_of_super(x, y):
    class Counted(dict):
        def pop(self, k):
            return super().pop(k), "counted"

    held = Counted(a=1)
    if x.sum() > 0:
        held["b"] = 2
    return held.pop("a"), len(held), list.__contains__([1, 2], int(x.sum() > 0)), (1, 2).__getitem__(int(y.sum() > 0))


class Many(list):
    def __bool__(self):
        return super().__len__() > 1


def truth(x, y):
    held = Many([x])
    for t in y:
        if t > 0:
            held.append(t * x)
        elif held:
            held.pop()
    return held, bool(held), 1 if held else 2, not held


PROGRAMS = [truth, what_is_said, of_several, names, these, nothing, lower, others, a_grown_set_of_super]


@pytest.mark.parametrize("program", PROGRAMS)
def test_programs(program: Any) -> None:
    check(program, *CALLS, none_is_zero=True)
    check(program, *PLAIN)


@pytest.mark.parametrize("program", [names, nothing, others, of_a_grown_one(Clamped), at_a_computed_index(Doubled)])
def test_programs_from_a_file(program: Any, tmp_path: Any) -> None:
    static = check(program, *PLAIN)
    check_saved(program, static, tmp_path / "program.d2s", PLAIN[0])


# -- modules


class Turned(nn.ModuleList):
    def __getitem__(self, i):
        return super().__getitem__(len(self) - 1 - i)


class Wrapped(nn.ModuleList):
    def __getitem__(self, i):
        return nn.ModuleList.__getitem__(self, i % len(self))


class TurnedSequential(nn.Sequential):
    def __getitem__(self, i):
        return super().__getitem__(2 - i)


class Larger(nn.ParameterList):
    def __getitem__(self, i):
        return super().__getitem__(i) * 2


LAYERS = nn.ReLU(), nn.Identity(), nn.Sigmoid()


@pytest.mark.parametrize("modules", [Turned(LAYERS), Wrapped(LAYERS), TurnedSequential(*LAYERS)],
                         ids=["turned", "wrapped", "sequential"])  # fmt: skip
def test_lists_of_modules(modules: Any) -> None:
    def f(x, y):
        return modules[int(x.sum() > 0)](y), modules[2 if y.sum() > 0 else 0](x), modules[0](x)

    check(f, *CALLS)


def test_lists_of_parameters() -> None:
    held = Larger([nn.Parameter(torch.ones(2)), nn.Parameter(torch.zeros(2))])
    check(lambda x, y: held[int(x.sum() > 0)] * y + held[1 if y.sum() > 0 else 0], *CALLS, parameters=list(held))


# -- __missing__


class Zeros(dict):
    def __missing__(self, k):
        self[k] = 0
        return 0


class Groups(dict):
    def __missing__(self, k):
        self[k] = made = []
        return made


class Asked(dict):
    def __init__(self, *args):
        super().__init__(*args)
        self.asked = 0

    def __missing__(self, k):
        self.asked += 1
        return k


class Read(dict):
    read = ()

    def __getitem__(self, k):
        self.read = (*self.read, k)
        return super().__getitem__(k)


def counts(x, y):
    held = Zeros()
    held["up" if x.sum() > 0 else "down"] += 1
    return held, len(held)


def counts_in_a_loop(x, y):
    held = Zeros()
    for t in x:
        held["p" if t > 0 else "n"] += 1
    return held, len(held)


def groups(x, y):
    held = Groups()
    held["p" if x.sum() > 0 else "n"].append(x)
    return held, len(held), held["p"]


def only_reads(x, y):
    held = Groups({"p": [y]})
    found = held["p" if x.sum() > 0 else "n"]
    return len(found), len(held), list(held)


def how_often(x, y):
    held = Asked({"a": 1})
    found = held["a" if x.sum() > 0 else "b"], held["c" if y.sum() > 0 else "d"]
    return held.asked, found, len(held)


def what_is_read(x, y):
    held = Read(a=[x], b=[y])
    held["a" if x.sum() > 0 else "b"].append(1)
    return held, held.read


@pytest.mark.parametrize("program", [counts, counts_in_a_loop, groups, only_reads, how_often, what_is_read])
def test_missing_keys(program: Any) -> None:
    check(program, *CALLS, none_is_zero=True)
    check(program, *PLAIN)


class Hundred(dict):
    def __getitem__(self, key):
        return 100


def gets_what_is_stored(x, y):
    held = Hundred({0: 1, 1: 2})
    return x * held.get(int(x.sum() > 0), 7), held[int(y.sum() > 0)]


def gets_tensors_stored(x, y):
    held = Hundred({0: x, 1: x * y})
    return held.get(int(x.sum() > 0), y), held.get(int(y.sum() > 0) + 1, y)


@pytest.mark.parametrize("program", [gets_what_is_stored, gets_tensors_stored])
def test_get_asks_no_other_method(program: Any) -> None:
    check(program, *CALLS, none_is_zero=True)
    check(program, *PLAIN)
