"""What Python's own syntax reads in the body of a class is asked whether Python may read it.

>>> from dy2static.transforms.base import rewritten
>>> print(rewritten('''
... def f(xs, d):
...     class C:
...         n = 1 if xs else 0
...         same = d == xs
...         for x in xs:
...             pass
...     return C
... ''', transform))
def f(xs, d):
    class C:
        n = 1 if _d2s.pythons(xs) else 0
        same = _d2s.compare(d, '==', xs)
        for x in _d2s.pythons(xs):
            pass
    return C

Branches and loops of a class body stay Python's: functions that stand for blocks would not see the class's names.
"""

from __future__ import annotations

from typing import Any

import gast

from dy2static.template import replace_expr
from dy2static.transforms.base import Context, Transformer, constant, operator
from dy2static.transforms.walrus import lazily_bound

_COMPARED = {gast.In: "in", gast.NotIn: "not in", gast.Is: "is", gast.IsNot: "is not", gast.Eq: "==", gast.NotEq: "!="}
_ATOMS = (gast.Constant, gast.Lambda, gast.JoinedStr)


def transform(tree: Any, context: Context) -> Any:
    """Ask in class bodies; elsewhere such syntax has its operators."""
    return _ClassBody(context).visit(tree)


class _ClassBody(Transformer):
    class_bodies = True

    def visit_If(self, node: gast.AST) -> Any:
        return self._asked(node, "test")

    visit_While = visit_IfExp = visit_Assert = visit_If

    def visit_For(self, node: gast.AST) -> Any:
        return self._asked(node, "iter")

    def visit_Match(self, node: gast.AST) -> Any:
        super().visit_Match(node)
        return self._wrapped(node, "subject")

    def visit_UnaryOp(self, node: gast.AST) -> Any:
        return self._asked(node, "operand") if isinstance(node.op, gast.Not) else self.generic_visit(node)

    def visit_BoolOp(self, node: gast.AST) -> Any:
        self.generic_visit(node)
        if self.in_class:
            node.values[:-1] = map(_python, node.values[:-1])
        return node

    def visit_Compare(self, node: gast.AST) -> Any:
        self.generic_visit(node)
        if not self.in_class or lazily_bound(node):
            return node
        if len(node.ops) > 1:
            node.left, node.comparators = _python(node.left), list(map(_python, node.comparators))
            return node
        text = _COMPARED.get(type(node.ops[0]))
        if text is None:
            return node
        return operator("compare", node.left, constant(text), node.comparators[0], origin=node)

    def visit_Assign(self, node: gast.AST) -> Any:
        self.generic_visit(node)
        unpacks = any(isinstance(target, (gast.Tuple, gast.List)) for target in node.targets)
        return self._wrapped(node, "value") if unpacks else node

    def visit_Subscript(self, node: gast.AST) -> Any:
        self.generic_visit(node)
        return node if isinstance(node.ctx, gast.Load) else self._wrapped(node, "value")

    def _comprehension(self, node: gast.AST) -> Any:
        super()._comprehension(node)
        for generator in node.generators if self.in_class else ():
            if not _copies(node):
                generator.iter = _python(generator.iter)
            generator.ifs = list(map(_python, generator.ifs))
        return node

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension

    def _asked(self, node: gast.AST, field: str) -> Any:
        self.generic_visit(node)
        return self._wrapped(node, field)

    def _wrapped(self, node: gast.AST, field: str) -> Any:
        if self.in_class:
            setattr(node, field, _python(getattr(node, field)))
        return node


def _python(value: Any) -> Any:
    if isinstance(value, (*_ATOMS, gast.Tuple, gast.List)):
        return value
    return replace_expr("_d2s.pythons(value)", value=value, origin=value)


def _copies(node: Any) -> bool:
    """Whether this is ``[x for x in xs]``, which what stands for items takes part in."""
    (first, *others), item = node.generators, getattr(node, "elt", None)
    names = isinstance(item, gast.Name) and isinstance(first.target, gast.Name) and first.target.id == item.id
    return isinstance(node, gast.ListComp) and not others and not first.ifs and names
