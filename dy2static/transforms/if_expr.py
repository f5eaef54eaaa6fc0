"""``a if c else b``: both values unevaluated until one is needed.

>>> from dy2static.transforms.base import rewritten
>>> print(rewritten('''
... def f(a, b):
...     return a if a > b else b
... ''', transform))
def f(a, b):
    return _d2s.if_expr(a > b, lambda: a, lambda: b)
"""

from __future__ import annotations

from typing import Any

import gast

from dy2static.transforms.base import Context, Transformer, operator
from dy2static.transforms.blocks import thunk
from dy2static.transforms.walrus import lazily_bound


def transform(tree: Any, context: Context) -> Any:
    """Replace every conditional expression."""
    return _IfExpr(context).visit(tree)


class _IfExpr(Transformer):
    def visit_IfExp(self, node: gast.AST) -> Any:
        self.generic_visit(node)
        if lazily_bound(node):
            return node
        return operator("if_expr", node.test, thunk(node.body, node.body), thunk(node.orelse, node.orelse), origin=node)
