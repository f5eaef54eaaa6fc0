"""A ``finally`` that leaves by ``return``, ``break`` or ``continue`` becomes a handler and an ``else``.

>>> from dy2static.transforms.base import rewritten
>>> print(rewritten('''
... def f(xs):
...     for x in xs:
...         try:
...             g(x)
...         finally:
...             if x:
...                 break
... ''', transform))
def f(xs):
    for x in xs:
        try:
            g(x)
        except BaseException:
            if x:
                break
            raise
        else:
            if x:
                break

Leaving swallows the exception, as in Python. The body of the ``try`` does not leave itself: such a function is left
alone (see `analysis.flow.left_alone`).
"""

from __future__ import annotations

import copy
from typing import Any

import gast

from dy2static.analysis.flow import leaves_finally
from dy2static.template import replace
from dy2static.transforms.base import Context, Transformer


def transform(tree: Any, context: Context) -> Any:
    """Lower every ``finally`` that leaves."""
    return _Finally(context).visit(tree)


class _Finally(Transformer):
    expressions = False

    def visit_Try(self, node: gast.AST) -> Any:
        self.generic_visit(node)
        if not leaves_finally(node):
            return node
        final, node.finalbody = node.finalbody, []
        return replace(
            "try:\n    body\nexcept BaseException:\n    final\n    raise\nelse:\n    again",
            body=[node] if node.handlers else node.body, final=final, again=copy.deepcopy(final), origin=node,
        )

    visit_TryStar = visit_Try
