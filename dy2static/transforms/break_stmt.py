"""``break``: a flag, tested before each further iteration.

>>> from dy2static.transforms.base import rewritten
>>> print(rewritten('''
... def f(x):
...     while x > 1:
...         if x == 7:
...             break
...         x = x - 1
...     return x
... ''', transform))
def f(x):
    _d2s_broken_1 = False
    while not _d2s_broken_1 and x > 1:
        if x == 7:
            _d2s_broken_1 = True
        else:
            x = x - 1
    return x

A ``for`` cannot carry a test, so its last statement does; it is marked for the transform of ``for``:

>>> print(rewritten('''
... def f(xs):
...     for x in xs:
...         if x == 7:
...             break
... ''', transform))
def f(xs):
    _d2s_broken_1 = False
    for x in xs:
        if x == 7:
            _d2s_broken_1 = True
        if _d2s_broken_1:
            break
"""

from __future__ import annotations

from typing import Any

import gast

from dy2static.analysis import facts
from dy2static.analysis.facts import Fact
from dy2static.template import replace, replace_expr
from dy2static.transforms.base import Context, Transformer
from dy2static.transforms.leaving import Leaving, breaks_in, filled


def transform(tree: Any, context: Context) -> Any:
    """Lower every ``break``."""
    return _Break(context).visit(tree)


class _Break(Transformer):
    expressions = False

    def visit_While(self, node: gast.AST) -> Any:
        self.generic_visit(node)
        breaks = breaks_in(node)
        if not breaks:
            return node
        flags = {facts.get(item, Fact.BREAK_FLAG) for item in breaks}
        known = len(flags) == 1 and None not in flags
        flag = flags.pop() if known else self.context.namer.fresh("broken")
        before: list[gast.AST] = [] if known else replace("flag = False", flag=flag, origin=node)

        leaving = Leaving(gast.Break, flag, lambda statement: [], sets="never" if known else "always")
        body = filled(leaving.lower(node.body), node)
        if isinstance(node, gast.For):
            (leave,) = replace("if flag:\n    break", flag=flag, origin=node)
            facts.put(leave, Fact.LOOP_TEST)
            body = [*body, leave]
        elif isinstance(node.test, gast.Constant) and node.test.value:
            node.test = replace_expr("not flag", flag=flag, origin=node.test)
        else:
            node.test = replace_expr("not flag and test", flag=flag, test=node.test, origin=node.test)
        node.body = body
        return [*before, node]

    visit_For = visit_While
