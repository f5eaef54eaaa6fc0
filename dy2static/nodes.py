"""Walking gast trees, several times faster than ``gast.walk``: contexts (``Load``, ``Store``) are left out."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import gast

_NO_NODES = ("ctx", "id", "attr", "arg", "kind", "type_comment")
"""Fields that hold a context or no node at all."""

BLOCKS = ("body", "orelse", "handlers", "finalbody", "cases")
"""Fields that hold statements, or what holds blocks of them: no statement stands anywhere else."""


def children(node: Any) -> list[Any]:
    """The child nodes, in field order, without contexts.

    >>> [type(child).__name__ for child in children(gast.parse("f(x, y=1)").body[0].value)]
    ['Name', 'Name', 'keyword']
    """
    found: list[Any] = []
    values = node.__dict__
    for name in inner_fields[type(node)]:
        value = values.get(name)
        if value:
            if type(value) is list:
                found += [item for item in value if isinstance(item, gast.AST)]
            elif isinstance(value, gast.AST):
                found.append(value)
    return found


class _InnerFields(dict[Any, tuple[str, ...]]):
    def __missing__(self, kind: Any) -> tuple[str, ...]:
        found = self[kind] = tuple(name for name in kind._fields if name not in _NO_NODES)
        return found


inner_fields = _InnerFields()
"""By class of nodes: the fields that may hold nodes."""


def walk(tree: gast.AST) -> Iterator[gast.AST]:
    """The node and all below it, outer before inner.

    >>> [node.id for node in walk(gast.parse("a + b")) if isinstance(node, gast.Name)]
    ['a', 'b']
    """
    level = [tree]
    while level:
        below: list[gast.AST] = []
        for node in level:
            yield node
            below += children(node)
        level = below


def kinds_in(tree: gast.AST, until: Collection[type] = ()) -> set[type]:
    """The classes of the nodes in a tree. Where one of ``until`` is among them, perhaps not all.

    >>> sorted(kind.__name__ for kind in kinds_in(gast.parse("a + b")))
    ['Add', 'BinOp', 'Expr', 'Module', 'Name']
    """
    kinds: set[type] = set()
    todo: list[Any] = [tree]
    while todo:
        node = todo.pop()
        kind = type(node)
        if kind not in kinds:
            kinds.add(kind)
            if kind in until:
                break
        values = node.__dict__
        for name in inner_fields[kind]:
            value = values.get(name)
            if value:
                if type(value) is list:
                    todo += [item for item in value if isinstance(item, gast.AST)]
                elif isinstance(value, gast.AST):
                    todo.append(value)
    return kinds


__all__ = ["BLOCKS", "children", "inner_fields", "kinds_in", "walk"]
