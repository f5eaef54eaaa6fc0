"""``del`` of a name that a construct hands over leaves a placeholder behind; several targets are taken one by one.

>>> from dy2static.transforms.base import annotate, rewritten
>>> print(rewritten('''
... def f(c, y):
...     if c:
...         del y, c.x
...     return y
... ''', annotate, transform))
def f(c, y):
    if c:
        y = _d2s.Undefined('y')
        del c.x
    return y

The name of an ``except`` clause is deleted at the end of the clause. Where that matters:

>>> print(rewritten('''
... def f(c):
...     try:
...         c()
...     except ValueError as e:
...         print(e)
...     return e
... ''', annotate, transform))
def f(c):
    try:
        c()
    except ValueError as _d2s_error_1:
        e = _d2s_error_1
        try:
            print(e)
        finally:
            e = _d2s.Undefined('e')
    return e
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gast

from dy2static.analysis import facts
from dy2static.analysis.facts import Fact
from dy2static.template import replace
from dy2static.transforms.base import Context, Transformer, converts, methods
from dy2static.transforms.placeholder import placeholders


def transform(tree: Any, context: Context) -> Any:
    """Replace deletions of names that must always hold something."""
    return _Delete(context).visit(tree)


class _Delete(Transformer):
    """Enters all functions: a generator may delete a name of a function that converts."""

    expressions = False


    def visit_FunctionDef(self, node: gast.AST) -> Any:
        self._inside(node)
        return node

    def visit_ClassDef(self, node: gast.AST) -> Any:
        for method in methods(node):
            self._inside(method)
        return node

    def _inside(self, node: gast.AST) -> None:
        self.functions.append(node)
        node.body = self.block(node.body)
        self.functions.pop()

    def visit_Delete(self, node: gast.AST) -> Any:
        targets = list(_flat(node.targets))
        if not any(isinstance(target, gast.Name) and self._tracked(target.id) for target in targets):
            return node
        result: list[gast.AST] = []
        for target in targets:
            if isinstance(target, gast.Name) and self._tracked(target.id):
                result += placeholders((target.id,), node)
            else:
                result.append(gast.copy_location(gast.Delete([target]), node))
        return result

    def visit_ExceptHandler(self, node: gast.AST) -> Any:
        node.body = self.block(node.body)
        if node.name is None or not self._tracked(node.name.id):
            return node
        name, caught = node.name.id, self.context.namer.fresh("error")
        node.name.id = caught
        node.body = replace(
            "name = caught\ntry:\n    body\nfinally:\n    reset",
            name=name, caught=caught, body=node.body, reset=placeholders((name,), node), origin=node,
        )  # fmt: skip
        return node

    def _tracked(self, name: str) -> bool:
        for function in reversed(self.functions):
            scope = facts.get(function, Fact.SCOPE)
            if name in scope.globals:
                return False
            if name in scope.locals:
                return converts(function) and name in facts.get(function, Fact.TRACKED, ())
        return False


def _flat(targets: list[Any]) -> Iterator[Any]:
    for target in targets:
        if isinstance(target, (gast.Tuple, gast.List)):
            yield from _flat(target.elts)
        else:
            yield target
