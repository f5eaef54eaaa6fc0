"""Iterators that are older than the call: each call takes the items that eager would take."""

from __future__ import annotations

import itertools

import pytest
import torch

from dy2static import RetraceWarning, TraceError, to_static

X = torch.ones(2)
ADVANCED = "is traced at each call of this kind, because an iterator from outside was advanced"


def one(x, it):
    return x * next(it)


def method(x, it):
    return x * it.__next__()


def with_default(x, it):
    return x * next(it, 9.0)


def loop(x, it):
    for v in it:
        x = x * v
    return x


def loop_left_early(x, it):
    for v in it:
        x = x * v
        if v > 2:
            break
    return x


def comprehension(x, it):
    return x * sum([v for v in it])


def listed(x, it):
    return x * sum(list(it))


def zipped(x, it):
    return x * sum(a + b for a, b in zip((1.0,), it))


def islice(x, it):
    return x * sum(itertools.islice(it, 1))


MAKE = {
    "list": lambda: iter([2.0, 3.0, 5.0, 7.0, 11.0, 13.0]),
    "generator": lambda: (float(i) for i in range(2, 8)),
}


@pytest.mark.parametrize("kind", MAKE)
@pytest.mark.parametrize(
    "function", [one, method, with_default, loop, loop_left_early, comprehension, listed, zipped, islice]
)
def test_an_argument_is_advanced_at_each_call(function, kind):
    static, mine, theirs = to_static(function), MAKE[kind](), MAKE[kind]()
    with pytest.warns(RetraceWarning, match=ADVANCED):
        for _ in range(3):
            assert torch.equal(static(X, mine), function(X, theirs))
    assert list(mine) == list(theirs)
    assert torch.equal(static(X, MAKE[kind]()), function(X, MAKE[kind]()))


def test_others_are_advanced_at_each_call():
    class Holder:
        pass

    def make():
        holder, closed = Holder(), itertools.count(10)
        holder.it, holder.all = iter(range(1, 9)), [itertools.count(100)]
        return lambda x: x * next(holder.it) + next(closed) - next(holder.all[0])

    static, eager = to_static(make()), make()
    with pytest.warns(RetraceWarning, match=ADVANCED):
        for _ in range(4):
            assert torch.equal(static(X), eager(X))


def test_one_that_the_call_makes_is_no_reason_to_trace_again():
    static = to_static(lambda x: x * next(iter([2.0, 3.0])) + sum(zip(*[(1.0,)]), ())[0])
    for _ in range(3):
        assert torch.equal(static(X), X * 2 + 1)
    assert len(static.programs) == 1


def test_a_trace_that_has_to_begin_again_is_refused():
    def f(x, w, it):
        n = next(it)
        c = x.detach()
        c += w * n
        return c

    with pytest.raises(TraceError, match="D2S266"):
        to_static(f)(X.clone(), X.clone().requires_grad_(), iter([2.0]))


def test_a_view_among_the_results_is_not_cut_off_unseen():
    static = to_static(lambda x, w: ((c := x * 3), c[:1], w * 2))
    _, view, _ = static(X, X.clone().requires_grad_())
    with pytest.raises(RuntimeError, match="created in no_grad mode"):
        view.mul_(torch.ones(1, requires_grad=True))  # eager gives the whole a history; a silent cut would lose it
