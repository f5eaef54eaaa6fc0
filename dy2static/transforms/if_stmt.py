"""``if``: both branches as local functions; the operator runs one, or stages both.

>>> from dy2static.transforms.base import annotate, rewritten
>>> print(rewritten('''
... def f(x, y):
...     if x > 0:
...         y = x
...     return y
... ''', annotate, transform))
def f(x, y):
    def _d2s_body_1():
        nonlocal y
        y = x
    _d2s.if_stmt(x > 0, _d2s_body_1, None, 'y')
    return y

An ``if`` at the end of a function, all of whose branches return, gives the value:

>>> from dy2static.transforms import return_stmt
>>> print(rewritten('''
... def f(x):
...     if x > 0:
...         y = x + 1
...         return y * y
...     return -x
... ''', return_stmt.transform, annotate, transform))
def f(x):
    def _d2s_body_1():
        y = x + 1
        return y * y
    def _d2s_orelse_1():
        return -x
    return _d2s.if_expr(x > 0, _d2s_body_1, _d2s_orelse_1)
"""

from __future__ import annotations

from typing import Any

import gast

from dy2static.analysis import facts
from dy2static.analysis.facts import Fact
from dy2static.template import replace
from dy2static.transforms.base import Context, constant, name_node
from dy2static.transforms.blocks import ConstructTransformer


def transform(tree: Any, context: Context) -> Any:
    """Replace every convertible ``if``."""
    return _If(context).visit(tree)


class _If(ConstructTransformer):
    def visit_If(self, node: gast.AST) -> Any:
        self.generic_visit(node)
        if not facts.get(node, Fact.CONVERTIBLE):
            return node
        names = self.state(node)
        definitions = [self.body_function("body", node.body, node)]
        branches = [name_node(definitions[0].name, node)]
        if not _is_empty(node.orelse):
            definitions.append(self.body_function("orelse", node.orelse, node))
            branches.append(name_node(definitions[1].name, node))
        elif names:
            branches.append(constant(None))
        result = facts.get(node, Fact.RESULT)
        for definition in definitions if result else []:
            _give(definition.body, result)
        call = replace(
            "return _d2s.if_expr(test, branches, names)" if result else "_d2s.if_stmt(test, branches, names)",
            test=node.test, branches=branches, names=names, origin=node,
        )  # fmt: skip
        return [*definitions, *call]

    def enter(self, node: gast.AST) -> None:
        gives = len(node.body) > 1 and facts.get(node.body[-2], Fact.RESULT)
        super().enter(node)
        if gives:
            del node.body[-1]


def _give(block: list[gast.AST], name: str) -> None:
    """``name = value`` at the end of a block -> ``return value``."""
    last = block[-1]
    if isinstance(last, gast.Assign) and isinstance(last.targets[0], gast.Name) and last.targets[0].id == name:
        block[-1] = gast.copy_location(gast.Return(last.value), last)


def _is_empty(block: list[gast.AST]) -> bool:
    return all(isinstance(statement, gast.Pass) for statement in block)
