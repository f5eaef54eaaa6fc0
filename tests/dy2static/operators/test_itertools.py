"""``itertools`` over lists whose length only the run knows, and with functions that decide on tensors."""

from __future__ import annotations

import itertools
from itertools import chain

import pytest
import torch

from tests.oracle import check

INPUTS = [[1.0, 2.0, -1.0], [3.0, 1.0, 2.0], [-1.0, -2.0, -3.0]]
CALLS = [(torch.tensor(values),) for values in INPUTS] + [(torch.tensor(INPUTS[1], requires_grad=True),)]


def grow(x):
    xs = [x]
    for _ in range(int((x > 0).sum())):
        xs.append(xs[-1] * 0.5)
    return xs


def taken_while(x):
    return list(itertools.takewhile(lambda t: t.sum() > 1, grow(x)))


def taken_of_a_tuple(x):
    out = x
    for t in itertools.takewhile(lambda t: t.sum() > 0, (x, x * 2, x - 3)):
        out = out + t
    return out


def dropped_while(x):
    return list(itertools.dropwhile(lambda t: t.sum() > 1, grow(x)))


def filtered_out(x):
    return list(itertools.filterfalse(lambda t: t.sum() > 1, grow(x))), list(
        itertools.filterfalse(None, [x.sum() > 0, 0, x.sum() > 1])
    )


def starmap(x):
    xs = grow(x)
    return list(itertools.starmap(lambda a, b: a * b, zip(xs, xs))), list(
        itertools.starmap(torch.add, [(x, x), (x, 1)])
    )


def gen(x):
    for t in grow(x):
        if t.sum() > 1:
            yield t


def chains(x):
    return (
        list(itertools.chain(grow(x), gen(x), [x])),
        list(chain.from_iterable([grow(x), [x]])),
        sum(chain(gen(x), gen(x))),
    )


def chain_left(x):
    y = x
    for t in chain(gen(x), grow(x)):
        if t.sum() < 1:
            break
        y = y + t
    return y


def slices(x):
    xs = grow(x)
    return (
        list(itertools.islice(xs, 2)),
        list(itertools.islice(xs, 1, None)),
        list(itertools.islice(gen(x), 0, 3, 2)),
        list(itertools.islice(xs, int((x > 1).sum()))),
    )


def compressed(x):
    xs = grow(x)
    return list(itertools.compress(xs, [t.sum() > 1 for t in xs]))


def sums_so_far(x):
    xs = grow(x)
    return (
        list(itertools.accumulate(xs)),
        list(itertools.accumulate(xs, lambda a, b: a * b)),
        list(itertools.accumulate(xs, initial=x)),
    )


def sums_of_a_generator(x):
    return list(itertools.accumulate(t * 2 for t in grow(x)))


def larger_so_far(x):
    return list(itertools.accumulate([x, x * 2], lambda a, b: a if a.sum() > b.sum() else b))


def pairs(x):
    return list(itertools.pairwise(grow(x)))


def pairs_of_a_generator(x):
    return [a - b for a, b in itertools.pairwise(gen(x))]


def zipped_with_a_value(x):
    xs = grow(x)
    return [a + b for a, b in itertools.zip_longest(xs, [x, x], fillvalue=x * 0)]


def zipped_with_none(x):
    out = x
    for a, b in itertools.zip_longest(grow(x), [x, x]):
        if a is not None and b is not None:
            out = out + a * b
    return out


def products(x):
    xs = grow(x)
    return [a * b for a, b in itertools.product(xs, [x, 2])], sum([a * b for a, b in itertools.product(xs, repeat=2)])


def pairs_of_all(x):
    return [a * b for a, b in itertools.combinations(grow(x), 2)]


def pairs_of_all_and_themselves(x):
    return [a * b for a, b in itertools.combinations_with_replacement(grow(x), 2)]


def ordered_pairs(x):
    return [a - b for a, b in itertools.permutations(grow(x), 2)]


def chain_of_three(x):
    return list(itertools.chain(grow(x), gen(x), [x]))


def chain_of_lists(x):
    return list(chain.from_iterable([grow(x), [x]]))


def sum_of_a_chain(x):
    return sum(chain(gen(x), gen(x)))


def functions_by_name(x):
    return (
        list(itertools.accumulate(grow(x), func=torch.maximum)),
        list(itertools.accumulate([x, x + 1], None)),
        list(itertools.accumulate([x, x + 1], func=lambda a, b: b if a.sum() > 0 else a)),
    )


HELPERS = {"grow", "gen"}
PROGRAMS = [
    value
    for name, value in list(globals().items())
    if getattr(value, "__module__", None) == __name__ and name not in HELPERS
]


@pytest.mark.sample(2)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_as_eager(program):
    check(program, *CALLS)
