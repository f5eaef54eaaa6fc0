"""Stars in front of, and iterators over, what has a length or items that only the run knows."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import dy2static
from tests.oracle import check

INPUTS = [[1.0, 2.0, -1.0], [3.0, 1.0, 2.0], [-1.0, -2.0, -3.0]]
CALLS = [(torch.tensor(values),) for values in INPUTS] + [(torch.tensor(INPUTS[1], requires_grad=True),)]


def total(*ts):
    out = torch.zeros(3)
    for t in ts:
        out = out + t
    return out


def two(a, b=None):
    return a if b is None else a + b


def mk(x):
    if x.sum() > 0:
        ys = [x, x * 2]
    else:
        ys = [x]
    return ys


def display(x):
    return (*mk(x),)


def length_of_a_display(x):
    return len((*mk(x), x))


def items_of_a_call(x):
    return total(*mk(x))


def defaults(x):
    return two(*mk(x))


def list_display(x):
    return [*mk(x), x]


def two_stars(x):
    return (*mk(x), *mk(x - 1))


def set_display(x):
    return {*[k for k in ([1, 2] if x.sum() > 0 else [2])]}


def stacked(x):
    return torch.stack((*mk(x), x)).sum(0)


def star_between(x):
    return total(x, *mk(x), x)


def tuple_of_two_lengths(x):
    t = (x, x) if x.sum() > 0 else (x,)
    t = (*t, x)
    return t, len(t)


def largest(x):
    return max(*[1, 2] if x.sum() > 0 else [3, 1, 5])


def zip_of_one_of_two(x):
    return list(zip(*([(x, 1), (x, 2)] if x.sum() > 0 else [(x, 3)])))


def columns(x):
    rows = [(x, 1)]
    for n in range(int((x > 0).sum())):
        rows.append((x * n, n))
    a, b = zip(*rows)
    return a, b, len(a), sum(b)


def sums_of_columns(x):
    rows = [(x, x)]
    for n in range(int((x > 0).sum())):
        rows.append((x * n, x + n))
    return [sum(col) for col in zip(*rows)]


def columns_of_no_rows(x):
    rows = []
    for n in range(int((x > 0).sum())):
        rows.append((x * n, x + n))
    a, b = zip(*rows)
    return torch.stack(a)


def columns_of_lists(x):
    rows = [[x, x + 1]]
    for n in range(int((x > 0).sum())):
        rows.append([x * n, x + n])
    return [torch.stack(col) for col in zip(*rows)], list(map(list, zip(*rows)))


def zip_as_a_list(x):
    rows = []
    for n in range(int((x > 0).sum())):
        rows.append((x * n, x + n))
    return list(zip(*rows)), len(list(zip(*rows)))


def ys(x):
    return [t for t in (x, x * 2, x - 4) if t.sum() > 0] or [x]


def zip_of_several(x):
    q = x
    y = ys(x)
    if x[0] > 0:
        for s, t in zip(y, [x, x]):
            q = q + s * t
    return q


def enumerate_of_several(x):
    q = x
    if x[0] > 1:
        for i, t in enumerate(ys(x)):
            q = q + i * t
    for t in reversed(ys(x - 1)):
        q = q * t
    return q


def map_of_several(x):
    return list(map(lambda s, t: s * t, ys(x), ys(x + 1)))


def zip_of_two_of_several(x):
    return [s for s, t in zip(ys(x), ys(x + 1)) if t.sum() > 1]


def changed_before_it_is_read(x):
    y = ys(x)
    z = enumerate(y, 1)
    y.append(x)
    return [i * t for i, t in z]


def tuples_of_two_lengths(x):
    t = (x, x + 1) if x.sum() > 0 else (x,)
    return [a * b for a, b in zip(t, [x, x, x])], list(enumerate(t)), list(reversed(t))


def nested_star(x):
    rows = [[x]]
    if x.sum() > 0:
        rows.append([x, x * 2])
    return [*rows, *rows[-1]]


def stars_in_a_loop(x):
    rows = [x]
    for _ in range(int((x > 0).sum())):
        rows = [*rows, *rows[-1:]]
    return rows


def stars_of_rows(x):
    rows = [[x]]
    for k in range(int((x > 0).sum())):
        rows.append([x * k])
    return [*rows[0], *rows[-1]]


REFUSED = {"changed_before_it_is_read": "D2S266"}
"""Located errors in place of a difference."""
HELPERS = {"total", "two", "mk", "ys"}
PROGRAMS = [
    value
    for name, value in list(globals().items())
    if getattr(value, "__module__", None) == __name__ and name not in HELPERS | REFUSED.keys()
]


@pytest.mark.sample(2)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_as_eager(program):
    check(program, *CALLS)


@pytest.mark.parametrize(("name", "code"), REFUSED.items())
def test_refused(name, code):
    with pytest.raises(dy2static.Dy2StaticError) as caught:
        dy2static.to_static(globals()[name])(*CALLS[1])
    assert caught.value.code == code and caught.value.location is not None


def test_two_stars_before_a_set_that_differs() -> None:
    def function(x: torch.Tensor) -> Any:
        names = {"a"}
        if x.sum() > 0:
            names.add("b")
        try:
            return dict(**names)
        except TypeError as error:
            return "must be a mapping, not set" in str(error)

    check(function, (torch.ones(3),), (-torch.ones(3),))
