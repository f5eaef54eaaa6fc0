"""A name that a construct hands over, but that may be unbound before it, starts with a placeholder.

>>> from dy2static.transforms.base import annotate, rewritten
>>> print(rewritten('''
... def f(c):
...     if c:
...         y = 1
...     return y
... ''', annotate, transform))
def f(c):
    y = _d2s.Undefined('y')
    if c:
        y = 1
    return y

Reading it is the business of `dy2static.transforms.load`.
"""

from __future__ import annotations

from typing import Any

import gast

from dy2static.analysis import facts
from dy2static.analysis.facts import Fact
from dy2static.template import replace
from dy2static.transforms.base import Context, Transformer, constant, insert_at_top


def transform(tree: Any, context: Context) -> Any:
    """Put the placeholders that the analysis found necessary."""
    return _Placeholder(context).visit(tree)


def placeholders(names: tuple[str, ...], origin: gast.AST) -> list[gast.AST]:
    """One assignment for each name."""
    return [
        statement
        for name in names
        for statement in replace("name = _d2s.Undefined(text)", name=name, text=constant(name), origin=origin)
    ]


class _Placeholder(Transformer):
    expressions = False

    def enter(self, node: gast.AST) -> None:
        super().enter(node)
        insert_at_top(node, placeholders(facts.get(node, Fact.UNDEFINED, ()), node.body[0]))

    def visit_If(self, node: gast.AST) -> Any:
        self.generic_visit(node)
        node.body = placeholders(facts.get(node, Fact.UNDEFINED, ()), node) + node.body
        node.orelse = placeholders(facts.get(node, Fact.UNDEFINED_ORELSE, ()), node) + node.orelse
        return node

    def visit_While(self, node: gast.AST) -> Any:
        self.generic_visit(node)
        node.body = placeholders(facts.get(node, Fact.UNDEFINED, ()), node) + node.body
        return node

    visit_For = visit_While
