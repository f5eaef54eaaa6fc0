"""Tests stand before what may raise, and nothing is evaluated in another order for them."""

from __future__ import annotations

import random
from typing import Any

import gast
import pytest

import dy2static.operators
from dy2static.transforms import caught_raise
from dy2static.transforms.base import rewritten
from dy2static.transforms.fault_sites import DIVISION, LOOKUP, first_site

BOTH = frozenset({LOOKUP, DIVISION})


@pytest.mark.parametrize(("statement", "kind", "operands"), [
    ("v = d[i]", "get", ["d", "i"]),
    ("v = d[f(i) - 1]", "get", ["d", "f(i) - 1"]),
    ("v = d[i][j]", "get", ["d", "i"]),
    ("v = d[e[i]]", "get", ["e", "i"]),
    ("d[i] = v", "set", ["d", "i"]),
    ("del d[i]", "del", ["d", "i"]),
    ("v = d.pop()", "pop", ["d"]),
    ("v = d.pop(i)", "pop", ["d", "i"]),
    ("return (a + b) / n", "/", ["a + b", "n"]),
    ("v = f(a) % g(b)", "%", ["f(a)", "g(b)"]),
    ("v //= n", "//", ["v", "n"]),
    ("d[i] += v", "get", ["d", "i"]),
    ("out.append(a / b)", "/", ["a", "b"]),
    ("v = f(a), a / b", "/", ["a", "b"]),
    ("v = d[a / b]", "/", ["a", "b"]),
    ("v = -(a / b)", "/", ["a", "b"]),
    ("v = a / b < c", "/", ["a", "b"]),
])  # fmt: skip
def test_first_site(statement: str, kind: str, operands: list[str]) -> None:
    site = first_site(gast.parse(f"def f():\n    {statement}").body[0].body[0], BOTH)
    assert site is not None
    assert (site.kind, [gast.unparse(part.get()) for part in site.operands]) == (kind, operands)


@pytest.mark.parametrize("statement", [
    "v = a / 2", "v = a * b", "v = '%d' % a", "v = f'{a}' % b", "v = d[1:2]", "v = d[i, j]", "v = a if c else a / b",
    "v = c and a / b", "v = [a / b for a in c]", "v = lambda: a / b", "v = (w := a) / b", "v = f(*a, b / c)", "return",
    "d.e = v", "v += w", "a < b < c / d",
])  # fmt: skip
def test_no_site(statement: str) -> None:
    assert first_site(gast.parse(f"def f():\n    {statement}").body[0].body[0], BOTH) is None


def test_only_what_a_handler_names() -> None:
    (statement,) = gast.parse("v = d[a / b]").body
    assert first_site(statement, frozenset({LOOKUP})).kind == "get"  # type: ignore[union-attr]
    assert first_site(statement, frozenset({DIVISION})).kind == "/"  # type: ignore[union-attr]
    assert first_site(statement, frozenset()) is None


class _Writer:
    """Random statements over functions that note their calls and bind names anew."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def expression(self, depth: int) -> str:
        kinds = ["name", "constant"] if depth == 0 else [
            "name", "call", "call", "binary", "binary", "item", "method", "tuple", "compare", "minus", "pop", "lazy"]
        kind = self._random.choice(kinds)
        inner = [self.expression(depth - 1) if depth else "" for _ in range(2)]
        operator = self._random.choice("+-*/%") if self._random.random() < 0.8 else "//"
        return {
            "name": self._random.choice("abn"), "constant": str(self._random.randint(0, 2)),
            "call": f"call({inner[0]}, {self._random.choice('abn')!r})",
            "binary": f"({inner[0]} {operator} {inner[1]})",
            "item": f"d[number({inner[0]})]", "method": f"keep.one({inner[0]}, {inner[1]})",
            "tuple": f"({inner[0]}, {inner[1]})[number({self._random.choice('abn')})]",
            "compare": f"(number({inner[0]}) < number({inner[1]}))", "minus": f"-number({inner[0]})", "pop": "d.pop()",
            "lazy": f"({inner[0]} if flag() else {inner[1]})",
        }[kind]

    def statement(self) -> str:
        value = self.expression(3)
        return self._random.choice([
            f"v = {value}", f"d[number({self.expression(1)})] = {value}", f"b += {value}", f"n /= {value}", value,
            f"d[number({self.expression(1)})] += {value}", f"del d[number({value})]", f"keep.two = {value}",
            f"return {value}",
        ])  # fmt: skip

    def source(self) -> str:
        body = "\n        ".join(self.statement() for _ in range(3))
        return f"""
def f(a, b, n, d, log):
    flags = [True, False] * 50
    class keep:
        two = None
        def one(*given):
            log.append(given)
            return given[0]
    def number(value):
        log.append(("number", value))
        return int(value) % 4 if value == value and abs(value) < 1e9 else 0
    def flag():
        return flags.pop()
    def call(value, name):
        nonlocal a, b, n
        log.append((name, value))
        a, b, n = (value if one == name else old for one, old in (("a", a), ("b", b), ("n", n)))
        return value
    v = None
    try:
        {body}
    except IndexError as error:
        v = repr(error)
    except ZeroDivisionError as error:
        v = repr(error)
    return v, a, b, n, d, keep.two
"""


def _outcome(source: str) -> tuple[Any, ...]:
    space: dict[str, Any] = {"_d2s": dy2static.operators}
    exec(source, space)
    log: list[Any] = []
    items = [1, 2.5, 3]
    try:
        result = space["f"](1, 2.5, 0, items, log)
    except Exception as error:
        result = repr(error)
    return repr(result), repr(items), repr(log)


@pytest.mark.parametrize("seeds", [range(start, start + 50) for start in range(0, 200, 50)], ids=str)
def test_nothing_changes_places(seeds: range) -> None:
    """Python runs what is written there as it runs the original: results, exceptions and the order of all calls."""
    found = 0
    for seed in seeds:
        source = _Writer(seed).source()
        made = rewritten(source, caught_raise.transform)
        found += "_d2s.lacks" in made
        assert _outcome(made) == _outcome(source), f"seed {seed}: {source}\n{made}"
    assert found > len(seeds) / 2
