"""A rewritten ``match`` does what the original did, for values that every kind of pattern meets."""

from __future__ import annotations

import collections

import pytest

import dy2static.operators
from dy2static.transforms import match_stmt
from dy2static.transforms.base import rewritten

SOURCE = """
def f(value):
    match value:
        case None | True:
            return "singleton"
        case 1 | "a" | -2:
            return "value"
        case [1, *rest, 2] if len(rest) == 1:
            return "starred", rest
        case (1, 2) as pair:
            return "pair", pair
        case [[a, _], {"k": b, **more}]:
            return "nested", a, b, more
        case {"k": 1}:
            return "mapping"
        case str(text):
            return "text", text
        case complex(real=r, imag=0):
            return "attributes", r
        case float() | int():
            return "number"
        case []:
            return "empty"
    return "none"
"""
VALUES = [
    None, True, False, 1, 1.0, "a", "b", -2, 3, [1, 5, 2], (1, 5, 6, 2), (1, 2), [1, 2], [[1, 2], {"k": 3, "z": 4}],
    [(1, 2), {"z": 4}], {"k": 1, "l": 2}, {"k": 2}, 2j, 2 + 0j, 1.5, [], (), {}, b"ab", collections.deque([1, 2]),
    range(1, 3), {1, 2}, collections.defaultdict(list), collections.OrderedDict(k=1), iter([1, 2]),
]  # fmt: skip


def _made(text):
    names = {"_d2s": dy2static.operators}
    exec(text, names)
    return names["f"]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: repr(value).partition(" object at ")[0])
def test_it_does_what_python_does(value):
    text = rewritten(SOURCE, match_stmt.transform)
    assert "match" not in text.replace("is_matched", "")
    assert _made(text)(value) == _made(SOURCE)(value)


ALTERNATIVES = """
def f(x):
    said = []
    match x:
        case [a] | (a, _) if said.append(("first", a)) or a != 4:
            return said, a
        case [1 as b, _, *c] | [b, *c, 5]:
            return said, b, c
        case {"x": int(n) | [n], **rest} | {"y": n, **rest}:
            return said, n, rest
        case (str() as s, (t, 2) | [2, t] | t):
            return said, s, t
        case int(d) | float(d) | complex(real=d):
            return said, d
        case [e, _] | e if said.append(e):
            return None
        case g:
            return said, g
"""


@pytest.mark.parametrize("value", [
    [1], (2, 3), [4], (4, 1), [1, 2, 3], [0, 2, 5], [0, 5], {"x": 1}, {"x": [2], "z": 0}, {"x": "no"},
    {"y": 3, "x": "no"}, {"y": 1}, 7, 0.5, 1 + 2j, "text", None,
    ("a", (9, 2)), ("a", [2, 8]), ("a", 6), [], {}, True, [3, 4, 6],
], ids=repr)
def test_alternatives_that_bind(value):
    text = rewritten(ALTERNATIVES, match_stmt.transform)
    assert "match" not in text.replace("is_matched", "")
    assert _made(text)(value) == _made(ALTERNATIVES)(value)
