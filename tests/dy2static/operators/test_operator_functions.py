"""Functions of ``operator``, ``inspect`` and ``typing`` that are given lists that grew, and containers that differ."""

from __future__ import annotations

import enum
import inspect
import operator
import queue
import typing

import pytest
import torch

from dy2static import TraceError, to_static
from tests.oracle import check


class Length:
    def __init__(self, items):
        self.items = items

    def __iadd__(self, other):
        self.items = len(self.items) + len(other)
        return self

    def __len__(self):
        return len(self.items)


def grown(x, n):
    xs = []
    i = 0
    while i < n:
        xs.append(x * i)
        i += 1
    return xs


def several(x, n):
    d = {"a": x}
    if n > 1:
        d["b"] = 2
    return d


def row(x, n):
    rows = []
    i = 0
    while i < n:
        rows.append({"k": i})
        rows[-1]["k"] += 1
        i += 1
    return rows[0]


def itself(value):
    return value


def asked_for_length_and_truth(x, n):
    xs, d = grown(x, n), several(x, n)
    return (operator.length_hint(xs), operator.length_hint(xs, 5), operator.length_hint(d),
            operator.length_hint(range(len(xs))), operator.truth(xs), operator.not_(xs), operator.truth(Length(xs)),
            operator.not_(Length(xs)), operator.length_hint(5, 3))  # fmt: skip


def changed_in_place(x, n):
    xs = grown(x, n)
    ys = operator.iadd(xs, [x])
    return ys is xs, len(xs), operator.imul(ys, 2) is xs, xs, operator.iadd(Length(xs), xs).items


def called(x, n):
    xs, d = grown(x, n), several(x, n)
    call = getattr(operator, "call", lambda f, *args: f(*args))
    return call(len, xs), call(itself, d) is d, call(xs.pop), len(xs)


def looked_at(x, n):
    xs, d = grown(x, n), several(x, n)
    return inspect.isclass(xs), inspect.isfunction(xs), inspect.isgenerator(xs), inspect.isroutine(d)


def which_object(x, n):
    xs, d, one = grown(x, n), several(x, n), row(x, n)
    held = [0]
    operator.setitem(held, 0, d)
    return (operator.is_(xs, xs), operator.is_(d, d), operator.is_(one, one), operator.is_not(one, d),
            typing.cast(list, xs) is xs, typing.cast(dict, d) is d, typing.cast(dict, one) is one,
            held[0] is d)  # fmt: skip


@pytest.mark.parametrize("function", [asked_for_length_and_truth, changed_in_place, called, looked_at, which_object])
def test_equal_eager(function):
    check(function, *((torch.tensor([1.0, -2.0]), torch.tensor(n)) for n in (2, 1, 3)))


class Way(enum.Enum):
    UP = 1
    DOWN = 2


def wrong_default(x, n):
    xs = grown(x, n)
    try:
        return operator.length_hint(xs, "a")
    except TypeError as error:
        return str(error)


def test_a_default_is_looked_at():
    check(wrong_default, (torch.ones(2), torch.tensor(2)))


def hint_of_one_of_several(x, n):
    v = Way.UP
    if x.sum() > 0:
        v = Way.DOWN
    w = [1, 2] if x.sum() > 0 else None
    return operator.length_hint(v), operator.length_hint(w, 7)


def test_hints_of_one_of_several():
    check(hint_of_one_of_several, (torch.ones(2), None), (-torch.ones(2), None))


def hint_of_a_users_class(x, n):
    return operator.length_hint(Length(grown(x, n)))


def test_a_users_method_is_not_run_as_it_is():
    with pytest.raises(TraceError) as caught:
        to_static(hint_of_a_users_class)(torch.ones(2), torch.tensor(2))
    assert caught.value.code == "D2S253"


def put(x, n):
    waiting = queue.SimpleQueue()
    waiting.put(several(x, n))
    return len(waiting.get())


def test_a_queue_keeps_what_is_put_once():
    with pytest.raises(TraceError) as caught:
        to_static(put)(torch.ones(2), torch.tensor(2))
    assert caught.value.code == "D2S254"
