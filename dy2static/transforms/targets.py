"""Assignments to attributes, subscripts and globals, taken apart: one such target a statement, in Python's order.

>>> from dy2static.transforms.base import annotate, rewritten
>>> print(rewritten('''
... def f(a, g):
...     g().x = g()
...     a, a.y = a.z = g()
... ''', annotate, transform))
def f(a, g):
    _d2s_value_1 = g()
    g().x = _d2s_value_1
    _d2s_value_2 = g()
    _d2s_value_3, _d2s_value_4 = _d2s_value_2
    a = _d2s_value_3
    a.y = _d2s_value_4
    a.z = _d2s_value_2
"""

from __future__ import annotations

from typing import Any

import gast

from dy2static.analysis import facts
from dy2static.analysis.facts import Fact
from dy2static.analysis.scope import has_walrus
from dy2static.template import replace, replace_expr
from dy2static.transforms.base import Context, Transformer, name_node


def transform(tree: Any, context: Context) -> Any:
    """Take every such assignment and deletion apart."""
    return _Targets(context).visit(tree)


class TargetTransformer(Transformer):
    """Knows which parts of a target can be evaluated a bit later than Python does, or twice."""

    def is_stable(self, part: gast.AST, value: gast.AST) -> bool:
        """Whether evaluating ``part`` gives the same before and after ``value`` is evaluated."""
        if isinstance(part, gast.Constant):
            return True
        if isinstance(part, gast.Slice):
            bounds = (part.lower, part.upper, part.step)
            return all(bound is None or self.is_stable(bound, value) for bound in bounds)
        if isinstance(part, gast.Tuple):
            return all(self.is_stable(element, value) for element in part.elts)
        if isinstance(part, gast.UnaryOp):
            return isinstance(part.operand, gast.Constant)
        if not isinstance(part, gast.Name) or has_walrus(value):
            return False
        if isinstance(value, (gast.Name, gast.Constant)):
            return True
        for function in reversed(self.functions):
            scope = facts.get(function, Fact.SCOPE)
            if scope is not None and part.id in scope.locals:
                return part.id not in scope.rebound
        return False

    def as_value(self, part: Any) -> Any:
        """A subscript's key as an expression that can stand alone."""
        if isinstance(part, gast.Slice):
            bounds = [bound if bound is not None else gast.Constant(None, None) for bound in _bounds(part)]
            return replace_expr("_d2s.slice(bounds)", bounds=bounds, origin=part)
        if isinstance(part, gast.Tuple):
            self.changing(part).elts = [self.as_value(element) for element in part.elts]
        return part


def _bounds(part: Any) -> tuple[Any, Any, Any]:
    return part.lower, part.upper, part.step


class _Targets(TargetTransformer):
    def visit_Assign(self, node: gast.AST) -> Any:
        self.generic_visit(node)
        if not any(self._is_special(target) for target in node.targets):
            return node
        if len(node.targets) == 1 and self._is_direct(node.targets[0], node.value):
            return node
        value = self.context.namer.fresh("value")
        result = replace("name = value", name=value, value=node.value, origin=node)
        for target in node.targets:
            result += self._assign(target, value)
        return result

    def visit_AnnAssign(self, node: gast.AST) -> Any:
        if not self._is_special(node.target):
            return super().visit_AnnAssign(node)
        if node.value is None:  # Python evaluates the object, and nothing else
            owner = node.target.value if isinstance(node.target, gast.Attribute) else None
            return super().visit_AnnAssign(node) if owner is None else gast.copy_location(gast.Expr(owner), node)
        return self.visit_Assign(gast.copy_location(gast.Assign([node.target], node.value, None), node))

    def visit_Delete(self, node: gast.AST) -> Any:
        self.generic_visit(node)
        if not any(isinstance(part, (gast.Attribute, gast.Subscript)) for part in _flat(node.targets)):
            return node
        return [gast.copy_location(gast.Delete([target]), node) for target in _flat(node.targets)]

    def visit_With(self, node: gast.AST) -> Any:
        self.generic_visit(node)
        start: list[gast.AST] = []
        for item in node.items if len(node.items) == 1 else []:
            if item.optional_vars is not None and self._is_special(item.optional_vars):
                value = self.context.namer.fresh("value")
                start = self._assign(item.optional_vars, value)
                self.changing(item).optional_vars = gast.copy_location(gast.Name(value, gast.Store(), None, None), node)
        node.body = [*start, *node.body]
        return node

    def _is_special(self, target: gast.AST) -> bool:
        if isinstance(target, gast.Name):
            scope = facts.get(self.function, Fact.SCOPE)
            return scope is not None and target.id in scope.globals
        if isinstance(target, (gast.Tuple, gast.List)):
            return any(self._is_special(element) for element in target.elts)
        if isinstance(target, gast.Starred):
            return self._is_special(target.value)
        return True

    def _is_direct(self, target: Any, value: gast.AST) -> bool:
        """Whether the operator may evaluate object and key before the value."""
        if isinstance(target, gast.Name):
            return True
        if isinstance(target, gast.Attribute):
            return self.is_stable(target.value, value)
        if isinstance(target, gast.Subscript):
            return self.is_stable(target.value, value) and self.is_stable(target.slice, value)
        return False

    def _assign(self, target: Any, value: str) -> list[gast.AST]:
        if not isinstance(target, (gast.Tuple, gast.List)) or not self._is_special(target):
            return replace("target = value", target=target, value=value, origin=target)
        names: list[gast.AST] = []
        after: list[gast.AST] = []
        for element in target.elts:
            part = self.context.namer.fresh("value")
            name = name_node(part, element)
            starred = isinstance(element, gast.Starred)
            names.append(gast.copy_location(gast.Starred(name, gast.Store()), element) if starred else name)
            after += self._assign(element.value if starred else element, part)
        targets = gast.copy_location(type(target)(names, gast.Store()), target)
        return [*replace("targets = value", targets=targets, value=value, origin=target), *after]


def _flat(targets: list[Any]) -> list[Any]:
    return [
        part
        for target in targets
        for part in (_flat(target.elts) if isinstance(target, (gast.Tuple, gast.List)) else [target])
    ]
