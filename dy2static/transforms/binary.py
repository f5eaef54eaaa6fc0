"""Operators of sets and lists (``+ * - & | ^ < <= > >=``) are seen by the tracer: where sets differ between paths, or
lists are held by reference.

>>> from dy2static.transforms.base import rewritten
>>> print(rewritten('''
... def f(s, t):
...     return s - t, s / t, s <= t
... ''', transform))
def f(s, t):
    return _d2s.binary(s, '-', t), s / t, _d2s.binary(s, '<=', t)
"""

from __future__ import annotations

from typing import Any

import gast

from dy2static.transforms.base import Context, Transformer, constant, operator

_BINARY = {gast.Add: "+", gast.Mult: "*", gast.Sub: "-", gast.BitAnd: "&", gast.BitOr: "|", gast.BitXor: "^"}
_ORDER = {gast.Lt: "<", gast.LtE: "<=", gast.Gt: ">", gast.GtE: ">="}


def transform(tree: Any, context: Context) -> Any:
    """Replace binary operators and comparisons that sets and lists have."""
    return _Binary(context).visit(tree)


class _Binary(Transformer):
    def visit_BinOp(self, node: gast.AST) -> Any:
        self.generic_visit(node)
        text = _BINARY.get(type(node.op))
        return node if text is None else operator("binary", node.left, constant(text), node.right, origin=node)

    def visit_Compare(self, node: gast.AST) -> Any:
        self.generic_visit(node)
        text = _ORDER.get(type(node.ops[0])) if len(node.ops) == 1 else None
        if text is None:
            return node
        return operator("binary", node.left, constant(text), node.comparators[0], origin=node)
