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

from dy2static.nodes import children, kinds_in
from dy2static.transforms.base import Context


def transform(tree: Any, context: Context) -> Any:
    """Mangle every private name, as Python's compiler does."""
    if context.class_name is None and gast.ClassDef not in kinds_in(tree):
        return tree
    _mangle(tree, context.class_name)
    return tree


def mangled(name: str, class_name: str | None) -> str:
    """The name as Python stores it.

    >>> mangled("__x", "_A"), mangled("__x__", "A"), mangled("__x", "__"), mangled("_x", "A")
    ('_A__x', '__x__', '__x', '_x')
    """
    owner = (class_name or "").lstrip("_")
    if not owner or not name.startswith("__") or name.endswith("__") or "." in name:
        return name
    return f"_{owner}{name}"


_FIELDS = {
    gast.Name: "id", gast.Attribute: "attr", gast.FunctionDef: "name", gast.AsyncFunctionDef: "name",
    gast.MatchAs: "name", gast.MatchStar: "name", gast.MatchMapping: "rest", gast.alias: "asname",
    gast.Global: "names", gast.Nonlocal: "names", gast.ClassDef: "name",
}  # fmt: skip
"""By class of node: the field that holds a name, or several."""


def _mangle(node: Any, class_name: str | None) -> None:
    """Mangle the names in a tree that stands in the class of that name."""
    field = _FIELDS.get(type(node), "")
    value = node.__dict__.get(field)
    if isinstance(value, str):
        node.__dict__[field] = mangled(value, class_name)
    elif value is not None:
        node.__dict__[field] = [mangled(name, class_name) for name in value]
    if isinstance(node, gast.ClassDef):
        for part in (*node.decorator_list, *node.bases, *node.keywords):
            _mangle(part, class_name)
        for statement in node.body:
            _mangle(statement, value)
        return
    for child in children(node):
        _mangle(child, class_name)
