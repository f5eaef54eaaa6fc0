"""``is`` of tuples, frozen dataclasses, bound methods and tensors that branches and loops hand on."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch

import dy2static
from runtime.errors import Dy2StaticError
from tests.oracle import check


class Pair(NamedTuple):
    a: Any
    b: Any


@dataclasses.dataclass(frozen=True)
class Frozen:
    a: Any
    b: Any


class Box:
    value: Any = None


def chosen(x: torch.Tensor, y: torch.Tensor) -> Any:
    a, b = (x, 1), (x, 1)
    u = a
    v = a if x.sum() > 0 else b
    if (x > 0).any():
        w = v
    else:
        w = (x, 1)
    return v is a, v is b, w is v, w is a, w is b, u is a, v is not a, [one is v for one in (a, b)]


def of_classes(x: torch.Tensor, y: torch.Tensor) -> Any:
    a, b, c, d = Pair(x, 1), Pair(x, 2), Frozen(x, 1), Frozen(y, 1)
    m = x.abs
    p, f, g = a, c, m
    if x.sum() > 0:
        p, f, g = b, d, x.abs
    return p is a, p is b, f is c, f is d, g is m, p._replace(a=y) is p


def of_other_lengths(x: torch.Tensor, y: torch.Tensor) -> Any:
    a, b = (x, 1), (x, 1, 2)
    v = a if x.sum() > 0 else b
    w = None
    if (x > 0).any():
        w = v
    return v is a, v is b, w is v, w is None


def address_taken_again(x: torch.Tensor, y: torch.Tensor) -> Any:
    a = (x, 1)
    v = a
    if x.sum() > 0:
        v = (x, 1)
    else:
        v = (x, 2)
    a = (x, 1)
    return v is a, [v is (x, 1) for _ in range(4)], (x, 1) is v


def inside_others(x: torch.Tensor, y: torch.Tensor) -> Any:
    a, b = (x, 1), (y, 1)
    t, box, d = (a, b), Box(), {"k": a}
    box.value = a
    if x.sum() > 0:
        t, d["k"] = (b, a), b
    else:
        box.value = b
    p, q = t
    return p is a, q is a, p is q, box.value is a, d["k"] is b, [v is a for _, v in d.items()], (lambda: p)() is p


def given_and_got(x: torch.Tensor, y: torch.Tensor) -> Any:
    def pick(*values: Any) -> Any:
        if values[0][0].sum() > 0:
            return values[0]
        return values[1]

    def both(t: Any) -> Any:
        return (t, t) if t[0].sum() > 0 else (t, (t[0], 1))

    a, b = (x, 1), (y, 1)
    v = pick(a, b)
    p, q = both(v)
    return v is a, v is b, pick(a, a) is a, p is q, p is v, q is v


def exchanged(x: torch.Tensor, y: torch.Tensor) -> Any:
    a, b = (x, 1), (x, 2)
    v, w, count = a, b, 0
    for i in range(int((x > 0).sum())):
        count = count + (v is a)
        if x[i] > 1:
            v, w = w, v
        else:
            v = w
        count = count + 10 * (v is w)
    return count, v is a, v is b, w is a, v is w


def in_a_frozen_one_of_a_path(x: torch.Tensor, y: torch.Tensor) -> Any:
    t, u = (x, 1), (y, 1)
    w, f = t, Frozen(x, t)
    if x.sum() > 0:
        if y.sum() > 2:
            w = t if x[0] > 1 else u
        else:
            f = Frozen(y, t)
    return f.b is w, f.b is t, w is u


def exchanged_in_a_pair(x: torch.Tensor, y: torch.Tensor) -> Any:
    t, u = (x, 1), (y, 1)
    w, pair = t, (t, u)
    for _ in range(int((x > -1.5).sum())):
        if (y > 2).any():
            t = (x, 1)
        else:
            pair = pair[1], pair[0]
    return pair[1] is w, pair[0] is w, w is t


def of_the_last_iterations(x: torch.Tensor, y: torch.Tensor) -> Any:
    a, count = (x, 1), 0
    p = q = v = a
    last = None
    for _ in range(int((x > 0).sum())):
        p, q, last = q, v, v
        v = (x, 1)
        count = count + (p is q) + 10 * (q is v) + 100 * (p is a) + 1000 * (last is q)
    return count, p is q, q is a, v is a, last is q, last is None


def left_when_it_is_another(x: torch.Tensor, y: torch.Tensor) -> Any:
    a, b = (x, 1), (x, 2)
    v, count = a, 0
    while v is a:
        x = x - 0.5
        count = count + 1
        if x.sum() < 0:
            v = b
    for _ in range(2):
        w = v
        for _ in range(int((x > -1).sum())):
            if w is b:
                count = count + 10
            w = a
        v = w
    return count, v is a, v is b


def of_tensors(x: torch.Tensor, y: torch.Tensor) -> Any:
    a, b = x * 1, y * 1
    v, w, last = a, b, None
    for _ in range(int((x > 0).sum())):
        last, v, w = v, w, v
    z = x if x.sum() > 0 else v
    same = x.contiguous() if x.sum() > 1 else x.float()
    return v is a, w is a, v is w, last is w, z is x, z is a, same is x, [one is v for one in (a, b)]


def equal_by_identity(x: torch.Tensor, y: torch.Tensor) -> Any:
    a, b = (x, 1), (x, 1)
    v = a
    if x.sum() > 0:
        v = b
    return v == a, v != b, v in [a], [v] == [a]


def kept_in_state(x: torch.Tensor, y: torch.Tensor) -> Any:
    box = Box()
    box.value = (x, 1)
    v, count = box.value, 0
    for _ in range(int((x > 0).sum())):
        count = count + (v is box.value)
        v = (x, 1)
    return count, v is box.value


USES: list[Callable[..., Any]] = [
    chosen, of_classes, of_other_lengths, address_taken_again, inside_others, given_and_got, exchanged,
    exchanged_in_a_pair, in_a_frozen_one_of_a_path,
    of_the_last_iterations, left_when_it_is_another, of_tensors, equal_by_identity, kept_in_state,
]  # fmt: skip


def _calls(grad: bool) -> list[tuple[torch.Tensor, ...]]:
    return [(torch.tensor(x, requires_grad=grad), torch.tensor([1.0, -1.0, 0.5]) * sum(x))
            for x in ([2.0, 0.5, 1.5], [-1.0, -2.0, -0.5], [-2.0, 1.5, -0.5])]  # fmt: skip


@pytest.mark.parametrize("use", USES, ids=[use.__name__ for use in USES])
def test_which_object_it_is(use: Callable[..., Any], tmp_path: Path) -> None:
    static = check(use, *_calls(True), paths=("program",))
    check(use, *_calls(False), paths=("program",), static=static)
    loaded = dy2static.load(dy2static.save(static, tmp_path / "f.d2s"))
    for call in _calls(False):
        assert loaded(*call) == use(*call)


def _results(x: torch.Tensor, t: Any, u: Any) -> Any:
    v = t if x.sum() > 0 else (x, 1)
    if (x > 0).any():
        w = v
    else:
        w = u
    p = Pair(x, v)
    q = p if x.sum() > 0 else Pair(x, w)
    return v, [w], p, q


def test_results_that_are_one_object(tmp_path: Path) -> None:
    def require(called: Callable[..., Any]) -> None:
        for x, y in _calls(False):
            t, u = (y, 1), (y, 2)
            names = ["v", "w", "p", "q", "t", "u"]
            got, expected = ([(*result[:1], *result[1], *result[2:], t, u)
                              for result in (called(x, t, u), _results(x, t, u))])  # fmt: skip
            same = [{(m, n) for m, a in zip(names, values) for n, b in zip(names, values) if a is b}
                    for values in (got, expected)]  # fmt: skip
            assert same[0] == same[1]

    static = dy2static.to_static(_results)
    require(static)
    require(dy2static.load(dy2static.save(static, tmp_path / "f.d2s")))


def test_what_nobody_asks_is_not_recorded() -> None:
    def with_tuples(x: torch.Tensor) -> Any:
        v = (x, 1) if x.sum() > 0 else (x * 2, 1)
        for _ in range(int((x > 0).sum())):
            v = (v[0] + 1, 1)
        return v[0]

    def without(x: torch.Tensor) -> Any:
        v = x if x.sum() > 0 else x * 2
        for _ in range(int((x > 0).sum())):
            v = v + 1
        return v

    recorded = []
    for function in (with_tuples, without):
        static = dy2static.to_static(function)
        static(torch.ones(2))
        recorded.append([(op.name, len(op.args), len(op.outputs)) for op in static.program.block.walk()])
    assert recorded[0] == recorded[1]


@pytest.mark.parametrize("name", ["grown", "id", "constant"])
def test_what_nobody_knows(name: str) -> None:
    def grown(x: torch.Tensor) -> Any:
        t, items = (x, 1), []
        for _ in range(int((x > 0).sum())):
            items.append(t)
        return items[0] is t

    def number(x: torch.Tensor) -> Any:
        t, u = (x, 1), (x, 1)
        v = t if x.sum() > 0 else u
        return id(v) == id(t)

    def constant(x: torch.Tensor) -> Any:
        v, count = (1, 2), 0
        for _ in range(int((x > 0).sum())):
            w = (3, 4)
            count = count + (v is w)
            v = w
        return count

    with pytest.raises(Dy2StaticError, match="D2S264"):
        dy2static.to_static({"grown": grown, "id": number, "constant": constant}[name])(torch.ones(2))
