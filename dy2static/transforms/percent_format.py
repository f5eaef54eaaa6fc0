"""``%`` on a text literal becomes an operator: a field may hold what only the Program knows.

>>> from dy2static.transforms.base import rewritten
>>> print(rewritten('''
... def f(n):
...     return "n=%d" % n, n % 2
... ''', transform))
def f(n):
    return _d2s.percent('n=%d', n), n % 2
"""

from __future__ import annotations

from typing import Any

import gast

from dy2static.transforms.base import Context, Transformer, operator


def transform(tree: Any, context: Context) -> Any:
    """Replace ``"..." % values``."""
    return _Percent(context).visit(tree)


class _Percent(Transformer):
    def visit_BinOp(self, node: gast.AST) -> Any:
        self.generic_visit(node)
        literal = isinstance(node.left, gast.Constant) and isinstance(node.left.value, str)
        if not literal or not isinstance(node.op, gast.Mod):
            return node
        return operator("percent", node.left, node.right, origin=node)
