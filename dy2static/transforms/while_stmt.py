"""``while``: test and body as local functions; the operator loops in Python, or stages a loop.

>>> from dy2static.transforms.base import annotate, rewritten
>>> print(rewritten('''
... def f(x):
...     while x > 1:
...         half = x / 2
...         x = half
...     return x
... ''', annotate, transform))
def f(x):
    def _d2s_body_1():
        nonlocal x
        half = x / 2
        x = half
    _d2s.while_stmt(lambda: x > 1, _d2s_body_1, 'x')
    return x
"""

from __future__ import annotations

from typing import Any

import gast

from dy2static.analysis import facts
from dy2static.analysis.facts import Fact
from dy2static.template import replace
from dy2static.transforms.base import Context
from dy2static.transforms.blocks import ConstructTransformer, thunk


def transform(tree: Any, context: Context) -> Any:
    """Replace every convertible ``while``."""
    return _While(context).visit(tree)


class _While(ConstructTransformer):
    def visit_While(self, node: gast.AST) -> Any:
        self.generic_visit(node)
        if not facts.get(node, Fact.CONVERTIBLE):
            return node
        body = self.body_function("body", node.body, node)
        call = replace(
            "_d2s.while_stmt(test, body, names)",
            test=thunk(node.test, node.test), body=body.name, names=self.state(node), origin=node,
        )  # fmt: skip
        return [body, *call]
