"""A name that only blocks of constructs bind is told to be local where they share it: by an annotation without value.

>>> from dy2static.transforms.base import annotate, rewritten
>>> print(rewritten('''
... def f(c):
...     if c:
...         y = 1
...     return y
... ''', annotate, transform))
def f(c):
    y: object
    if c:
        y = 1
    return y

The blocks become functions that declare it ``nonlocal``, so that the function itself binds it no more.
"""

from __future__ import annotations

from typing import Any

import gast

from dy2static.analysis import facts
from dy2static.analysis.facts import Fact
from dy2static.template import replace
from dy2static.transforms.base import Context, Transformer, insert_at_top


def transform(tree: Any, context: Context) -> Any:
    """Put the annotations that the analysis found necessary."""
    return _LocalNames(context).visit(tree)


def _annotations(node: gast.AST, fact: Fact, origin: gast.AST) -> list[gast.AST]:
    names = facts.get(node, fact, ())
    found = [statement for name in names for statement in replace("name: object", name=name, origin=origin)]
    for statement in found:
        facts.put(statement, Fact.PLAIN)
    return found


class _LocalNames(Transformer):
    expressions = False

    def enter(self, node: gast.AST) -> None:
        super().enter(node)
        insert_at_top(node, _annotations(node, Fact.DECLARED, node.body[0]))

    def visit_If(self, node: gast.AST) -> Any:
        self.generic_visit(node)
        node.body = _annotations(node, Fact.DECLARED, node) + node.body
        node.orelse = _annotations(node, Fact.DECLARED_ORELSE, node) + node.orelse
        return node

    def visit_While(self, node: gast.AST) -> Any:
        self.generic_visit(node)
        node.body = _annotations(node, Fact.DECLARED, node) + node.body
        return node

    visit_For = visit_While
