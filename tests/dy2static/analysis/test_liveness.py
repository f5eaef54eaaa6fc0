"""Whose value is still read. The programs mark a statement with a call of ``here()``."""

from __future__ import annotations

import gast
import pytest

from dy2static.analysis import facts, liveness
from dy2static.analysis.facts import Fact


def live_after_mark(text: str) -> set[str]:
    indented = "\n".join("    " + line for line in text.split("\n"))
    tree = gast.parse(f"def f(a, b, c):\n{indented}").body[0]
    liveness.analyse(tree)
    found = [
        node
        for node in gast.walk(tree)
        if isinstance(node, gast.Expr) and isinstance(node.value, gast.Call) and node.value.func.id == "here"
    ]
    assert len(found) == 1
    return set(facts.get(found[0], Fact.LIVE_OUT)) & set("abcdexyz")


@pytest.mark.parametrize(
    ("text", "live"),
    [
        ("here()\nreturn a", "a"),
        ("here()\na = 1\nreturn a", ""),
        ("here()\na += 1\nreturn a", "a"),
        ("here()\ndel a", "a"),
        ("here()\nif a: b = 1\nreturn b", "a b"),
        ("here()\nif a: b = 1\nelse: b = 2\nreturn b", "a"),
        ("here()\nif a: return b\nb = 1\nreturn b", "a b"),
        ("while a:\n    x = b\n    here()\n    a = x", "b x"),
        ("while a:\n    here()\n    x = b\n    a = x", "b"),
        ("for x in a:\n    here()\n    y = x", "x"),
        ("for x in a:\n    y = b\n    here()\nreturn y", "b y"),
        ("for x in a:\n    if b: break\n    here()\n    c = 1\nreturn c", "b"),
        ("for x in a:\n    if b: continue\n    here()\n    c = 1\nreturn c", "b"),
        ("for x in a: pass\nelse: here()\nreturn b", "b"),
        ("while a:\n    here()\n    break\nelse: return b\nreturn c", "c"),
        ("try:\n    here()\n    x = 1\nexcept E: return b\nreturn x", "b"),
        ("try:\n    x = 1\n    here()\n    x = 2\nexcept E: return x", "x"),
        ("try:\n    here()\n    return 1\nfinally:\n    print(b)", "b"),
        ("with a:\n    here()\n    b = 1\nreturn b", "b"),
        ("here()\nmatch a:\n    case [x, y]: return x\n    case z: return b", "a b"),
        ("def g(): return b\nhere()\nb = 1", "b"),
        ("g = lambda: b\nhere()\nb = 1", "b"),
        ("here()\nx = [y for y in a if b]\nb = 1", "a b"),
        ("here()\nx = a and (b := c)\nreturn b", "a b c"),
        ("nonlocal d\nhere()\nd = 1", "d"),
        ("here()\nraise a", "a"),
        ("here()\nassert a, b", "a b"),
        ("here()\nimport b\nreturn b", ""),
        ("here()\nfor b in a: pass\nreturn b", "a b"),
        ("here()\nclass b: x = c\nreturn b", "c"),
        ("here()\na.x, b[c] = 1, 2", "a b c"),
    ],
)
def test_live_after(text: str, live: str) -> None:
    assert live_after_mark(text) == set(live.split())
