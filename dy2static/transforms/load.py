"""Reads of names that may not be bound go through `load`, which raises UnboundLocalError with the user's name.

>>> from dy2static.transforms.base import annotate, rewritten
>>> print(rewritten('''
... def f(c):
...     if c:
...         y = 1
...     y += 1
...     return lambda: y
... ''', annotate, transform))
def f(c):
    if c:
        y = 1
    y = _d2s.load(lambda: y, 'y')
    y += 1
    return lambda: _d2s.load_free(y, 'y')

`load_free` is for a name that belongs to an outer function: Python then raises NameError.
"""

from __future__ import annotations

import sys
from typing import Any

import gast

from dy2static.analysis import facts
from dy2static.analysis.facts import Fact
from dy2static.template import replace
from dy2static.transforms.base import Context, Transformer, constant, converts, is_operator, operator
from dy2static.transforms.blocks import thunk

_COMPREHENSIONS_ARE_FUNCTIONS = sys.version_info < (3, 12)


def transform(tree: Any, context: Context) -> Any:
    """Wrap the reads that the analysis found uncertain."""
    return _Load(context).visit(tree)


class _Load(Transformer):
    """Enters all code: also a generator may read a name that is bound on some path only."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.comprehensions = 0
        self.classes = 0

    def visit_FunctionDef(self, node: gast.AST) -> Any:
        if node is not self.context.root:
            node.decorator_list = self.each(node.decorator_list)
            self._defaults(node)
        self._inside(node)
        return node

    def visit_Lambda(self, node: gast.AST) -> Any:
        self._defaults(node)
        self._inside(node)
        return node

    def visit_ClassDef(self, node: gast.AST) -> Any:
        node.decorator_list = self.each(node.decorator_list)
        node.bases = self.each(node.bases)
        node.keywords = self.each(node.keywords)
        self.comprehensions += 1  # to what stands in a class body, the function's names are an outer function's
        node.body = self.block(node.body)
        self.comprehensions -= 1
        return node

    def _inside(self, node: gast.AST) -> None:
        outside = self.comprehensions
        self.comprehensions = 0
        self.functions.append(node)
        node.body = self.block(node.body) if isinstance(node.body, list) else self.visit(node.body)
        self.functions.pop()
        self.comprehensions = outside

    def _comprehension(self, node: gast.AST) -> Any:
        node.generators[0].iter = self.visit(node.generators[0].iter)
        first, node.generators[0].iter = node.generators[0].iter, None
        lazy = isinstance(node, gast.GeneratorExp) or _COMPREHENSIONS_ARE_FUNCTIONS
        self.comprehensions += lazy
        self.generic_visit(node)
        self.comprehensions -= lazy
        node.generators[0].iter = first
        return node

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension

    def visit_Name(self, node: gast.AST) -> Any:
        if not isinstance(node.ctx, gast.Load):
            return node
        if facts.get(node, Fact.UNBOUND) and converts(self.function):
            return _load(node, node, free=bool(self.comprehensions))
        if self._may_be_unbound(node.id):
            return _load(node, node, free=self._is_free(node.id))
        return node

    def _may_be_unbound(self, name: str) -> bool:
        """Whether ``name`` belongs to an outer function, where it may be unbound now, or bound on some path only."""
        for depth, function in enumerate(reversed(self.functions)):
            scope = facts.get(function, Fact.SCOPE)
            if name in scope.globals or (name in scope.locals and depth == 0):
                return False
            if name in scope.locals:
                return name in facts.get(function, Fact.UNSURE, ())
        return False

    def _is_free(self, name: str) -> bool:
        """Whether Python sees the name as an outer function's: since 3.12 a comprehension is part of its function."""
        if self.comprehensions:
            return True
        for function in reversed(self.functions):
            if name in facts.get(function, Fact.SCOPE).locals:
                return False
            if _COMPREHENSIONS_ARE_FUNCTIONS or facts.get(function, Fact.IMMEDIATE) != "inlined":
                return True
        return True

    def visit_ExceptHandler(self, node: gast.AST) -> Any:
        return self.generic_visit(node)

    def visit_Call(self, node: gast.AST) -> Any:
        if is_operator(node.func) and node.func.attr == "load":
            return node  # the file is a conversion itself
        return self.generic_visit(node)

    def visit_AugAssign(self, node: gast.AST) -> Any:
        self.generic_visit(node)
        if isinstance(node.target, gast.Name):
            if facts.get(node.target, Fact.UNBOUND) and converts(self.function):
                return [*_checked(node.target, node), node]
            if self._may_be_unbound(node.target.id):
                return [*_checked(node.target, node, free=True), node]
        return node

    def visit_Delete(self, node: gast.AST) -> Any:
        self.generic_visit(node)
        checks: list[gast.AST] = []
        for part in gast.walk(node):
            if isinstance(part, gast.Name) and isinstance(part.ctx, gast.Del):
                if facts.get(part, Fact.UNBOUND) and converts(self.function):
                    checks += _checked(part, node)
                elif self._may_be_unbound(part.id):
                    checks += _checked(part, node, free=True)
        return [*checks, node]


def _load(name: gast.AST, origin: gast.AST, free: bool = False) -> Any:
    read = gast.Name(name.id, gast.Load(), None, None)
    if free:
        return operator("load_free", read, constant(name.id), origin=origin)
    return operator("load", thunk(read, origin), constant(name.id), origin=origin)


def _checked(name: gast.AST, origin: gast.AST, free: bool = False) -> list[gast.AST]:
    return replace("name = value", name=name.id, value=_load(name, origin, free), origin=origin)
