"""Tuples and arguments whose number only the run knows: ``f(*xs)``, ``tuple(xs)``, ``(*xs,)`` of a list that grew."""

from __future__ import annotations

import collections
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import dy2static
from runtime.errors import TraceError
from tests.oracle import check, same

Pair = collections.namedtuple("Pair", "a b")


def two(a: Any, b: Any) -> Any:
    return a, b


def three(a: Any, b: Any, c: Any = None) -> Any:
    return a, b, c


def every(*args: Any, **kwargs: Any) -> Any:
    return type(args), len(args), list(args), kwargs


def total(*args: Any) -> Any:
    result = 0
    for arg in args:
        result = result + arg
    return result


def first(a: Any, *rest: Any) -> Any:
    return a, rest


class Held:
    def __init__(self, *parts: Any) -> None:
        self.parts = parts

    def two(self, a: Any, b: Any) -> Any:
        return a, b, total(*self.parts)

    def __call__(self, *parts: Any) -> int:
        return len(parts)


class Sums(torch.nn.Module):
    def forward(self, a: torch.Tensor, *rest: torch.Tensor) -> torch.Tensor:
        for one in rest:
            a = a + one
        return a


def longer(ys: list[Any]) -> tuple[Any, ...]:
    t: tuple[Any, ...] = ()
    for v in ys:
        t += (v,)
    return t


USES: dict[str, Callable[[Any, Any], Any]] = {
    "two parameters": lambda x, ys: two(*ys),
    "a default": lambda x, ys: three(*ys),
    "a keyword": lambda x, ys: three(*ys, c=1),
    "one before": lambda x, ys: three(x, *ys),
    "any number": lambda x, ys: every(1, *ys, *ys, k=x),
    "a first one": lambda x, ys: first(*ys),
    "twice through": lambda x, ys: total(x, *ys),
    "a lambda": lambda x, ys: (lambda a, *q: (a, q))(*ys),
    "a partial": lambda x, ys: functools.partial(total, *ys)(x),
    "a method": lambda x, ys: Held(*ys).two(*ys),
    "an object": lambda x, ys: Held()(*ys),
    "a module": lambda x, ys: Sums()(*ys),
    "a named tuple": lambda x, ys: Pair(*ys),
    "items of map": lambda x, ys: total(*map(lambda v: v * 2, ys)),
    "a tuple": lambda x, ys: [tuple(ys), (*ys,), (x, *ys), (*ys, x), tuple(v * 2 for v in ys)],
    "sums of tuples": lambda x, ys: [tuple(ys) + (x,), (x,) + tuple(ys), tuple(ys) * 2],
    "its items": lambda x, ys: [tuple(ys)[0], tuple(ys)[-1], tuple(ys)[1:], tuple(ys)[::-1], len(tuple(ys))],
    "an item that may be missing": lambda x, ys: tuple(ys)[2],
    "its class": lambda x, ys: (type(tuple(ys)) is tuple, isinstance(tuple(ys), list), len(tuple(tuple(ys)))),
    "torch": lambda x, ys: torch.cat((x, *ys)) + torch.stack(tuple(ys)).sum(),
    "a tuple that a loop makes longer": lambda x, ys: longer(ys),
    "a choice": lambda x, ys: tuple(ys) if x.sum() > 1 else (x,),
    "a list of tuples": lambda x, ys: [*[tuple(ys)], (x, *ys)],
}


def _grown(x: torch.Tensor, y: torch.Tensor, use: Callable[[Any, Any], Any]) -> Any:
    ys = [x, y]
    if x.sum() > 0:
        ys.append(x * 2)
    return use(x, ys)


def _calls() -> list[tuple[torch.Tensor, torch.Tensor]]:
    return [(torch.tensor(values, requires_grad=True), torch.tensor([0.5, 4.0], requires_grad=True))
            for values in ([1.0, 2.0], [-3.0, 1.0])]  # fmt: skip


RAISING = {"two parameters", "an item that may be missing", "a named tuple", "a keyword", "one before", "a method"}


@pytest.mark.parametrize("name", list(USES))
def test_uses(name: str, tmp_path: Path) -> None:
    use = USES[name]

    def f(x: torch.Tensor, y: torch.Tensor) -> Any:
        return _grown(x, y, use)

    check(f, *_calls())
    if name in RAISING or name == "any number":
        return  # one of the calls raises, or a class is among the results
    calls = [tuple(t.detach() for t in call) for call in _calls()]
    static = dy2static.to_static(f)
    for call in calls:
        static(*call)
    loaded = dy2static.load(dy2static.save(static, tmp_path / "f.d2s"))
    for call in calls:
        same(loaded(*call), f(*call))


def test_an_index_in_a_try() -> None:
    def f(x: torch.Tensor) -> Any:
        items = [x]
        for k in range(int((x > 0).sum())):
            items.append(x * k)
        kept, at = tuple(items), (x > 1).sum()
        try:
            first = kept[2]
        except IndexError as error:
            first = x - 1, str(error)
        try:
            second = kept[at] + kept[-2]
        except IndexError:
            second = x - 2
        return first, second

    check(f, *((torch.tensor(v, requires_grad=True),) for v in ([2.0, 2.0], [2.0, -1.0], [-1.0, -1.0], [1.0, 1.0])))


def test_texts_are_joined() -> None:
    def f(x: torch.Tensor) -> Any:
        words = ["a", "b"]
        if x.sum() > 0:
            words.append("c")
        return ",".join(words), "".join(words[:0]), "-".join([w + "x" for w in words]), ".".join(tuple(words))

    check(f, (torch.ones(2),), (-torch.ones(2),), paths=("program",))


@pytest.mark.parametrize("use", [
    lambda ys: set(ys), lambda ys: {*ys}, lambda ys: hash(tuple(ys)), lambda ys: {tuple(ys): 1},
    lambda ys: torch.block_diag(*ys), lambda ys: print(*ys), lambda ys: torch.zeros(*ys),
])  # fmt: skip
def test_what_is_refused(use: Callable[[Any], Any]) -> None:
    def f(x: torch.Tensor) -> Any:
        return _grown(x, x, lambda x, ys: use(ys))

    with pytest.raises(TraceError, match=r"D2S2[56][0138]"):
        dy2static.to_static(f)(torch.ones(2))


NAMED: dict[str, Callable[[Any, Any], Any]] = {
    "any": lambda x, d: (lambda **k: k)(**d),
    "of a function": lambda x, d: every(**d),
    "after others": lambda x, d: every(c=1, **d),
    "before others": lambda x, d: every(**d, c=1),
    "that are there": lambda x, d: every(a=1, **d),
    "twice": lambda x, d: every(**d, **d),
    "of parameters": lambda x, d: (lambda a=1, b=2: (a, b))(**d),
    "that must be there": lambda x, d: (lambda b: b)(**d),
    "of dict": lambda x, d: dict(**d, z=1),
    "of a partial": lambda x, d: functools.partial(every, **d)(),
}


@pytest.mark.parametrize("name", list(NAMED))
def test_keywords_that_differ(name: str) -> None:
    use = NAMED[name]

    def f(x: torch.Tensor, y: torch.Tensor) -> Any:
        d = {"a": x}
        if x.sum() > 0:
            d["b"] = y
        return use(x, d), d

    check(f, *_calls(), paths=("program",))
