"""Walking gast trees, several times faster than ``gast.walk``: contexts (``Load``, ``Store``) are left out."""

from __future__ import annotations

from collections.abc import Iterator

import gast


def children(node: gast.AST) -> list[gast.AST]:
    """The child nodes, in field order, without contexts.

    >>> [type(child).__name__ for child in children(gast.parse("f(x, y=1)").body[0].value)]
    ['Name', 'Name', 'keyword']
    """
    found: list[gast.AST] = []
    values = node.__dict__
    for name in node._fields:
        value = values.get(name)
        if isinstance(value, list):
            found += [item for item in value if isinstance(item, gast.AST)]
        elif isinstance(value, gast.AST) and name != "ctx":
            found.append(value)
    return found


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


__all__ = ["children", "walk"]
