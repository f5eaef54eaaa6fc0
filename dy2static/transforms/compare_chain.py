"""Chained comparisons become `and_` over pairs; ``in``, ``is`` and ``==`` become operators that see both values.

>>> from dy2static.transforms.base import rewritten
>>> print(rewritten('''
... def f(x, g):
...     return 0 < x <= 9, 0 < g(x) < g(9), x is not None, x == g, x == 1
... ''', transform))
def f(x, g):
    return _d2s.and_(lambda: 0 < x, lambda: x <= 9), (lambda _d2s_value_1: _d2s.and_(lambda: 0 < _d2s_value_1, lambda: _d2s_value_1 < g(9)))(g(x)), _d2s.compare(x, 'is not', None), _d2s.compare(x, '==', g), _d2s.compare(x, '==', 1)

Each operand is evaluated once, in order, and only as far as the chain goes. Other comparisons stay Python's.
"""  # noqa: E501 # the line that the example prints

from __future__ import annotations

from typing import Any

import gast

from dy2static.template import replace_expr
from dy2static.transforms.base import Context, Transformer, constant, name_node, operator
from dy2static.transforms.blocks import thunk
from dy2static.transforms.walrus import lazily_bound

_OPERATORS = {gast.In: "in", gast.NotIn: "not in", gast.Is: "is", gast.IsNot: "is not"}
_EQUALITY = {gast.Eq: "==", gast.NotEq: "!="}


def transform(tree: Any, context: Context) -> Any:
    """Replace chained comparisons, ``in`` and ``is`` (only the first where only control flow converts)."""
    return _Compare(context).visit(tree)


class _Compare(Transformer):
    def visit_Compare(self, node: gast.AST) -> Any:
        self.generic_visit(node)
        if lazily_bound(node):
            return node
        return self._chain(node.left, list(zip(node.ops, node.comparators)), node)

    def _chain(self, left: Any, rest: list[tuple[Any, Any]], origin: gast.AST) -> Any:
        """``left op right op right ...``"""
        pairs: list[Any] = []
        while rest:
            (op, right), rest = rest[0], rest[1:]
            if rest and not _is_simple(right):
                pairs.append(self._with_temporaries(left, op, right, rest, origin))
                break
            pairs.append(self._pair(left, op, right, origin))
            if rest:
                left = _again(right)
        if len(pairs) == 1:
            return pairs[0]
        return operator("and_", *(thunk(pair, origin) for pair in pairs), origin=origin)

    def _with_temporaries(self, left: Any, op: Any, right: Any, rest: list[tuple[Any, Any]], origin: gast.AST) -> Any:
        names: list[str] = []
        values: list[Any] = []
        operands: list[Any] = []
        for operand in (left, right):
            if _is_simple(operand):
                operands.append(_again(operand))
                continue
            names.append(self.context.namer.fresh("value"))
            values.append(operand)
            operands.append(name_node(names[-1], operand))
        pair = self._pair(operands[0], op, operands[1], origin)
        more = self._chain(_again(operands[1]), rest, origin)
        both = operator("and_", thunk(pair, origin), thunk(more, origin), origin=origin)
        return replace_expr("(lambda names: both)(values)", names=names, both=both, values=values, origin=origin)

    def _pair(self, left: Any, op: Any, right: Any, origin: gast.AST) -> Any:
        text = _OPERATORS.get(type(op))
        if text is None:
            text = _EQUALITY.get(type(op))
        if text is not None and self.context.full:
            return operator("compare", left, constant(text), right, origin=origin)
        return gast.copy_location(gast.Compare(left, [op], [right]), origin)


def _is_simple(node: gast.AST) -> bool:
    """Whether reading it twice is reading it once."""
    return isinstance(node, (gast.Name, gast.Constant))


def _again(node: Any) -> Any:
    return name_node(node.id, node) if isinstance(node, gast.Name) else gast.copy_location(constant(node.value), node)
