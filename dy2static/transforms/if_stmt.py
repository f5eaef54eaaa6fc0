"""``if``: both branches as local functions; the operator runs one, or stages both.

>>> from dy2static.transforms.base import annotate, rewritten
>>> print(rewritten('''
... def f(x, y):
...     if x > 0:
...         y = x
...     return y
... ''', annotate, transform))
def f(x, y):
    def _d2s_if_body_1():
        nonlocal y
        y = x
    def _d2s_get_state_1():
        return y,
    def _d2s_set_state_1(_d2s_values_1):
        nonlocal y
        y, = _d2s_values_1
    _d2s.if_stmt(x > 0, _d2s_if_body_1, lambda: None, _d2s_get_state_1, _d2s_set_state_1, ('y',))
    return y
"""

from __future__ import annotations

from typing import Any

import gast

from dy2static.analysis import facts
from dy2static.analysis.facts import Fact
from dy2static.template import replace
from dy2static.transforms.base import Context, constant, name_node
from dy2static.transforms.state_functions import ConstructTransformer, thunk


def transform(tree: Any, context: Context) -> Any:
    """Replace every convertible ``if``."""
    return _If(context).visit(tree)


class _If(ConstructTransformer):
    def visit_If(self, node: gast.AST) -> Any:
        self.generic_visit(node)
        if not facts.get(node, Fact.CONVERTIBLE):
            return node
        body = self.body_function("if_body", node.body, node)
        definitions = [body]
        if _is_empty(node.orelse):
            orelse = thunk(constant(None), node)
        else:
            definitions.append(self.body_function("if_else", node.orelse, node))
            orelse = name_node(definitions[-1].name, node)
        state = self.state_functions(node)
        call = replace(
            "_d2s.if_stmt(test, body, orelse, get_state, set_state, names)",
            test=node.test, body=body.name, orelse=orelse, get_state=state.get_state, set_state=state.set_state,
            names=state.names, origin=node,
        )  # fmt: skip
        return [*definitions, *state.definitions, *call]


def _is_empty(block: list[gast.AST]) -> bool:
    return all(isinstance(statement, gast.Pass) for statement in block)
