"""What a ``def``, a ``lambda`` or a ``class`` makes is told to the tracer, before any decorator sees it.

>>> from dy2static.transforms.base import rewritten
>>> print(rewritten('''
... def f(x):
...     def g():
...         return x
...     class C:
...         pass
...     return g, C, lambda: x
... ''', transform))
def f(x):
    @_d2s.defined
    def g():
        return x
    @_d2s.defined
    class C:
        pass
    return g, C, _d2s.defined(lambda: x)
"""

from __future__ import annotations

from typing import Any

import gast

from dy2static.analysis import facts
from dy2static.analysis.facts import Fact
from dy2static.names import OPERATORS
from dy2static.template import replace_expr
from dy2static.transforms.base import Context, Transformer, operator


def transform(tree: Any, context: Context) -> Any:
    """Announce the functions and classes that the user's code makes; blocks of ours are no values of anybody's."""
    return _Definition(context).visit(tree)


class _Definition(Transformer):
    def visit_FunctionDef(self, node: gast.AST) -> Any:
        super().visit_FunctionDef(node)
        if node is not self.context.root and _is_users(node):
            _announce(node)
        return node

    def visit_ClassDef(self, node: gast.AST) -> Any:
        super().visit_ClassDef(node)
        _announce(node)
        return node

    def visit_Lambda(self, node: gast.AST) -> Any:
        super().visit_Lambda(node)
        return operator("defined", node, origin=node) if _is_users(node) else node


def _is_users(function: gast.AST) -> bool:
    return facts.get(function, Fact.LOCALS) is not None  # `prepare` noted it


def _announce(node: gast.AST) -> None:
    """Decorate innermost: the decorators around may give something else."""
    node.decorator_list.append(replace_expr(f"{OPERATORS}.defined", origin=node))
