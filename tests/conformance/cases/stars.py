"""Stars and keywords in front of what has a length, or keys, that only the run knows.

Blocks that never run raise what Python raises of a list without items, of which there is none here.
"""

from __future__ import annotations

import itertools

import torch

from tests.conformance.family import BOTH, Family, num, vec

family = Family("Calls")
case = family.case
COUNTS = tuple((vec(1.0, 2.0), num(n)) for n in (1, 2, 4))
WITH_ZERO = tuple((vec(1.0, 2.0), num(n)) for n in (0, 1, 4))


def grown(x, n):
    out = [x]
    for i in range(n):
        out.append(x * i)
    return out


def total(first, *rest, scale=1.0):
    return first * scale + sum(rest)


def shifted(x, scale=1.0, shift=0.0):
    return x * scale + shift


@case("`f(*grown)`", *COUNTS, idle=3)
def star_in_a_call(x, n):
    return total(*grown(x, n)), total(x, *grown(x, n), scale=2.0)


@case("`f(**chosen)`", *BOTH)
def keywords_in_a_call(x):
    options = {"scale": 2.0} if x.sum() > 0 else {"scale": 3.0, "shift": 1.0}
    return shifted(x, **options), shifted(x, **{**options, "shift": 5.0})


@case("`[*a, *b]`", *WITH_ZERO)
def star_in_a_list(x, n):
    return [*grown(x, n), x, *grown(x + 1, n)]


@case("`[*a, *b]`", *BOTH)
def star_of_one_of_two(x):
    a = [x] if x.sum() > 0 else (x, x + 1)
    return [*a, x], len([*a, *a])


@case("`(*t, x)`", *BOTH)
def star_in_a_tuple(x):
    t = (x, 1) if x.sum() > 0 else (x,)
    return (*t, x), len((*t, *t))


@case("`a, *b = grown`", *COUNTS, idle=2)
def starred_target(x, n):
    first, *rest = grown(x, n)
    *start, last = [*rest, first]
    return first, rest, start, last


@case("`a, *b = grown`, nested", *COUNTS, idle=2)
def nested_targets(x, n):
    (a, *b), c = grown(x, n), n
    [(d, (e, *_))] = [(a, grown(a, n))]
    return a, b, c, d, e


@case("`zip(*rows)`", *COUNTS, idle=2)
def columns(x, n):
    rows = [(x, 0)]
    for i in range(n):
        rows.append((x * i, i))
    values, numbers = zip(*rows)
    return torch.stack(values), sum(numbers), len(values)


@case("`max(*grown)`, `chain(*lists)`", *COUNTS, idle=1)
def star_of_builtins(x, n):
    sums = [t.sum() for t in grown(x, n)]
    return max(*sums), list(itertools.chain(*[[x], grown(x, n)]))


@case("`itertools` over lists that grow", *COUNTS, idle=1)
def itertools_of_grown(x, n):
    xs = grown(x, n)
    kept = list(itertools.takewhile(lambda t: t.sum() < 4, xs))
    pairs = [a * b for a, b in itertools.pairwise(xs)]
    return kept, pairs, list(itertools.accumulate(xs)), list(itertools.islice(xs, 1, None, 2))


@case("a loop over a list to which it adds", (vec(1.0, 2.0),), (vec(4.0, 2.0),), (vec(-1.0, 0.5),))
def work_list(x):
    todo = [x]
    for i, t in enumerate(todo):
        if t.sum() > 1:
            todo.append(t * 0.3 + i * 0.01)
    return todo
