"""Generator functions and generator expressions that decide on tensors, and everything that consumes them."""

from __future__ import annotations

from functools import reduce

import torch

from tests.conformance.family import BOTH, EACH, MIX, Family, num, vec

family = Family("Loops")
case = family.case
SIGNS = tuple((vec(a, b),) for a in (1.5, -0.5) for b in (2.0, -1.0))
COUNTS = tuple((vec(1.0, 2.0), num(n)) for n in (0, 1, 4))


def positive(x):
    for v in x:
        if v > 0:
            yield v


def leaves_early(x):
    yield x[0]
    if x[1] > 0:
        return
    yield x[1] * 2
    yield from positive(x + 1)


@case("generator expression with a filter on tensors", *SIGNS)
def filtered_sum(x):
    return sum(v * v for v in x if v > 0)


@case("generator expression with a filter on tensors", *SIGNS)
def filtered_list(x):
    return list(v * 2 for v in x if v > 0), len(list(v for v in x if v < 0))


@case("generator expression with several loops", *SIGNS, search=2.0, idle=6)
def several(x):
    return sum(a * b for a in x for b in x if a > b)


@case("any and all stop a generator at the answer", *SIGNS)
def lazy_any(x):
    log = []

    def probe(v):
        log.append(1)
        return v > 0

    return any(probe(v) for v in x), all(probe(v) for v in x), len(log)


@case("any and all stop a generator at the answer", (vec(2.0, 1.0), num(2)), (vec(-2.0, -1.0), num(3)))
def any_of_range(x, n):
    return any(x.sum() > i for i in range(n)), all(x.sum() < i for i in range(n))


@case("next of a generator", *SIGNS)
def next_default(x):
    return next((v for v in x if v > 0), None), next((i for i, v in enumerate(x) if v < 0), -1)


@case("next of a generator", *SIGNS)
def next_raises(x):
    return next(i for i, v in enumerate(x) if v > 0)


@case("next of a generator", *SIGNS)
def next_other_rank(x):
    return next(positive(x), x)


@case("generator function that returns early", *SIGNS, search=2.0)
def early(x):
    return [v for v in leaves_early(x)]


@case("generator function left by break", *SIGNS, search=2.0)
def left(x):
    total, n = x.sum() * 0, 0
    for v in positive(x):
        if v > 1.8:
            break
        total = total + v
        n += 1
    else:
        n = 99
    return total, n


@case("generator function left by return", *SIGNS, search=2.0, idle=9)
def returned_from(x):
    for v in positive(x):
        for w in positive(x):
            if w > v:
                return w, v
    return None


@case("generator function left by continue", *SIGNS, search=2.0)
def continued(x):
    out = []
    for v in positive(x):
        if v > 1.8:
            continue
        out.append(v)
    return out


def counted(n, log):
    i = 0
    try:
        while i < n:
            yield i
            i += 1
    finally:
        log.append(i)


@case("generator with a tensor while and finally", *COUNTS)
def finally_runs(x, n):
    log = []
    for i in counted(n, log):
        x = x * 2 + i
        if x.sum() > 20:
            break
    return x, log


def tree(x, depth):
    if depth > 0:
        yield from tree(x * 2, depth - 1)
        if x.sum() > 0:
            yield x
        yield from tree(x - 1, depth - 1)


@case("recursive generator", (vec(2.0, 1.0),), (vec(-1.0, 0.5),), (vec(0.5, 0.6),), search=2.0, idle=2)
def recursive(x):
    return sum(t.sum() for t in tree(x, 2))


@case("generator that changes a variable around it", *BOTH, search=2.0)
def changes(x):
    def steps():
        nonlocal x
        for i in range(3):
            x = x + 1
            if x.sum() > 5:
                return
            yield x * i

    got = [a for a in steps()]
    return got, x


@case("generator consumed by enumerate, map and filter", *SIGNS, search=2.0)
def adapted(x):
    total = x.sum() * 0
    for i, v in enumerate(positive(x), 1):
        total = total + i * v
        if total > 2:
            break
    return total, list(map(lambda v: v + 1, positive(x))), sum(filter(lambda v: v < 1.8, positive(x)))


@case("generator consumed by max, min, sorted, reduce and join", *EACH)
def consumed(x):
    numbers = sorted(v.item() for v in x)
    text = ", ".join(f"{v.item():.1f}" for v in x)
    return max(v * v for v in x), min(v for v in x), numbers, reduce(lambda a, b: a + b, (v for v in x)), text


@case("generator consumed by extend", *SIGNS)
def extended(x):
    out = [x[0]]
    out.extend(positive(x))
    return out


@case("generator twice in a row is empty", *SIGNS)
def twice(x):
    items = positive(x)
    out = [v for v in items]
    for v in items:
        out.append(v * 100)
    return out


class Rows:
    def __init__(self, x):
        self.x = x

    def __iter__(self):
        for v in self.x:
            if v > 0:
                yield v


@case("__iter__ that is a generator function", *SIGNS)
def own_iter(x):
    total = 0
    for v in Rows(x):
        total = total + v
    return total, sum(Rows(x)), list(Rows(x))


@case("generator in the condition of a loop", (vec(1.0, 5.0),), (vec(5.0, 6.0),), search=2.0)
def in_condition(x):
    n = 0
    while any(v < 4 for v in x):
        x = x + 1
        n += 1
    return x, n


@case("generator in a staged loop", *COUNTS)
def in_loop(x, n):
    total = x.sum() * 0
    for i in range(n):
        total = total + sum(v for v in x if v > i)
    return total


@case("generator method of a module's helper", (vec(1.0, -2.0),), (vec(-1.0, -2.0),), search=2.0)
def stacked(x):
    return torch.stack([v for v in positive(x)] + [x[0]])


@case("generator expression over zip", *SIGNS)
def expression_over_zip(x):
    return sum(a * b for a, b in zip(x, (1.0, 3.0)) if a > 0)


def raising(x):
    for v in x:
        if v < -1:
            raise ValueError("too small")
        yield v * 2


@case("raise in a generator", (vec(1.0, 2.0),), (vec(1.0, -2.0),), search=2.0)
def raises(x):
    return [v for v in raising(x)]


@case("generator used in a branch though made outside", (vec(2.0, -1.0),), refused="D2S266")
def made_outside(x):
    items = positive(x)
    if x.sum() > 0:
        return sum(items)
    return sum(items) * 2


@case("a generator that decides taken item by item", (MIX,), refused="D2S212")
def item_by_item(x):
    items = positive(x)
    a = next(items)
    return a + next(items)


@case("a generator used inside a loop over it", (MIX,), refused="D2S266")
def inside_itself(x):
    items = positive(x)
    total = 0
    for v in items:
        total = total + v * sum(items)
    return total


def probe_of(log):
    def probe(v):
        log.append(1)
        return v > 0

    return probe


@case("map and filter call their function as often as eager", *SIGNS)
def lazy_map(x):
    log = []
    found = any(map(probe_of(log), x))
    for v in map(probe_of(log), x):
        if v:
            break
    return found, len(log)


@case("map and filter call their function as often as eager", *SIGNS, search=2.0)
def lazy_filter(x):
    log = []
    first = next(filter(probe_of(log), x), None)
    total = x.sum() * 0
    for v in filter(probe_of(log), x):
        total = total + v
        if v > 1.8:
            break
    return first, total, len(log)


@case("map and filter call their function as often as eager", *BOTH)
def later_map(x):
    log = []
    items = map(probe_of(log), x)
    log.append(5)
    return list(items), log
