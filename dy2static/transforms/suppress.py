"""``with contextlib.suppress(...)`` becomes a ``try``, whose handlers also get what only some runs raise.

>>> from dy2static.transforms.base import rewritten
>>> print(rewritten('''
... def f(d, k):
...     with contextlib.suppress(KeyError, ValueError):
...         return g(d[k])
... ''', transform))
def f(d, k):
    with _d2s.unsuppressed(contextlib.suppress, KeyError, ValueError):
        try:
            return g(d[k])
        except _d2s.suppressed(contextlib.suppress, KeyError, ValueError):
            pass

What stands behind ``as`` is bound by the outer ``with``. Whether it is the one of ``contextlib`` is asked when the code
runs: another class of that name is entered as it is.
"""

from __future__ import annotations

import copy
from typing import Any

import gast

from dy2static.template import replace
from dy2static.transforms.base import Context, Transformer

_NAME = "suppress"


def transform(tree: Any, context: Context) -> Any:
    """Lower every ``with`` that suppresses."""
    return _Suppress(context).visit(tree)


def _suppresses(item: gast.AST) -> bool:
    """Whether a manager looks like ``suppress(A, b.C)``."""
    call = item.context_expr
    if not isinstance(call, gast.Call) or call.keywords or not call.args:
        return False
    name = getattr(call.func, "attr", getattr(call.func, "id", None))
    return name == _NAME and all(map(_is_name, [call.func, *call.args]))


def _is_name(node: gast.AST) -> bool:
    """A name, or an attribute of one: it may be evaluated twice."""
    while isinstance(node, gast.Attribute):
        node = node.value
    return isinstance(node, gast.Name)


class _Suppress(Transformer):
    expressions = False

    def visit_With(self, node: gast.AST) -> Any:
        self.generic_visit(node)
        found = next((at for at, item in enumerate(node.items) if _suppresses(item)), None)
        if found is None:
            return node
        call, target = node.items[found].context_expr, node.items[found].optional_vars
        before, after = node.items[:found], node.items[found + 1 :]
        body = node.body
        if after:
            (inner,) = self.block([gast.copy_location(gast.With(after, body, None), node)])
            body = [inner]
        new = replace(
            "with _d2s.unsuppressed(function, args):\n    try:\n        body\n"
            "    except _d2s.suppressed(again, types):\n        pass",
            function=call.func, args=call.args, body=body, again=copy.deepcopy(call.func),
            types=copy.deepcopy(call.args), origin=node,
        )  # fmt: skip
        new[0].items[0].optional_vars = target
        return [gast.copy_location(gast.With(before, new, None), node)] if before else new
