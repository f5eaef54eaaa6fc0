"""Operators are seen by the tracer: sets may differ between paths, users' classes meet lists that grew, and lists be
held by reference.

>>> from dy2static.transforms.base import rewritten
>>> print(rewritten('''
... def f(s, t):
...     return s - t, -s, s <= t, s == t
... ''', transform))
def f(s, t):
    return _d2s.binary(s, '-', t), _d2s.unary('-', s), _d2s.binary(s, '<=', t), s == t
"""

from __future__ import annotations

from typing import Any

import gast

from dy2static.transforms.base import Context, Transformer, constant, operator

_BINARY = {
    gast.Sub: "-", gast.BitAnd: "&", gast.BitOr: "|", gast.BitXor: "^", gast.Add: "+", gast.Mult: "*",
    gast.MatMult: "@", gast.Div: "/", gast.FloorDiv: "//", gast.Mod: "%", gast.Pow: "**", gast.LShift: "<<",
    gast.RShift: ">>",
}  # fmt: skip
_UNARY = {gast.USub: "-", gast.UAdd: "+", gast.Invert: "~"}
_ORDER = {gast.Lt: "<", gast.LtE: "<=", gast.Gt: ">", gast.GtE: ">="}


def transform(tree: Any, context: Context) -> Any:
    """Replace operators, and comparisons that are still Python's."""
    return _Binary(context).visit(tree)


class _Binary(Transformer):
    class_bodies = True

    def visit_BinOp(self, node: gast.AST) -> Any:
        self.generic_visit(node)
        text = _BINARY.get(type(node.op))
        return node if text is None else operator("binary", node.left, constant(text), node.right, origin=node)

    def visit_UnaryOp(self, node: gast.AST) -> Any:
        self.generic_visit(node)
        text = _UNARY.get(type(node.op))
        if text is None or isinstance(node.operand, gast.Constant):
            return node
        return operator("unary", constant(text), node.operand, origin=node)

    def visit_Compare(self, node: gast.AST) -> Any:
        self.generic_visit(node)
        text = _ORDER.get(type(node.ops[0])) if len(node.ops) == 1 else None
        if text is None:
            return node
        return operator("binary", node.left, constant(text), node.comparators[0], origin=node)
