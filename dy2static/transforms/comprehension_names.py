"""The variable of a comprehension gets another name where its function needs that name from an outer function.

Since Python 3.12 a comprehension is part of its function, and Python then takes the name for the function's own even
where only a function in it, or another comprehension, reads the outer variable (python/cpython issues 121377, 156664).
The functions that constructs become are such functions: there the user's code is right, and ours would raise NameError.

>>> from dy2static.transforms.base import rewritten
>>> print(rewritten('''
... def f(xs, e):
...     def body():
...         zeros = [0 for e in xs]
...         return lambda: [zeros, e]
...     return body()
... ''', transform))
def f(xs, e):
    def body():
        zeros = [0 for _d2s_e_1 in xs]
        return lambda: [zeros, e]
    return body()

A function that mentions the name itself is fine: Python knows then whose it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import gast

from dy2static.analysis.scope import COMPREHENSIONS, FUNCTIONS, bound_in, parameter_names, scope_of, uses
from dy2static.nodes import children, walk
from dy2static.transforms.base import Context

_INLINED = (gast.ListComp, gast.SetComp, gast.DictComp)


def transform(tree: Any, context: Context) -> Any:
    """Rename where Python would be mistaken, and nowhere else."""
    for node in list(walk(tree)):
        if isinstance(node, (*FUNCTIONS, gast.GeneratorExp)):
            _rename(node, context)
    return tree


def _rename(scope: gast.AST, context: Context) -> None:
    """Give the comprehensions that stand in one scope variables of their own."""
    inlined = list(_inlined(_inside(scope)))
    if not inlined:
        return
    if isinstance(scope, gast.GeneratorExp):
        needed = uses(scope)
        outer = needed.reads | needed.captured
    else:
        outer = set(scope_of(scope).free)
    outer -= _mentioned(scope)
    for comprehension in inlined:
        for name in sorted(outer & _targets(comprehension)):
            _Renamed(name, context.namer.fresh(name)).inside(comprehension)


def _inside(scope: gast.AST) -> list[gast.AST]:
    """What belongs to a function or comprehension itself: its first iterable is evaluated outside."""
    if isinstance(scope, FUNCTIONS):
        return list(scope.body) if isinstance(scope.body, list) else [scope.body]
    first = scope.generators[0].iter
    parts = [part for generator in scope.generators for part in children(generator)]
    values = [scope.key, scope.value] if isinstance(scope, gast.DictComp) else [scope.elt]
    return [part for part in [*values, *parts] if part is not first]


def _direct(nodes: Iterable[gast.AST]) -> Iterator[gast.AST]:
    """All nodes in a scope; of what is nested in it, the node and the parts that are evaluated outside of that."""
    for node in nodes:
        yield node
        if isinstance(node, FUNCTIONS):
            yield from _direct(children(node.args))
            yield from _direct(getattr(node, "decorator_list", ()))
        elif isinstance(node, COMPREHENSIONS):
            yield from _direct([node.generators[0].iter])
        elif isinstance(node, gast.ClassDef):
            yield from _direct([*node.decorator_list, *node.bases, *node.keywords])
        else:
            yield from _direct(children(node))


def _inlined(nodes: Iterable[gast.AST]) -> Iterator[gast.AST]:
    """The comprehensions that Python makes part of the scope of ``nodes``: those in comprehensions, too."""
    for node in _direct(nodes):
        if isinstance(node, _INLINED):
            yield node
            yield from _inlined(_inside(node))


def _mentioned(scope: gast.AST) -> set[str]:
    """Names of which Python is told in the scope itself."""
    names: set[str] = set()
    for node in _direct(_inside(scope)):
        if isinstance(node, gast.Name) and not isinstance(node.ctx, gast.Param):
            names.add(node.id)
        elif isinstance(node, (gast.Nonlocal, gast.Global)):
            names.update(node.names)
    return names


def _targets(comprehension: gast.AST) -> set[str]:
    return bound_in(generator.target for generator in comprehension.generators)


class _Renamed(gast.NodeTransformer):
    """Renames the variable of one comprehension, wherever that variable is meant."""

    def __init__(self, name: str, fresh: str) -> None:
        self.name = name
        self.fresh = fresh

    def inside(self, comprehension: gast.AST) -> None:
        """Everything but the first iterable, which is evaluated outside."""
        for node in _inside(comprehension):
            self.visit(node)

    def visit_Name(self, node: gast.AST) -> Any:
        if node.id == self.name:
            node.id = self.fresh
        return node

    def visit_Lambda(self, node: gast.AST) -> Any:
        for default in [*node.args.defaults, *node.args.kw_defaults]:
            if default is not None:
                self.visit(default)
        if self.name not in parameter_names(node):
            self.visit(node.body)
        return node

    def visit_ListComp(self, node: gast.AST) -> Any:
        self.visit(node.generators[0].iter)
        if self.name not in _targets(node):
            self.inside(node)
        return node

    visit_SetComp = visit_DictComp = visit_GeneratorExp = visit_ListComp
