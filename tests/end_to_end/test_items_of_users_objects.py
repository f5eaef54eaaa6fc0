"""Whatever goes over a user's object, in Python or in C, finds what the object's methods give at each call."""

from __future__ import annotations

import array
import collections
import functools
import heapq
import itertools
import linecache
import math
import operator
import statistics
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from dy2static import to_static
from runtime.errors import Dy2StaticError
from tests.oracle import same

MODULES = (array, collections, functools, heapq, itertools, math, operator, statistics)
"""What the expressions below use."""
pytestmark = pytest.mark.filterwarnings("ignore::dy2static.RetraceWarning")


class Items:
    """Its methods read what changes between calls."""

    def __init__(self) -> None:
        self.parts: list[Any] = [1, 2]
        self.k = 1

    def __iter__(self) -> Iterator[Any]:
        return iter(self.parts)

    def __len__(self) -> int:
        return len(self.parts)

    def __contains__(self, value: Any) -> bool:
        return value in self.parts

    def __bool__(self) -> bool:
        return self.k > 1

    def __getitem__(self, place: int) -> Any:
        return self.parts[place]


class Pairs(Items):
    def __iter__(self) -> Iterator[Any]:
        return iter([P, P])


class Generated:
    def __iter__(self) -> Iterator[Any]:
        for value in P:
            yield value


class ByPlace:
    def __getitem__(self, place: int) -> Any:
        return P.parts[place]


class Mapped:
    def keys(self) -> list[str]:
        return ["a"]

    def __getitem__(self, key: str) -> Any:
        return P.parts[0]


P, Q, G, B, M, L = Items(), Pairs(), Generated(), ByPlace(), Mapped(), [1, 2]


def generated() -> Iterator[Any]:
    for value in P:
        yield value


def handed_on() -> Iterator[Any]:
    yield from P


def unpacked() -> Iterator[Any]:
    for first, _ in [P]:
        yield first


