"""A loop's ``else`` runs unless the loop was left by ``break``.

>>> from dy2static.transforms.base import rewritten
>>> print(rewritten('''
... def f(xs):
...     for x in xs:
...         if x:
...             break
...     else:
...         x = None
...     return x
... ''', transform))
def f(xs):
    _d2s_broken_1 = False
    for x in xs:
        if x:
            _d2s_broken_1 = True
            break
    if not _d2s_broken_1:
        x = None
    return x

Without a ``break`` the ``else`` block just follows the loop.
"""

from __future__ import annotations

from typing import Any

import gast

from dy2static.analysis import facts
from dy2static.analysis.facts import Fact
from dy2static.template import replace
from dy2static.transforms.base import Context, Transformer
from dy2static.transforms.leaving import breaks_in


def transform(tree: Any, context: Context) -> Any:
    """Take the ``else`` off every loop."""
    return _LoopElse(context).visit(tree)


class _LoopElse(Transformer):
    expressions = False

    def visit_While(self, node: gast.AST) -> Any:
        self.generic_visit(node)
        if not node.orelse:
            return node
        orelse, node.orelse = node.orelse, []
        flags = {facts.get(item, Fact.BREAK_FLAG) for item in breaks_in(node)}
        if not flags:
            return [node, *orelse]
        before: list[gast.AST] = []
        if len(flags) == 1 and None not in flags:
            (flag,) = flags
        else:
            flag = self.context.namer.fresh("broken")
            before = replace("flag = False", flag=flag, origin=node)
            node.body = [new for statement in node.body for new in _as_list(_SetFlag(flag).visit(statement))]
        return [*before, node, *replace("if not flag:\n    body", flag=flag, body=orelse, origin=orelse[0])]

    visit_For = visit_While


class _SetFlag(gast.NodeTransformer):
    """Sets the flag before each ``break`` of this loop."""

    def __init__(self, flag: str) -> None:
        self.flag = flag

    def visit(self, node: gast.AST) -> Any:
        if isinstance(node, gast.Break):
            facts.put(node, Fact.BREAK_FLAG, self.flag)
            return [*replace("flag = True", flag=self.flag, origin=node), node]
        if isinstance(node, (gast.expr, gast.FunctionDef, gast.AsyncFunctionDef, gast.ClassDef, gast.While, gast.For)):
            return node
        return self.generic_visit(node)


def _as_list(new: Any) -> list[gast.AST]:
    return new if isinstance(new, list) else [new]
