"""``return`` inside control flow: the value is noted, and what follows is skipped; one ``return`` ends the function.

>>> from dy2static.transforms.base import rewritten
>>> print(rewritten('''
... def f(x):
...     if x > 0:
...         return x
...     y = -x
...     return y
... ''', transform))
def f(x):
    if x > 0:
        _d2s_value_1 = x
    else:
        y = -x
        _d2s_value_1 = y
    return _d2s_value_1

In a loop a flag is set and the loop left:

>>> print(rewritten('''
... def f(xs):
...     for x in xs:
...         if x > 0:
...             return x
... ''', transform))
def f(xs):
    _d2s_returned_1 = False
    for x in xs:
        if x > 0:
            _d2s_value_1 = x
            _d2s_returned_1 = True
            break
    if not _d2s_returned_1:
        _d2s_value_1 = None
    return _d2s_value_1

A function that gives nothing needs no value, and one whose only ``return`` statements stand outside ``if`` and loops
stays as it is.
"""

from __future__ import annotations

from typing import Any

import gast

from dy2static.analysis import facts, liveness
from dy2static.analysis.facts import Fact
from dy2static.analysis.flow import CONSTRUCTS, LOOPS, leaves
from dy2static.analysis.scope import function_nodes, own_nodes
from dy2static.template import replace
from dy2static.transforms.base import Context, constant, functions_in, insert_at_top
from dy2static.transforms.leaving import Leaving, filled, without


def transform(tree: Any, context: Context) -> Any:
    """Lower the ``return`` statements of every function."""
    for function in functions_in(tree):
        if isinstance(function, gast.FunctionDef) and _needed(function):
            _lower(function, context)
    return tree


def _needed(function: gast.AST) -> bool:
    return any(isinstance(node, CONSTRUCTS) and _returns(node) for node in function_nodes(function))


def _returns(node: gast.AST) -> bool:
    return any(isinstance(part, gast.Return) for part in own_nodes(node))


def _lower(function: gast.AST, context: Context) -> None:
    value, flag = context.namer.fresh("value"), context.namer.fresh("returned")
    body = function.body
    gives = any(_gives(node) for node in function_nodes(function))
    if gives and not leaves(body):
        body = body + replace("return None", origin=body[-1])

    def keep(node: gast.AST) -> list[gast.AST]:
        if not gives:
            return []
        result = node.value if node.value is not None else constant(None)
        return replace("value = result", value=value, result=result, origin=node)

    def leave_loop(loop: gast.AST) -> None:
        _InLoop(keep, flag).body(loop)

    leaving = Leaving(gast.Return, flag, keep, leave_loop)
    function.body = filled(leaving.lower(body), function)
    if gives:
        function.body += replace("return value", value=value, origin=body[-1])
    if leaving.guarded:
        insert_at_top(function, replace("flag = False", flag=flag, origin=body[0]))
        liveness.analyse(function)
        function.body = without(function.body, {id(node) for node in function_nodes(function) if _is_dead(node, flag)})


def _gives(node: gast.AST) -> bool:
    """Whether ``node`` returns anything but None."""
    return isinstance(node, gast.Return) and node.value is not None and (
        not isinstance(node.value, gast.Constant) or node.value.value is not None
    )  # fmt: skip


def _is_dead(node: gast.AST, flag: str) -> bool:
    """Whether ``node`` sets the flag where nothing reads it any more."""
    sets = isinstance(node, gast.Assign) and isinstance(node.targets[0], gast.Name) and node.targets[0].id == flag
    return sets and flag not in facts.get(node, Fact.LIVE_OUT)


class _InLoop(gast.NodeTransformer):
    """Inside a loop, ``return`` sets the flag and breaks; so does every loop around it."""

    def __init__(self, keep: Any, flag: str) -> None:
        self.keep = keep
        self.flag = flag

    def body(self, node: gast.AST) -> None:
        new = [self.visit(statement) for statement in node.body]
        node.body = [part for item in new for part in (item if isinstance(item, list) else [item])]

    def visit(self, node: gast.AST) -> Any:
        if isinstance(node, gast.Return):
            return [*self.keep(node), *replace("flag = True", flag=self.flag, origin=node), self._break(node)]
        if isinstance(node, (gast.expr, gast.FunctionDef, gast.AsyncFunctionDef, gast.ClassDef)):
            return node
        if isinstance(node, LOOPS) and _returns(node):
            self.generic_visit(node)
            return [
                node, *replace("if flag:\n    body", flag=self.flag, body=[self._break(node)], origin=node)
            ]  # fmt: skip
        return self.generic_visit(node)

    def _break(self, origin: gast.AST) -> gast.AST:
        (result,) = replace("break", origin=origin)
        facts.put(result, Fact.BREAK_FLAG, self.flag)
        return result
