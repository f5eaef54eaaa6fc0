"""``itertools.groupby``, where only the run knows which neighbours are equal."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch

import dy2static
from runtime.errors import TraceError
from tests.oracle import check


def keys_alone(x: Any) -> Any:
    ids = x.argmax(-1).tolist()
    return [k for k, _ in itertools.groupby(ids) if k != 0]


def with_their_items(x: Any) -> Any:
    return [(k, list(g)) for k, g in itertools.groupby(x.argmax(-1).tolist())]


def by_a_key_that_decides(x: Any) -> Any:
    return [(k, len(list(g))) for k, g in itertools.groupby(x.flatten()[:6].tolist(), key=lambda v: v > 0)]


def rows_of_a_tensor(x: Any) -> Any:
    out = []
    for k, g in itertools.groupby(x, key=lambda r: bool(r.sum() > 0)):
        out.append(torch.stack(list(g)).sum(0) if k else x[0])
    return out


def into_a_dict(x: Any) -> Any:
    return {k: sum(g) for k, g in itertools.groupby(sorted(x.argmax(-1).tolist()))}


def of_a_list_that_grew(x: Any) -> Any:
    n = int((x > 0).sum())
    ids = [i // 2 for i in range(n)]
    return [k for k, g in itertools.groupby(ids)], max((len(list(g)) for _, g in itertools.groupby(ids)), default=0)


def taken_twice(x: Any) -> Any:
    out = []
    for k, g in itertools.groupby(x.argmax(-1).tolist()):
        first = list(g)
        out.append((k, first, list(g)))
    return out


def left_early(x: Any) -> Any:
    for k, g in itertools.groupby(x.argmax(-1).tolist()):
        if k > 1: return k, sum(1 for _ in g)
    return -1, 0


def the_first_one(x: Any) -> Any:
    it = itertools.groupby(x.argmax(-1).tolist())
    k, g = next(it)
    return k, list(g)


def known_before(x: Any) -> Any:
    return [k for k, g in itertools.groupby("aab")], [list(g) for k, g in itertools.groupby([1, 1, 2])]


def summed(x: Any) -> Any:
    return [sum(v for v in g) for k, g in itertools.groupby(x.flatten().tolist(), lambda v: v > 0)]


def of_an_iterator_of_a_list(x: Any) -> Any:
    it = iter(x.argmax(-1).tolist())
    out = []
    for k, g in itertools.groupby(it):
        out.append(k)
        break
    return out, list(it)


def rows_that_were_kept(x: Any) -> Any:
    rows: list[Any] = []
    for r in x:
        if r.sum() > 0: rows.append(r)
    return [torch.stack(list(g)) for k, g in itertools.groupby(rows, key=lambda r: int(r.argmax()))]


def keys_are_asked_for_once(x: Any) -> Any:
    seen: list[Any] = []
    def key(v: Any) -> Any:
        seen.append(v)
        return v > 0
    for k, g in itertools.groupby(x.flatten().tolist(), key):
        if k: break
    return len(seen)


FUNCTIONS = [
    keys_alone,
    with_their_items,
    by_a_key_that_decides,
    rows_of_a_tensor,
    into_a_dict,
    of_a_list_that_grew,
    taken_twice,
    left_early,
    the_first_one,
    known_before,
    summed,
    of_an_iterator_of_a_list,
    rows_that_were_kept,
    keys_are_asked_for_once,
]
INPUTS = [torch.randn(4, 4, generator=torch.Generator().manual_seed(3)) + shift for shift in (0.0, 0.7, -0.7)]


@pytest.mark.sample(3)
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_as_in_eager(function: Any) -> None:
    calls = [(x.requires_grad_(),) for x in INPUTS]
    check(function, *calls, (torch.ones(4, 4),), paths=("program",), none_is_zero=True)


def test_an_iterator_is_refused() -> None:
    def kept(x: Any) -> Any:
        rows = (row for row in x if row.sum() > 0)
        keys = [key for key, _ in itertools.groupby(rows, lambda row: bool(row[0] > 0))]
        return keys, list(rows)

    with pytest.raises(TraceError, match="D2S266"):
        dy2static.to_static(kept)(torch.ones(4, 4))


def accumulated(x: Any) -> Any:
    rows = iter(x)
    for total in itertools.accumulate(rows, lambda a, b: a if a.sum() > 0 else b):
        return total, list(rows)


def accumulated_to_the_end(x: Any) -> Any:
    rows = iter(x)
    return list(itertools.accumulate(rows, lambda a, b: a if a.sum() > 0 else b)), list(rows)


@pytest.mark.parametrize("function", [accumulated, accumulated_to_the_end], ids=lambda function: function.__name__)
def test_what_is_left_of_an_iterator(function: Any) -> None:
    check(function, *((x,) for x in INPUTS), paths=("program",))
