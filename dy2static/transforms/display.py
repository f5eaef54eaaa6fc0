"""Displays of dicts and sets go through operators: which key it is may only be known while the Program runs, also of
those that are added later.

>>> from dy2static.transforms.base import rewritten
>>> print(rewritten('''
... def f(x, name, more):
...     return {name: x, "a": 1, **more}, {name, *more}, {"a": x}
... ''', transform))
def f(x, name, more):
    return _d2s.dict_of((name, x), ('a', 1), (more,)), _d2s.set_of((name, *more)), {'a': x}
"""

from __future__ import annotations

from typing import Any

import gast

from dy2static.transforms.base import Context, Transformer, operator


def transform(tree: Any, context: Context) -> Any:
    """Replace the displays, but for those of which all keys or members are constants and no whole numbers."""
    return _Display(context).visit(tree)


class _Display(Transformer):
    class_bodies = True

    def visit_Dict(self, node: gast.AST) -> Any:
        self.generic_visit(node)
        if node.keys and all(isinstance(key, gast.Constant) and type(key.value) is not int for key in node.keys):
            return node
        pairs = ([value] if key is None else [key, value] for key, value in zip(node.keys, node.values))
        return operator("dict_of", *map(_tuple, pairs), origin=node)

    def visit_Set(self, node: gast.AST) -> Any:
        self.generic_visit(node)
        if all(isinstance(item, gast.Constant) and type(item.value) is not int for item in node.elts):
            return node
        items = [] if _is_empty(node.elts) else node.elts
        return operator("set_of", _tuple(items), origin=node)


def _tuple(items: list[Any]) -> Any:
    return gast.Tuple(elts=items, ctx=gast.Load())


def _is_empty(items: list[Any]) -> bool:
    """Whether this is ``{*()}``, the set without members."""
    first, *others = items
    alone = not others and isinstance(first, gast.Starred)
    return alone and isinstance(first.value, gast.Tuple) and not first.value.elts
