"""Subscripts: reads, stores and deletions go through operators; a slice becomes a slice object.

>>> from dy2static.transforms.base import rewritten
>>> print(rewritten('''
... def f(x, i):
...     x[i] = x[1:, ::2]
...     del x[0]
... ''', transform))
def f(x, i):
    _d2s.set_item(x, i, _d2s.item(x, (_d2s.slice(1, None, None), _d2s.slice(None, None, 2))))
    _d2s.del_item(x, 0)
"""

from __future__ import annotations

from typing import Any

import gast

from dy2static.template import replace
from dy2static.transforms.base import Context, operator
from dy2static.transforms.targets import TargetTransformer


def transform(tree: Any, context: Context) -> Any:
    """Replace every subscript; runs after `targets`."""
    return _Subscript(context).visit(tree)


class _Subscript(TargetTransformer):
    class_bodies = True

    def visit_Subscript(self, node: gast.AST) -> Any:
        self.generic_visit(node)
        if not isinstance(node.ctx, gast.Load):
            return node
        return operator("item", node.value, self.as_value(node.slice), origin=node)

    def visit_Assign(self, node: gast.AST) -> Any:
        self.generic_visit(node)
        target = node.targets[0]
        if self.in_class or len(node.targets) > 1 or not isinstance(target, gast.Subscript):
            return node
        key = self.as_value(target.slice)
        return replace("_d2s.set_item(owner, key, value)", owner=target.value, key=key, value=node.value, origin=node)

    def visit_Delete(self, node: gast.AST) -> Any:
        self.generic_visit(node)
        target = node.targets[0]
        if self.in_class or len(node.targets) > 1 or not isinstance(target, gast.Subscript):
            return node
        return replace("_d2s.del_item(owner, key)", owner=target.value, key=self.as_value(target.slice), origin=node)
