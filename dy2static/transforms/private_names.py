"""Private names of a class are written out, since the converted function stands outside the class.

>>> from dy2static.transforms.base import rewritten
>>> print(rewritten('''
... def f(self, __n):
...     return self.__x + __n + self.__len__()
... ''', transform, class_name="_Net"))
def f(self, _Net__n):
    return self._Net__x + _Net__n + self.__len__()
"""

from __future__ import annotations

from typing import Any

import gast

from dy2static.nodes import kinds_in
from dy2static.transforms.base import Context


def transform(tree: Any, context: Context) -> Any:
    """Mangle every private name, as Python's compiler does."""
    if context.class_name is None and gast.ClassDef not in kinds_in(tree):
        return tree
    return _Private(context.class_name).visit(tree)


def mangled(name: str, class_name: str | None) -> str:
    """The name as Python stores it.

    >>> mangled("__x", "_A"), mangled("__x__", "A"), mangled("__x", "__"), mangled("_x", "A")
    ('_A__x', '__x__', '__x', '_x')
    """
    owner = (class_name or "").lstrip("_")
    if not owner or not name.startswith("__") or name.endswith("__") or "." in name:
        return name
    return f"_{owner}{name}"


class _Private(gast.NodeTransformer):
    def __init__(self, class_name: str | None) -> None:
        self.class_name = class_name

    def _rename(self, node: gast.AST, field: str) -> Any:
        value = getattr(node, field)
        if isinstance(value, str):
            setattr(node, field, mangled(value, self.class_name))
        return self.generic_visit(node)

    def visit_Name(self, node: gast.AST) -> Any:
        return self._rename(node, "id")

    def visit_Attribute(self, node: gast.AST) -> Any:
        return self._rename(node, "attr")

    def visit_FunctionDef(self, node: gast.AST) -> Any:
        return self._rename(node, "name")

    visit_AsyncFunctionDef = visit_MatchAs = visit_MatchStar = visit_FunctionDef

    def visit_MatchMapping(self, node: gast.AST) -> Any:
        return self._rename(node, "rest")

    def visit_alias(self, node: gast.AST) -> Any:
        return self._rename(node, "asname")

    def visit_Global(self, node: gast.AST) -> Any:
        node.names = [mangled(name, self.class_name) for name in node.names]
        return node

    visit_Nonlocal = visit_Global

    def visit_ClassDef(self, node: gast.AST) -> Any:
        for field in ("decorator_list", "bases", "keywords"):
            setattr(node, field, [self.visit(item) for item in getattr(node, field)])
        inner = _Private(node.name)
        node.body = [inner.visit(statement) for statement in node.body]
        node.name = mangled(node.name, self.class_name)
        return node
