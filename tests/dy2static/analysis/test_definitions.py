"""Definite assignment: the reads that may find their name unbound."""

from __future__ import annotations

import gast
import pytest

from dy2static.analysis import definitions, facts
from dy2static.analysis.facts import Fact


def uncertain(text: str) -> list[str]:
    indented = "\n".join("    " + line for line in text.split("\n"))
    tree = gast.parse(f"def f(a):\n{indented}").body[0]
    definitions.analyse(tree)
    definitions.analyse(tree)  # a second run starts afresh
    return sorted({node.id for node in gast.walk(tree) if facts.get(node, Fact.UNBOUND)})


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("return a", ""),
        ("return x", ""),
        ("return x\nx = 1", "x"),
        ("x = x", "x"),
        ("x += 1", "x"),
        ("del a\nreturn a", "a"),
        ("if a: x = 1\nreturn x", "x"),
        ("if a: x = 1\nelse: x = 2\nreturn x", ""),
        ("if a: x = 1\nelse: raise E\nreturn x", ""),
        ("if a: return 1\nelse: x = 2\nreturn x", ""),
        ("while a: x = 1\nreturn x", "x"),
        ("while True:\n    x = 1\n    if a: break\nreturn x", ""),
        ("while True:\n    if a: break\n    x = 1\nreturn x", "x"),
        ("while a:\n    print(x)\n    x = 1", "x"),
        ("x = 1\nwhile a:\n    print(x)\n    del x", "x"),
        ("for x in a: pass\nreturn x", "x"),
        ("for x in a: print(x)", ""),
        ("for y in a:\n    x = 1\n    break\nelse: x = 2\nreturn x", ""),
        ("for y in a:\n    if y: continue\n    x = 1\n    print(x)", ""),
        ("try: x = 1\nexcept E: pass\nreturn x", "x"),
        ("try: x = 1\nexcept E: x = 2\nreturn x", ""),
        ("try: x = 1\nfinally: print(x)", "x"),
        ("try: pass\nfinally: x = 1\nreturn x", ""),
        ("try: a\nexcept E as e: print(e)\nreturn e", "e"),
        ("with a as x: y = 1\nreturn x, y", "y"),
        ("import x.y, z as w\nreturn x, w", ""),
        ("def g(): return 1\nreturn g", ""),
        ("class C: pass\nreturn C", ""),
        ("class C:\n    m = x\nx = 1", "x"),
        ("class C:\n    x = 1\n    y = x\nreturn C", ""),
        ("if (x := a) and (y := x): return x, y\nreturn x, y", "y"),
        ("if a or (x := 1): return x", "x"),
        ("b = (x := 1) if a else 2\nreturn x", "x"),
        ("b = a < 1 < (x := 2)\nreturn x", "x"),
        ("b = a < (x := 2)\nreturn x", ""),
        ("[x for x in a]\nx = 1", ""),
        ("[x for y in a]\nx = 1", "x"),
        ("match a:\n    case [x]: y = x\n    case _: y = 1\nreturn y", "y"),
        ("match a:\n    case [x] if x: print(x)", ""),
        ("x: int\nreturn x", "x"),
        ("x: int = 1\nreturn x", ""),
        ("global x\nreturn x\nx = 1", ""),
        ("def g():\n    nonlocal x\n    del x\nx = 1\nreturn x", "x"),
        ("a, x[y] = 1, 2\nx = y = 1", "x y"),
        ("return a\nprint(x)\nx = 1", ""),
    ],
)
def test_uncertain_reads(text: str, names: str) -> None:
    assert uncertain(text) == names.split()
