"""Attributes: reads, stores and deletions go through operators.

>>> from dy2static.transforms.base import rewritten
>>> print(rewritten('''
... def f(self, x):
...     self.last = x.shape
...     del self.first
... ''', transform))
def f(self, x):
    _d2s.set_attr(self, 'last', _d2s.attr(x, 'shape'))
    _d2s.del_attr(self, 'first')
"""

from __future__ import annotations

from typing import Any

import gast

from dy2static.template import replace
from dy2static.transforms.base import Context, Transformer, constant, is_operator, operator


def transform(tree: Any, context: Context) -> Any:
    """Replace every attribute; runs after `targets`."""
    return _Attribute(context).visit(tree)


class _Attribute(Transformer):
    class_bodies = True

    def visit_Attribute(self, node: gast.AST) -> Any:
        if is_operator(node):
            return node
        self.generic_visit(node)
        if not isinstance(node.ctx, gast.Load):
            return node
        return operator("attr", node.value, constant(node.attr), origin=node)

    def visit_Assign(self, node: gast.AST) -> Any:
        self.generic_visit(node)
        target = node.targets[0]
        if self.in_class or len(node.targets) > 1 or not isinstance(target, gast.Attribute):
            return node
        return replace(
            "_d2s.set_attr(owner, name, value)",
            owner=target.value, name=constant(target.attr), value=node.value, origin=node,
        )  # fmt: skip

    def visit_Delete(self, node: gast.AST) -> Any:
        self.generic_visit(node)
        target = node.targets[0]
        if self.in_class or len(node.targets) > 1 or not isinstance(target, gast.Attribute):
            return node
        return replace("_d2s.del_attr(owner, name)", owner=target.value, name=constant(target.attr), origin=node)
