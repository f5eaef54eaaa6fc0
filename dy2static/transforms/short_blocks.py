"""A block that is one expression stands where it is used, as a lambda.

>>> from dy2static.transforms import if_stmt
>>> from dy2static.transforms.base import annotate, rewritten
>>> print(rewritten('''
... def f(x, log):
...     if x > 0:
...         log.append(x)
...     else:
...         pass
... ''', annotate, if_stmt.transform, transform))
def f(x, log):
    _d2s.if_stmt(x > 0, lambda: log.append(x))

What binds a name, needs a statement or holds another construct stays a function.
"""

from __future__ import annotations

from typing import Any

import gast

from dy2static.analysis import facts
from dy2static.analysis.facts import Fact
from dy2static.analysis.flow import YIELDS
from dy2static.nodes import BLOCKS
from dy2static.transforms.base import Context, constant, is_operator

_CONSTRUCTS = {"if_stmt", "if_expr", "while_stmt", "for_stmt"}


def transform(tree: Any, context: Context) -> Any:
    """Put every such block into the call behind it."""
    _shorten(tree)
    return tree


def _shorten(node: gast.AST) -> None:
    for name in BLOCKS:
        block = node.__dict__.get(name)
        if block:
            for inner in block:
                _shorten(inner)
            if isinstance(block[0], gast.stmt):
                setattr(node, name, _shortened(block))


def _shortened(block: list[gast.AST]) -> list[gast.AST]:
    """``block`` without the functions that could become lambdas in the call behind them."""
    result: list[gast.AST] = []
    waiting: dict[str, gast.AST] = {}
    for statement in block:
        if facts.get(statement, Fact.BLOCK):
            value = _value(statement)
            if value is not None:
                waiting[statement.name] = gast.copy_location(gast.Lambda(statement.args, value), statement)
                continue
        elif waiting and isinstance(getattr(statement, "value", None), gast.Call):
            call = statement.value  # or a note that a name is bound, which stands before that
            call.args = [waiting.pop(arg.id, arg) if isinstance(arg, gast.Name) else arg for arg in call.args]
        result.append(statement)
    assert not waiting
    return result


def _value(function: gast.AST) -> gast.AST | None:
    """The only expression of a block, if it can stand in a lambda."""
    statement = function.body[0] if len(function.body) == 1 else None
    if isinstance(statement, gast.Pass):
        return gast.copy_location(constant(None), statement)
    if not isinstance(statement, (gast.Expr, gast.Return)):
        return None
    value: gast.AST = statement.value
    if isinstance(value, gast.Call) and is_operator(value.func) and value.func.attr in _CONSTRUCTS:
        return None
    return None if any(map(_stays, gast.walk(value))) else value


def _stays(node: gast.AST) -> bool:
    """Whether an expression must not move into another function: Python sees where it stands."""
    if isinstance(node, gast.Lambda):
        return facts.get(node, Fact.LOCALS) is not None  # the user's, which has a name for who asks
    return isinstance(node, (gast.GeneratorExp, gast.NamedExpr, gast.Await, *YIELDS))
