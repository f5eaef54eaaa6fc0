"""Stores to names declared ``nonlocal`` are noted first: a branch that is staged may call the function that stores.

>>> from dy2static.transforms.base import annotate, rewritten
>>> print(rewritten('''
... def f(n):
...     def g(x):
...         nonlocal n
...         n = x
...     return g
... ''', annotate, transform))
def f(n):
    def g(x):
        nonlocal n
        _d2s.note_nonlocal(lambda: n)
        n = x
    return g
"""

from __future__ import annotations

from typing import Any

import gast

from dy2static.analysis import facts
from dy2static.analysis.facts import Fact
from dy2static.analysis.scope import uses
from dy2static.template import replace
from dy2static.transforms.base import Context, Transformer

_SIMPLE = (
    gast.Assign, gast.AugAssign, gast.AnnAssign, gast.Expr, gast.Delete, gast.Return, gast.Import, gast.ImportFrom,
)  # fmt: skip


def transform(tree: Any, context: Context) -> Any:
    """Put a note before every simple statement that binds or deletes such a name."""
    return _Nonlocal(context).visit(tree)


class _Nonlocal(Transformer):
    expressions = False

    def block(self, body: list[gast.AST]) -> list[gast.AST]:
        result: list[gast.AST] = []
        names = facts.get(self.function, Fact.SCOPE).nonlocals if self.functions else frozenset()
        for statement in super().block(body):
            if isinstance(statement, _SIMPLE) and names:
                for name in sorted(uses(statement).writes & names):
                    form = "lambda: name, True" if isinstance(statement, gast.Delete) else "lambda: name"
                    result += replace(f"_d2s.note_nonlocal({form})", name=name, origin=statement)
            result.append(statement)
        return result
