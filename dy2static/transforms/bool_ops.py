"""``and``, ``or``, ``not``: operators that see the values; operands stay unevaluated until they are needed.

>>> from dy2static.transforms.base import rewritten
>>> print(rewritten('''
... def f(a, b, c):
...     return a and b or not c
... ''', transform))
def f(a, b, c):
    return _d2s.or_(lambda: _d2s.and_(lambda: a, lambda: b), lambda: _d2s.not_(c))
"""

from __future__ import annotations

from typing import Any

import gast

from dy2static.transforms.base import Context, Transformer, operator
from dy2static.transforms.blocks import thunk
from dy2static.transforms.walrus import lazily_bound


def transform(tree: Any, context: Context) -> Any:
    """Replace every ``and``, ``or`` and ``not``."""
    return _BoolOps(context).visit(tree)


class _BoolOps(Transformer):
    def visit_BoolOp(self, node: gast.AST) -> Any:
        self.generic_visit(node)
        if lazily_bound(node):
            return node
        name = "and_" if isinstance(node.op, gast.And) else "or_"
        return operator(name, *(thunk(value, value) for value in node.values), origin=node)

    def visit_UnaryOp(self, node: gast.AST) -> Any:
        self.generic_visit(node)
        return operator("not_", node.operand, origin=node) if isinstance(node.op, gast.Not) else node
