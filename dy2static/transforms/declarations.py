"""``global`` and ``nonlocal`` hold for the whole function: they go to its start before blocks become functions.

>>> from dy2static.transforms.base import rewritten
>>> print(rewritten('''
... def f(c):
...     if c:
...         global n
...         n = 1
... ''', transform))
def f(c):
    global n
    if c:
        n = 1
"""

from __future__ import annotations

from typing import Any

import gast

from dy2static.nodes import children
from dy2static.transforms.base import Context, functions_in, insert_at_top
from dy2static.transforms.leaving import without


def transform(tree: Any, context: Context) -> Any:
    """Move the declarations that stand in a nested block."""
    for function in functions_in(tree):
        if isinstance(function.body, list):
            _move(function)
    return tree


def _move(function: gast.AST) -> None:
    nested = [node for statement in function.body for node in _statements(statement) if node is not statement]
    moved = [node for node in nested if isinstance(node, (gast.Global, gast.Nonlocal))]
    if moved:
        function.body = without(function.body, {id(node) for node in moved})
        insert_at_top(function, list(moved))


def _statements(node: gast.AST) -> list[gast.AST]:
    found: list[gast.AST] = []
    todo = [node]
    while todo:
        part = todo.pop()
        found.append(part)
        if not isinstance(part, (gast.FunctionDef, gast.AsyncFunctionDef, gast.ClassDef, gast.expr)):
            todo.extend(children(part))
    return found
