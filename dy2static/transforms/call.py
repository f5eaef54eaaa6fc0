"""Calls go through an operator, which converts what is called.

>>> from dy2static.transforms.base import rewritten
>>> print(rewritten('''
... def f(g, *a, **k):
...     return g(1, *a, x=2, **k)(), globals()
... ''', transform))
def f(g, *a, **k):
    return _d2s.call(_d2s.call(g, 1, *a, x=2, **k)), globals()

Builtins that look at the frame they are called from stay direct calls (``vars()`` does, ``vars(x)`` does not).
"""

from __future__ import annotations

from typing import Any

import gast

from dy2static.analysis import facts
from dy2static.analysis.facts import Fact
from dy2static.names import OPERATORS
from dy2static.template import replace_expr
from dy2static.transforms.base import Context, Transformer, consumed, is_operator

_DIRECT = {"dir", "eval", "exec", "globals", "locals", "vars"}

_CONSUMERS = {"all", "any", "enumerate", "filter", "map", "next"}
"""Builtins that may leave an iterator they are given, or hand it on."""
_ITERTOOLS = {
    "accumulate", "chain", "dropwhile", "filterfalse", "from_iterable", "islice", "pairwise", "starmap", "takewhile",
}  # fmt: skip
"""Those of ``itertools``, which may be called by a name or as an attribute. Of others that are called so, none asks."""
_METHODS = {"isdisjoint", "issuperset"}
"""Methods of sets that may leave an iterator."""


def transform(tree: Any, context: Context) -> Any:
    """Replace every call, except those of operators."""
    return _Call(context).visit(tree)


class _Call(Transformer):
    class_bodies = True

    def visit_Call(self, node: gast.AST) -> Any:
        self.generic_visit(node)
        if is_operator(node.func) or self._is_direct(node) or (
                isinstance(node.func, gast.Lambda) and not _has_star(node)):
            return node
        name = getattr(node.func, "id", None)
        taken = name in _CONSUMERS or name in _ITERTOOLS or _attribute(node.func) in _ITERTOOLS | _METHODS
        args = [node.func, *(map(consumed, node.args) if taken else node.args)]
        return replace_expr(f"{OPERATORS}.call(args, **keywords)", args=args, keywords=node.keywords, origin=node)

    def _is_direct(self, node: gast.AST) -> bool:
        if not isinstance(node.func, gast.Name):
            return False
        name = node.func.id
        if name == "super" and not node.args:
            return True
        if name in ("dir", "vars") and node.args:
            return False
        return name in _DIRECT and not any(name in facts.get(f, Fact.LOCALS, ()) for f in self.functions)


def _attribute(node: Any) -> Any:
    """The name of an attribute that is read, which may be the operator's by now."""
    if isinstance(node, gast.Call) and is_operator(node.func) and node.func.attr == "attr":
        return node.args[1].value
    return getattr(node, "attr", None)


def _has_star(node: Any) -> bool:
    """Whether a call is given the items of something."""
    starred = any(isinstance(arg, gast.Starred) for arg in node.args)
    return starred or any(keyword.arg is None for keyword in node.keywords)
