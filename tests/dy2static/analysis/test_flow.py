"""Where control goes: blocks that always leave, constructs that convert, functions that are left alone."""

from __future__ import annotations

import gast
import pytest

from dy2static.analysis.flow import convertible, leaves, left_alone


def body(text: str) -> list[gast.AST]:
    indented = "\n".join("        " + line for line in text.split("\n"))
    return gast.parse(f"def f():\n    for i in x:\n{indented}").body[0].body[0].body


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("return", True),
        ("raise E", True),
        ("break", True),
        ("continue", True),
        ("a", False),
        ("a\nreturn\nb", True),
        ("if c: return\nelse: break", True),
        ("if c: return\nelif d: break", False),
        ("while 1: a", True),
        ("while 1: break", False),
        ("while 1:\n    while 1: break", True),
        ("while c: return", False),
        ("for j in k: return", False),
        ("with a: return", False),
        ("try: return\nexcept E: a", False),
        ("try: return\nexcept E: return", True),
        ("try: a\nexcept E: return\nelse: return", True),
        ("try: a\nfinally: return", True),
        ("match a:\n    case 1: return\n    case _: return", True),
        ("match a:\n    case 1: return\n    case b if b: return", False),
        ("match a:\n    case 1: return\n    case (2 | b): return", True),
        ("def g(): return", False),
        ("assert False", False),
    ],
)
def test_leaves(text: str, expected: bool) -> None:
    assert leaves(body(text)) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("if a: b = 1", True),
        ("if a: break", False),
        ("if a: return 1", False),
        ("if a:\n    while b: break", True),
        ("if a:\n    for j in k: pass\n    else: continue", False),
        ("if a:\n    def g(): return 1", True),
        ("while a: break", False),
        ("while a: b\nelse: c", False),
        ("while a: b", True),
        ("for j in k:\n    for l in m: return", False),
        ("for j in k: j", True),
    ],
)
def test_convertible(text: str, expected: bool) -> None:
    assert convertible(body(text)[0]) is expected


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("return x", ""),
        ("yield x", ""),
        ("x = yield", ""),
        ("yield from x", ""),
        ("return (yield x)", "generator"),
        ("x = g((yield))", "generator"),
        ("def g(): yield", ""),
        ("f = lambda: (yield)", ""),
        ("locals()", ""),
        ("vars()", ""),
        ("vars(), locals()", "looks at its variables"),
        ("[vars() for i in x]", "vars()"),
        ("[i for i in vars()]", ""),
        ("super().f(); locals()", "locals()"),
        ("yield locals()", "locals()"),
        ("vars(x)", ""),
        ("dir()", "dir()"),
        ("dir(x)", ""),
        ("eval('x')", "eval()"),
        ("self.eval()", ""),
        ("exec = g\nexec('x')", ""),
        ("for i in x:\n    try: return 1\n    finally: break", "finally"),
        ("try: return 2\nfinally: return 1", "finally"),
        ("try: pass\nfinally: return 1", ""),
        ("try: pass\nfinally:\n    for i in x: break", ""),
        ("try: pass\nfinally:\n    def g(): return 1", ""),
    ],
)
def test_left_alone(text: str, why: str) -> None:
    indented = "\n".join("    " + line for line in text.split("\n"))
    reason = left_alone(gast.parse(f"def f(x):\n{indented}").body[0])
    assert why in reason and bool(why) == bool(reason)


def test_coroutines_are_left_alone() -> None:
    assert left_alone(gast.parse("async def f(): pass").body[0]) == "it is a coroutine"
