"""``locals()`` finds the variables in the frame, where those of converted code are not all the user's; written out, a
function that is never called has them in its closure.

>>> from dy2static.transforms.base import rewritten
>>> print(rewritten('''
... def f(x):
...     y = x
...     return locals()
... ''', transform))
def f(x):
    y = x
    return _d2s.variables(lambda: (x, y), 'x y')
"""

from __future__ import annotations

from typing import Any

import gast

from dy2static.analysis import facts
from dy2static.analysis.facts import Fact
from dy2static.analysis.flow import asks_for_variables, variables_written_out
from dy2static.analysis.scope import function_nodes, scope_of
from dy2static.names import OPERATORS
from dy2static.template import replace_expr
from dy2static.transforms.base import Context, Transformer


def transform(tree: Any, context: Context) -> Any:
    """Write out ``locals()`` and ``vars()``."""
    return _Locals(context).visit(tree)


class _Locals(Transformer):
    def visit_Call(self, node: gast.AST) -> Any:
        self.generic_visit(node)
        if not self.functions or not asks_for_variables(node) or not variables_written_out(self.function):
            return node
        names = _names(self.function)
        reads = gast.Tuple([gast.Name(name, gast.Load(), None, None) for name in names], gast.Load())
        made = replace_expr("_d2s.variables(lambda: reads, names)", reads=reads,
                            names=gast.Constant(" ".join(names), None), origin=node)  # fmt: skip
        facts.put(made.args[0], Fact.PLAIN)
        return made


def _names(function: gast.AST) -> list[str]:
    """The function's variables in Python's order: parameters, the others by their first mention, then those of outer
    functions that it reads."""
    scope, args = scope_of(function), function.args
    nodes = function_nodes(function)
    mentioned = [node.id for node in nodes if isinstance(node, gast.Name) and node.id in scope.locals]
    given = [*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg]
    own = dict.fromkeys([*(node.id for node in given if node is not None), *mentioned, *sorted(scope.locals)])
    return [*own, *sorted(scope.free - {"locals", "vars", OPERATORS})]


__all__ = ["transform"]
