"""Python's trees as gast's and back: as gast's own functions do it."""

from __future__ import annotations

import ast
import os
from pathlib import Path
from typing import Any

import gast
import pytest

from dy2static.both_trees import to_ast, to_gast

LIBRARY = Path(os.__file__).parent
FILES = ["ast.py", "asyncio/base_events.py", "contextlib.py", "enum.py", "typing.py"]
TEXTS = [
    "def f(a, /, b: int = 1, *c, d, e=2, **g) -> int: ...",
    "match x:\n    case [1, *_] | {'k': A(b=None), **c} if d: pass\n    case _: pass",
    "try:\n    pass\nexcept (A, B) as c:\n    raise D from c\nexcept:\n    pass\nfinally:\n    del a[1:2, ...]",
    "async def f():\n    async with a as b, c: await d\n    return [e async for f in g if h]",
    "@a\nclass B(C, metaclass=D):\n    global x\n    x: int\n    y: int = lambda *, z: (yield)",
    "f'{a!r:>{b}} {c}', b'd', u'e', 1j, {**f, 1: 2}, {*g}",
    "import a.b as c\nfrom . import d\nnot (x := 1) < 2 is not 3 if a or b else -c",
]


def parts(tree: Any) -> list[Any]:
    """All that is in a tree, in order: nodes by their class, and the values of their fields and places."""
    found: list[Any] = []
    todo = [tree]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.AST):
            found.append(type(node))
            todo += [node.__dict__.get(name) for name in (*node._fields, *node._attributes)]
        elif isinstance(node, list):
            found.append(len(node))
            todo += node
        else:
            found.append((type(node), repr(node)))
    return found


def check(text: str) -> None:
    tree = ast.parse(text)
    mine, theirs = to_gast(tree), gast.ast_to_gast(tree)
    assert parts(mine) == parts(theirs)
    back = to_ast(mine)
    assert parts(back) == parts(gast.gast_to_ast(theirs))
    assert ast.dump(back, include_attributes=True) == ast.dump(tree, include_attributes=True)


@pytest.mark.parametrize("text", TEXTS)
def test_texts(text: str) -> None:
    check(text)


@pytest.mark.parametrize("file", FILES)
@pytest.mark.filterwarnings("ignore::SyntaxWarning")
def test_files(file: str) -> None:
    check((LIBRARY / file).read_text(encoding="utf-8"))


def test_nodes_are_not_shared() -> None:
    tree = ast.parse("def f(x): return x")
    there = to_gast(tree)
    there.body[0].body[0].value.id = "y"
    assert to_ast(there).body[0].body[0].value.id == "y" and ast.unparse(tree).endswith("return x")
