"""``raise``: an operator, so that a staged path can end in it.

>>> from dy2static.transforms.base import rewritten
>>> print(rewritten('''
... def f(x):
...     try:
...         raise ValueError(x) from None
...     except ValueError:
...         raise
... ''', transform))
def f(x):
    try:
        _d2s.raise_stmt(ValueError(x), None)
    except ValueError:
        raise
"""

from __future__ import annotations

from typing import Any

import gast

from dy2static.template import replace
from dy2static.transforms.base import Context, Transformer


def transform(tree: Any, context: Context) -> Any:
    """Replace every ``raise`` that names an exception."""
    return _Raise(context).visit(tree)


class _Raise(Transformer):
    def visit_Raise(self, node: gast.AST) -> Any:
        self.generic_visit(node)
        if node.exc is None:
            return node
        cause = [node.cause] if node.cause is not None else []
        return replace("_d2s.raise_stmt(error, cause)", error=node.exc, cause=cause, origin=node)
