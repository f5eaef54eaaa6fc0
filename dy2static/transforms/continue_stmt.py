"""``continue``: what follows it in the loop's body moves aside.

>>> from dy2static.transforms.base import rewritten
>>> print(rewritten('''
... def f(xs):
...     for x in xs:
...         if x < 0:
...             continue
...         print(x)
... ''', transform))
def f(xs):
    for x in xs:
        if not x < 0:
            print(x)

Where no branch always continues, a flag guards the rest:

>>> print(rewritten('''
... def f(xs):
...     for x in xs:
...         if x < 0:
...             if x < -9:
...                 continue
...             x = -x
...         print(x)
... ''', transform))
def f(xs):
    for x in xs:
        _d2s_continued_1 = False
        if x < 0:
            if x < -9:
                _d2s_continued_1 = True
            else:
                x = -x
        if not _d2s_continued_1:
            print(x)
"""

from __future__ import annotations

from typing import Any

import gast

from dy2static.analysis.flow import loop_level, without_loop_test
from dy2static.template import replace
from dy2static.transforms.base import Context, Transformer
from dy2static.transforms.leaving import Leaving, filled


def transform(tree: Any, context: Context) -> Any:
    """Lower every ``continue``."""
    return _Continue(context).visit(tree)


class _Continue(Transformer):
    expressions = False

    def visit_While(self, node: gast.AST) -> Any:
        self.generic_visit(node)
        if not any(isinstance(item, gast.Continue) for item in loop_level(node.body)):
            return node
        body = without_loop_test(node)
        last = node.body[len(body) :]
        leaving = Leaving(gast.Continue, self.context.namer.fresh("continued"), lambda statement: [])
        body = filled(leaving.lower(body), node)
        start = replace("flag = False", flag=leaving.flag, origin=node) if leaving.guarded else []
        node.body = [*start, *body, *last]
        return node

    visit_For = visit_While
