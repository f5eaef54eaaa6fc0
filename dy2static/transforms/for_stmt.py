"""``for``: the body as a local function of the item; the operator loops in Python, or stages a loop.

>>> from dy2static.transforms.base import annotate, rewritten
>>> print(rewritten('''
... def f(xs, s):
...     for a, b in xs:
...         s = s + a * b
...     return s
... ''', annotate, transform))
def f(xs, s):
    def _d2s_for_body_1(_d2s_item_1):
        nonlocal s
        a, b = _d2s_item_1
        s = s + a * b
    def _d2s_get_state_1():
        return s,
    def _d2s_set_state_1(_d2s_values_1):
        nonlocal s
        s, = _d2s_values_1
    _d2s.for_stmt(xs, None, _d2s_for_body_1, _d2s_get_state_1, _d2s_set_state_1, ('s',))
    return s

A loop that can be left (see `break_stmt`) passes a test, evaluated before each further item, for None.
"""

from __future__ import annotations

from typing import Any

import gast

from dy2static.analysis import facts
from dy2static.analysis.facts import Fact
from dy2static.analysis.flow import without_loop_test
from dy2static.template import replace, replace_expr
from dy2static.transforms.base import Context, constant, consumed
from dy2static.transforms.state_functions import ConstructTransformer


def transform(tree: Any, context: Context) -> Any:
    """Replace every convertible ``for``."""
    return _For(context).visit(tree)


class _For(ConstructTransformer):
    def visit_For(self, node: gast.AST) -> Any:
        self.generic_visit(node)
        if not facts.get(node, Fact.CONVERTIBLE):
            return node
        block = without_loop_test(node)
        test = constant(None)
        if len(block) < len(node.body):
            test = replace_expr("lambda: not flag", flag=node.body[-1].test.id, origin=node.body[-1])
        iterable = consumed(node.iter) if len(block) < len(node.body) else node.iter
        item = self.context.namer.fresh("item")
        target = replace("target = item", target=node.target, item=item, origin=node.target)
        body = self.body_function("for_body", [*target, *block], node, [item])
        state = self.state_functions(node)
        call = replace(
            "_d2s.for_stmt(iterable, test, body, get_state, set_state, names)",
            iterable=iterable, test=test, body=body.name, get_state=state.get_state, set_state=state.set_state,
            names=state.names, origin=node,
        )  # fmt: skip
        return [body, *state.definitions, *call]
