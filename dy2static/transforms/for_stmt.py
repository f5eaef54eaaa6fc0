"""``for``: the body as a local function of the item; the operator loops in Python, or stages a loop.

>>> from dy2static.transforms.base import annotate, rewritten
>>> print(rewritten('''
... def f(xs, s):
...     for a, b in xs:
...         s = s + a * b
...     return s
... ''', annotate, transform))
def f(xs, s):
    def _d2s_body_1(_d2s_item_1):
        nonlocal s
        a, b = _d2s_item_1
        s = s + a * b
    _d2s.for_stmt(xs, _d2s_body_1, 's')
    return s

A loop that can be left (see `break_stmt`) also passes a test, evaluated before each further item.
"""

from __future__ import annotations

from typing import Any

import gast

from dy2static.analysis import facts
from dy2static.analysis.facts import Fact
from dy2static.analysis.flow import without_loop_test
from dy2static.template import replace, replace_expr
from dy2static.transforms.base import Context, consumed
from dy2static.transforms.blocks import ConstructTransformer


def transform(tree: Any, context: Context) -> Any:
    """Replace every convertible ``for``."""
    return _For(context).visit(tree)


class _For(ConstructTransformer):
    def visit_For(self, node: gast.AST) -> Any:
        self.generic_visit(node)
        if not facts.get(node, Fact.CONVERTIBLE):
            return node
        block = without_loop_test(node)
        test: list[gast.AST] = []
        if len(block) < len(node.body):
            test = [replace_expr("lambda: not flag", flag=node.body[-1].test.id, origin=node.body[-1])]
        iterable = consumed(node.iter) if len(block) < len(node.body) else node.iter
        if isinstance(node.target, gast.Name) and self._is_own(node.target.id, node):
            item = node.target.id
        else:
            item = self.context.namer.fresh("item")
            block = [*replace("target = item", target=node.target, item=item, origin=node.target), *block]
        body = self.body_function("body", block, node, item)
        call = replace(
            "_d2s.for_stmt(iterable, body, names, test)",
            iterable=iterable, body=body.name, names=self.state(node), test=test, origin=node,
        )  # fmt: skip
        return [body, *call]

    def _is_own(self, name: str, node: gast.AST) -> bool:
        """Whether the loop's variable is of no concern outside the body: it can be the parameter."""
        scope = facts.get(self.function, Fact.SCOPE)
        return name not in facts.get(node, Fact.STATE) and name not in scope.globals
