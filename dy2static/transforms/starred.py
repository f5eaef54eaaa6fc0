"""A star in a call, or in a display of a tuple or set, goes through an operator: it asks for a length.

>>> from dy2static.transforms.base import rewritten
>>> print(rewritten('''
... def f(g, xs):
...     return g(1, *xs, **xs), (*xs, 2), [*xs]
... ''', transform))
def f(g, xs):
    return g(1, *_d2s.star(xs), **_d2s.keywords(xs)), (*_d2s.star_of_tuple(xs), 2), [*_d2s.star_of_list(xs)]

A list of a list that grew is one that grew; where only the content differs between paths, it must have one length.
"""

from __future__ import annotations

from typing import Any

import gast

from dy2static.transforms.base import Context, Transformer, is_operator, operator


def transform(tree: Any, context: Context) -> Any:
    """Replace what stands behind such stars."""
    return _Starred(context).visit(tree)


class _Starred(Transformer):
    class_bodies = True

    def visit_Call(self, node: gast.AST) -> Any:
        if is_operator(node.func) and node.func.attr == "set_of":  # a display of a set
            (items,) = node.args
            self.generic_visit(self.changing(items))
            self._stars(items.elts, "star_of_set")
            return node
        self.generic_visit(node)
        if not is_operator(node.func):
            self._stars(node.args, "star")
            for one in node.keywords:
                if one.arg is None and not isinstance(one.value, gast.Dict):
                    self.changing(one).value = operator("keywords", one.value, origin=one.value)
        return node

    def visit_Tuple(self, node: gast.AST) -> Any:
        self.generic_visit(node)
        if not isinstance(node.ctx, gast.Store):
            self._stars(node.elts, "star_of_tuple")
        return node

    def visit_List(self, node: gast.AST) -> Any:
        self.generic_visit(node)
        if not isinstance(node.ctx, gast.Store):
            self._stars(node.elts, "star_of_list")
        return node

    def visit_Set(self, node: gast.AST) -> Any:
        self.generic_visit(node)
        self._stars(node.elts, "star_of_set")
        return node

    def _stars(self, elements: list[Any], name: str) -> None:
        for element in elements:
            if isinstance(element, gast.Starred) and not isinstance(element.value, (gast.Tuple, gast.List)):
                self.changing(element).value = operator(name, element.value, origin=element)
