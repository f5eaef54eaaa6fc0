"""Keys of dict displays and items of set displays go through `key`: eager may have one tensor where a trace has two.

>>> from dy2static.transforms.base import rewritten
>>> print(rewritten('''
... def f(a, b, c):
...     return {a, 1, *b}, {a: b, 'x': c, **c}
... ''', transform))
def f(a, b, c):
    return {_d2s.key(a), 1, *_d2s.keys(b)}, {_d2s.key(a): b, 'x': c, **c}
"""

from __future__ import annotations

from typing import Any

import gast

from dy2static.transforms.base import Context, Transformer, operator


def transform(tree: Any, context: Context) -> Any:
    """Wrap keys and items that are not constants."""
    return _Display(context).visit(tree)


class _Display(Transformer):
    def visit_Set(self, node: gast.AST) -> Any:
        self.generic_visit(node)
        node.elts = [self._key(one) for one in node.elts]
        return node

    def visit_Dict(self, node: gast.AST) -> Any:
        self.generic_visit(node)
        node.keys = [one if one is None else self._key(one) for one in node.keys]
        return node

    def _key(self, node: Any) -> Any:
        if isinstance(node, gast.Starred):
            if not isinstance(node.value, gast.Tuple) or node.value.elts:
                node.value = operator("keys", node.value, origin=node.value)
            return node
        return node if isinstance(node, gast.Constant) else operator("key", node, origin=node)