EXPRESSIONS = [
    "[v for v in P][0]", "sum(v for v in P)", "[a + b for a in P for b in P][-1]", "len([v for v in L if P])",
    "[1 if P else 0 for v in L][0]", "[v for v in P if v in P][0]", "max({v for v in P})", "max({v: 1 for v in P})",
    "[*P][0]", "max(*P)", "len([1 for v in [P] if v])", "len([1 for v in [P] if not v])",
    "[x for v in [P] for x in v][0]",
    "dict(**M)['a']", "[v for v in B][0]", "sum(B)", "[v for v in G][0]", "list(G)[0]", "next(v for v in P)",
    "[y for v in P if (y := v)][0]", "[[w for w in P] for v in L][0][0]", "(lambda: [v for v in P][0])()",
    "tuple(v for v in P)[0]", "dict((v, v) for v in P)[P.parts[0]]", "[v for v in itertools.chain(P, L)][0]",
    "[v for i, v in enumerate(P)][0]", "min((v for v in P), key=lambda q: q)", "[v for v in filter(None, P)][0]",
    "[v for v in map(abs, P)][0]", "[v for v in zip(P)][0][0]", "[v for v in itertools.islice(P, 2)][0]",
    "[v for v in (w for w in P)][0]", "[v for v in itertools.takewhile(lambda z: True, P)][0]",
    "list(itertools.accumulate(P))[0]", "next(itertools.cycle(P))", "list(itertools.chain.from_iterable([P]))[0]",
    "[a for a, _ in itertools.groupby(P)][0]", "list(itertools.zip_longest(P, L))[0][0]",
    "list(itertools.combinations(P, 2))[0][0]", "functools.reduce(max, P)", "collections.deque(P)[0]", "math.prod(P)",
    "heapq.nsmallest(1, P)[0]", "statistics.mean(P)", "list(zip(generated(), L))[0][0]",
    "list(zip(handed_on(), L))[0][0]", "next(unpacked())", "next(iter(generated()))",
    "list(zip((w for w in P), L))[0][0]", "list(zip(map(abs, P), L))[0][0]",
    "max(itertools.chain(P, [0]))", "sorted(map(operator.neg, P))[0]", "[*map(abs, P)][0]", "[*generated()][0]",
    "sum(handed_on(), start=0)", "list(itertools.starmap(max, [P]))[0]", "max(dict([P]))", "max(set().union(P))",
    "bytes(P)[0]", "math.fsum(P)", "math.dist(P, [0, 0])", "list(heapq.merge(P, [5]))[0]", "array.array('d', P)[0]",
    "max({*P})", "max(frozenset(P))", "torch.Size(P)[0]", "[v for v, w in [P]][0]", "max(v for v, w in [P])",
    "[a for a, b in Q][0]", "list(map(list, [P]))[0][0]", "list(itertools.compress(P, P))[0]", "math.hypot(*P)",
    "list(itertools.tee(P)[0])[0]", "collections.Counter(P).most_common(1)[0][0]", "1 if 5 in P else P[0]",
    "list(itertools.product(P, L))[0][0]", "sum([v for v in [P] for v in v])", "max(zip(P, P))[0]",
]  # fmt: skip
FORMS = {
    "expression": "    r = {}\n", "lambda": "    r = (lambda: {})()\n",
    "function": "    def g():\n        return {}\n    r = g()\n",
    "generator": "    def g():\n        yield {}\n    r = next(g())\n",
    "default": "    g = lambda q={}: q\n    r = g()\n",
    "callback": "    r = list(map(lambda q: {}, [1]))[0]\n",
    "key": "    r = sorted([1, 2], key=lambda q: -q * ({}))[0]\n",
    "path": "    r = 0\n    if x.sum() > 0:\n        r = (lambda: {})()\n",
}
STATEMENTS = [
    "q = []; q.extend(P); r = q[0]", "q = []; q += P; r = q[0]", "q = [0, 0]; q[0:1] = P; r = q[0]",
    "q = collections.deque(); q.extend(P); r = q[0]", "q = {}; q.update(zip(P, P)); r = max(q)", "r, *_ = P",
    "g = generated(); y = next(g); r = next(g) + y", "g = (w for w in P); y = next(g); r = next(g) + y",
    "r, _ = handed_on()", "g = iter(P); r = next(g)", "q = set(); q |= set(P); r = max(q)", "r = 0; r += sum(P)",
]  # fmt: skip


def _made(source: str) -> Any:
    file = f"<{source}>"
    text = f"def function(x):\n{source}    return x * 0 + r\n"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    space = dict(globals())
    exec(compile(text, file, "exec"), space)
    return space["function"]


def _check(function: Any) -> bool:
    """Whether it is converted."""
    static, x = to_static(function), torch.ones(3)
    for value in (1, 2, 3, 1):
        P.parts[0], P.k, L[0] = value, min(value, 2), value
        try:
            found = static(x)
        except Dy2StaticError as error:
            assert error.location is not None
            return False
        same(found, function(x))
    return True


@pytest.mark.sample(3)
@pytest.mark.parametrize("number", range(len(EXPRESSIONS)))
def test_expressions(number: int) -> None:
    """Each in one of the forms, and in a lambda."""
    forms = list(FORMS.values())
    _check(_made(forms[number % len(forms)].format(EXPRESSIONS[number])))
    assert _check(_made(FORMS["lambda"].format(EXPRESSIONS[number])))


@pytest.mark.slow
@pytest.mark.parametrize("form", list(FORMS))
def test_expressions_in_all_forms(form: str) -> None:
    converted = [_check(_made(FORMS[form].format(one))) for one in EXPRESSIONS]
    assert sum(converted) > 0.9 * len(converted)


@pytest.mark.parametrize("statement", STATEMENTS)
def test_statements(statement: str) -> None:
    assert _check(_made(f"    {statement}\n"))


def test_a_condition_that_only_a_run_knows() -> None:
    with pytest.raises(Dy2StaticError, match="comprehension inside a lambda") as caught:
        to_static(lambda x: (lambda: [v for v in range(3) if x.sum() > v][-1])() + x)(torch.ones(3))
    assert caught.value.code == "D2S212" and caught.value.location is not None
