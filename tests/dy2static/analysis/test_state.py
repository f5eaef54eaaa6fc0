"""What constructs hand over, and which names need a declaration where."""

from __future__ import annotations

import gast
import pytest

from dy2static.analysis import facts, state
from dy2static.analysis.facts import Fact


def analysed(text: str) -> gast.FunctionDef:
    indented = "\n".join("    " + line for line in text.split("\n"))
    tree = gast.parse(f"def f(a, b):\n{indented}").body[0]
    state.analyse(tree)
    return tree


def first_construct(tree: gast.AST) -> gast.AST:
    return next(node for node in gast.walk(tree) if isinstance(node, (gast.If, gast.While, gast.For)))


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("if a: x = 1", ()),
        ("if a: x = 1\nreturn x", ("x",)),
        ("if a: b = 1\nreturn a", ()),
        ("if a: b = b + 1\nreturn a", ("b",)),
        ("if a: b = 1\nelse: print(b)", ()),
        ("if a: b.x = 1\nreturn b", ()),
        ("if a: x = 1\ng = lambda: x", ("x",)),
        ("nonlocal n\nif a: n = 1", ("n",)),
        ("global n\nif a: n = 1\nreturn n", ()),
        ("while a: a = a - 1", ("a",)),
        ("while a:\n    t = b\n    a = t", ("a",)),
        ("while a:\n    print(b)\n    b = 1", ("b",)),
        ("for x in a: b = b + x\nreturn b", ("b",)),
        ("for x in a: pass\nreturn x", ("x",)),
        ("for x in a:\n    for y in x: b = y\nreturn b", ("b",)),
        ("for x in a:\n    try: y = x\n    except E: pass\n    print(y)", ("y",)),
        ("if a:\n    import x\nreturn x", ("x",)),
        ("if a:\n    def x(): pass\nreturn x", ("x",)),
        ("if a: del b\nreturn b", ("b",)),
    ],
)
def test_state(text: str, names: tuple[str, ...]) -> None:
    assert facts.get(first_construct(analysed(text)), Fact.STATE) == names


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("x = 1\nif a: x = 2\nreturn x", ()),
        ("if a: x = 2\nreturn x", ("x",)),
        ("if a: b = 2\nreturn b", ()),
        ("if a: x = 1\nelse: x = 2\nreturn x", ("x",)),
        ("return 1\nif a: x = 1\nreturn x", ("x",)),
        ("for x in a: pass\nreturn x", ("x",)),
        ("if a: x = 1\nx = 2\nreturn x", ()),
        ("print(x)\nx = 1", ()),
        ("x: int\nif a: x = 1\nreturn x", ()),
        ("del a\nif b: a = 1\nreturn a", ()),
    ],
)
def test_declarations_of_the_function(text: str, names: tuple[str, ...]) -> None:
    assert facts.get(analysed(text), Fact.DECLARED) == names


def test_declarations_of_a_block() -> None:
    tree = analysed("for i in a:\n    if i: x = i\n    else: x = 0\n    print(x)")
    loop = first_construct(tree)
    assert facts.get(tree, Fact.DECLARED) == () and facts.get(loop, Fact.DECLARED) == ("x",)


def test_generated_names_come_last() -> None:
    assert state.ordered({"_d2s_a_1", "z", "b"}) == ("b", "z", "_d2s_a_1")
