"""Names that transforms made: plain words, and nobody takes one for another."""

from __future__ import annotations

import functools
from typing import Any

import gast
import pytest

from dy2static.conversion import convert
from dy2static.pipeline import STEPS


def test_with_all_the_rest(alone: Any) -> None:
    alone({step.name for step in STEPS} - {"prepare"}, gast.FunctionDef)


def nested_breaks(xs, ys):
    found = []
    for x in xs:
        for y in ys:
            if y == x:
                break
            found.append((x, y))
        else:
            found.append(x)
            if x > 3:
                break
    return found


def nested_returns(xs):
    def first(ys):
        for y in ys:
            if y:
                return y

    for x in xs:
        if first(x):
            return first(x)


def words_of_the_users(body, broken, xs):
    orelse = body
    for x in xs:
        if x == broken:
            orelse += 1
            break
        orelse -= x
    return orelse, body


def inner_words(xs):
    for x in xs:
        if x:
            def broken(): return x
            break
    return broken()


def two_generators(xs):
    return [sum(v for v in xs if v > n) for n in xs], sum(a * b for a in xs for b in xs if a), any(x for x in xs)


def caught(xs):
    out = []
    for x in xs:
        try:
            if x > 1:
                raise ValueError(x)
            try:
                if x:
                    raise KeyError(x)
                out.append(x)
            except KeyError as e:
                out.append(str(e))
        except Exception as e:
            out.append(e.args)
    return out


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (nested_breaks, ([1, 4, 5], [2, 4])),
        (nested_returns, ([[], [0, 7], [8]],)),
        (words_of_the_users, (1, 2, [5, 2, 3])),
        (inner_words, ([0, 3],)),
        (two_generators, ([1, 2, 3],)),
        (caught, ([0, 1, 2],)),
    ],
)  # fmt: skip
def test_two_names_are_told_apart(function: Any, args: Any) -> None:
    converted = convert(function)
    assert converted(*args) == function(*args)
    assert "_d2s_" not in converted.__dy2static_source__.replace("_d2s_factory_1", "")


def body():
    def orelse(c):
        if c:
            def own(): return 1
        else:
            class own: pass
        return own

    return orelse


def test_functions_of_the_users_may_be_called_so() -> None:
    for c in (True, False):
        assert convert(body())(c).__qualname__ == body()(c).__qualname__ == "body.<locals>.orelse.<locals>.own"


def renamed():
    @functools.wraps(body)
    def wrapper():
        class K:
            def method(self): pass
        return K, K.method, lambda: 1

    return wrapper


def test_what_is_made_inside_is_named_after_where_the_source_stands() -> None:
    names = [one.__qualname__ for one in convert(renamed())()]
    assert names == [one.__qualname__ for one in renamed()()]
    assert names[0] == "renamed.<locals>.wrapper.<locals>.K"


def test_words_are_numbered_only_where_they_meet() -> None:
    text = convert(nested_breaks).__dy2static_source__
    assert text.count("broken = False") == 1 and text.count("broken_2 = False") == 1
    assert "def body(x):" in text and "def body(y):" in text and "body_2" not in text
    text = convert(words_of_the_users).__dy2static_source__
    assert "broken_2 = False" in text and "def body_2(x):" in text and "def orelse_2():" in text
    text = convert(nested_returns).__dy2static_source__
    assert "returned_2" not in text
