"""``super()`` finds its class and object in the frame; written out, it works anywhere.

>>> from dy2static.transforms.base import rewritten
>>> print(rewritten('''
... def forward(self, x):
...     return super().forward(x)
... ''', transform, class_name="Net"))
def forward(self, x):
    return super(__class__, self).forward(x)

Where Python itself would fail (no class around, no parameter) nothing changes.
"""

from __future__ import annotations

from typing import Any

import gast

from dy2static.nodes import kinds_in
from dy2static.template import replace_expr
from dy2static.transforms.base import Context, Transformer, converts, methods

_LAZY = (gast.If, gast.While, gast.For, gast.IfExp, gast.BoolOp, gast.Compare, gast.Assert)


def transform(tree: Any, context: Context) -> Any:
    """Write out every ``super()``; if only control flow converts, those that may end up in a local function."""
    if not context.class_cell and gast.ClassDef not in kinds_in(tree):
        return tree
    return _Super(context).visit(tree)


class _Super(Transformer):
    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.has_class = context.class_cell
        self.lazy = 0

    def visit(self, node: gast.AST) -> Any:
        lazy = isinstance(node, _LAZY)
        self.lazy += lazy
        result = super().visit(node)
        self.lazy -= lazy
        return result

    def visit_ClassDef(self, node: gast.AST) -> Any:
        node.decorator_list, node.bases = self.each(node.decorator_list), self.each(node.bases)
        outside, self.has_class = self.has_class, True
        for method in methods(node):
            if converts(method):
                self.enter(method)
        self.has_class = outside
        return node

    def visit_Call(self, node: gast.AST) -> Any:
        self.generic_visit(node)
        plain = isinstance(node.func, gast.Name) and node.func.id == "super" and not node.args and not node.keywords
        if not plain or not self.has_class or not (self.lazy or self.context.full):
            return node
        args = self.function.args
        positional = [*args.posonlyargs, *args.args]
        if not positional:
            return node
        return replace_expr("super(__class__, first)", first=positional[0].id, origin=node)
