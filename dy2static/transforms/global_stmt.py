"""Stores to names declared ``global``, and deletions, go through an operator, which notes what they held.

>>> from dy2static.transforms.base import annotate, rewritten
>>> print(rewritten('''
... def f(x):
...     global n
...     n = x
... ''', annotate, transform))
def f(x):
    global n
    _d2s.set_global('n', x)
"""

from __future__ import annotations

from typing import Any

import gast

from dy2static.analysis import facts
from dy2static.analysis.facts import Fact
from dy2static.template import replace
from dy2static.transforms.base import Context, Transformer, constant


def transform(tree: Any, context: Context) -> Any:
    """Replace every assignment to a global, and every deletion; runs after `targets`."""
    return _Global(context).visit(tree)


class _Global(Transformer):
    expressions = False

    def visit_Assign(self, node: gast.AST) -> Any:
        self.generic_visit(node)
        target = node.targets[0]
        if len(node.targets) > 1 or not isinstance(target, gast.Name):
            return node
        scope = facts.get(self.function, Fact.SCOPE)
        if scope is None or target.id not in scope.globals:
            return node
        return replace("_d2s.set_global(name, value)", name=constant(target.id), value=node.value, origin=node)

    def visit_Delete(self, node: gast.AST) -> Any:
        self.generic_visit(node)
        (target,) = node.targets
        scope = facts.get(self.function, Fact.SCOPE)
        if not isinstance(target, gast.Name) or scope is None or target.id not in scope.globals:
            return node
        return replace("_d2s.del_global(name)", name=constant(target.id), origin=node)
