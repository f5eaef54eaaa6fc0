"""``assert``: an operator; the message is evaluated only when it fails.

>>> from dy2static.transforms.base import rewritten
>>> print(rewritten('''
... def f(x):
...     assert x > 0, f"bad {x}"
...     assert x
... ''', transform))
def f(x):
    _d2s.assert_stmt(x > 0, lambda: f'bad {x}')
    _d2s.assert_stmt(x)

Under ``python -O`` assertions vanish, as Python's do.
"""

from __future__ import annotations

from typing import Any

import gast

from dy2static.analysis.scope import has_walrus
from dy2static.template import replace
from dy2static.transforms.base import Context, Transformer
from dy2static.transforms.blocks import thunk


def transform(tree: Any, context: Context) -> Any:
    """Replace every ``assert``."""
    return _Assert(context).visit(tree)


class _Assert(Transformer):
    def visit_Assert(self, node: gast.AST) -> Any:
        self.generic_visit(node)
        if not __debug__:
            return replace("pass", origin=node)
        if node.msg is None:
            return replace("_d2s.assert_stmt(test)", test=node.test, origin=node)
        if has_walrus(node.msg):
            return node
        return replace("_d2s.assert_stmt(test, message)", test=node.test, message=thunk(node.msg, node), origin=node)
