"""Names by what happens to them: read, bound, deleted, captured, stored to from nested functions."""

from __future__ import annotations

import gast
import pytest

from dy2static.analysis.scope import bound_in, has_walrus, parameter_names, scope_of, uses


def function(text: str) -> gast.FunctionDef:
    return gast.parse(text).body[0]


@pytest.mark.parametrize(
    ("text", "reads", "writes"),
    [
        ("x = y", "y", "x"),
        ("x += y", "x y", "x"),
        ("x: int", "", ""),
        ("x: T = y", "y", "x"),
        ("a.b = c[d]", "a c d", ""),
        ("a[i] += v", "a i v", ""),
        ("del x, y.z", "x y", "x"),
        ("import a.b, c as d", "", "a d"),
        ("from m import a, b as c", "", "a c"),
        ("for a, *b in c: pass", "c", "a b"),
        ("with a as b, c as (d, e): f", "a c f", "b d e"),
        ("try: a\nexcept E as e: b\nfinally: c", "a E b c", "e"),
        ("match s:\n case [a, *b]: pass\n case {'k': c, **d}: pass\n case K(x=e) as f: pass", "s K", "a b c d e f"),
        ("[x for x in xs if y]", "xs y", ""),
        ("[z := x for x in xs]", "xs", "z"),
        ("{k: v for k, v in d for w in k}", "d", ""),
        ("sum(x + w for x in xs)", "sum xs w", ""),
        ("(y := x) + y", "x y", "y"),
        ("def f(a=b, *, c: d = e) -> g: return a + h", "b d e g", "f"),
        ("class C(B, metaclass=M):\n a = b\n def f(self): return c", "B M b", "C"),
        ("@d\nclass C: pass", "d", "C"),
        ("global g", "", ""),
        ("f'{a!r:{b}}'", "a b", ""),
        ("lambda a, b=c: a + d", "c", ""),
    ],
)
def test_reads_and_writes(text: str, reads: str, writes: str) -> None:
    found = uses(gast.parse(text).body)
    assert found.reads == set(reads.split()) and found.writes == set(writes.split())


@pytest.mark.parametrize(
    ("text", "captured"),
    [
        ("f = lambda x: x + y", "y"),
        ("def f(a):\n b = a\n return b + c", "c"),
        ("def f():\n def g(): return x + y\n y = 1", "x"),
        ("g = (x + y for x in xs)", "y"),
        ("any(lambda: y for x in xs)", "y"),
        ("class C:\n a = 1\n def f(self): return a + b", "a b"),
        ("class C:\n f = lambda self: b", "b"),
        ("def f():\n global n\n n = m", "m"),
        ("[lambda: x + y for x in xs]", "y"),
        ("async def f(): await x", "x"),
    ],
)
def test_captured(text: str, captured: str) -> None:
    assert uses(gast.parse(text).body).captured == set(captured.split())


def test_stores_from_nested_functions() -> None:
    found = uses(gast.parse("def f():\n nonlocal a, b, c\n a = 1\n del b\n def g():\n  nonlocal c\n  c += 1").body)
    assert found.rebound == {"a", "b", "c"} and found.unbound == {"b"}


def test_a_nested_function_shields_its_own_names() -> None:
    found = uses(gast.parse("def f():\n a = 1\n def g():\n  nonlocal a\n  a = 2").body)
    assert found.rebound == set() and found.captured == set()


def test_class_body_can_store_outside() -> None:
    found = uses(gast.parse("class C:\n nonlocal n\n n = 1\n m = 2").body)
    assert found.writes == {"C", "n"}


def test_scope() -> None:
    scope = scope_of(
        function(
            "def f(a, /, b, *c, d, **e):\n global g\n nonlocal h\n x: int\n y = z\n g = h = 1\n"
            " fn = lambda: (y, q)\n def k():\n  nonlocal y\n  y = 2\n"
        )
    )
    assert scope.parameters == ("a", "b", "c", "d", "e")
    assert scope.locals == {"a", "b", "c", "d", "e", "x", "y", "fn", "k"}
    assert scope.globals == {"g"} and scope.nonlocals == {"h"}
    assert scope.captured == {"y"} and scope.rebound == {"y"} and scope.free == {"z", "h", "q"}
    assert scope.rebinds == {"h"}


def test_bound_in_ignores_nested_functions() -> None:
    assert bound_in(gast.parse("def f():\n x = 1\ny = [z := 1 for q in r]").body) == {"f", "y", "z"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [("(a := 1)", True), ("[a := x for x in y]", True), ("lambda: (a := 1)", False), ("a", False)],
)
def test_has_walrus(text: str, expected: bool) -> None:
    assert has_walrus(gast.parse(text, mode="eval").body) is expected


def test_parameter_names_of_a_lambda() -> None:
    assert parameter_names(gast.parse("lambda a, *b, c=1: 0", mode="eval").body) == ("a", "b", "c")
