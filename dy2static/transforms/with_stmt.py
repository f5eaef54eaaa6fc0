"""``with``: every manager goes through an operator, which enters and leaves those of users' classes converted.

>>> from dy2static.transforms.base import rewritten
>>> print(rewritten('''
... def f(a, x):
...     with a.scope(x) as y, a:
...         return y
... ''', transform))
def f(a, x):
    with _d2s.context(a.scope(x)) as y, _d2s.context(a):
        return y
"""

from __future__ import annotations

from typing import Any

import gast

from dy2static.names import OPERATORS
from dy2static.template import replace_expr
from dy2static.transforms.base import Context, Transformer


def transform(tree: Any, context: Context) -> Any:
    """Wrap the manager of every ``with``."""
    return _With(context).visit(tree)


def _is_ours(node: gast.AST) -> bool:
    return (
        isinstance(node, gast.Call) and isinstance(node.func, gast.Attribute)
        and isinstance(node.func.value, gast.Name) and node.func.value.id == OPERATORS
        and node.func.attr in ("context", "handling", "waiting")
    )


class _With(Transformer):
    def visit_With(self, node: gast.AST) -> Any:
        self.generic_visit(node)
        for item in node.items:
            if _is_ours(item.context_expr):
                continue
            item.context_expr = replace_expr(
                "_d2s.context(manager)", manager=item.context_expr, origin=item.context_expr
            )
        return node
