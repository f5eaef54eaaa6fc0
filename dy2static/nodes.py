"""Walking gast trees, several times faster than ``gast.walk``: contexts (``Load``, ``Store``) are left out."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
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
                if name in _MIXED:
                    found += [item for item in value if isinstance(item, gast.AST)]
                else:
                    found += value
            elif isinstance(value, gast.AST):
                found.append(value)
    return found


_MIXED = frozenset(("keys", "kw_defaults", "kwd_attrs", "names"))
"""Fields whose lists may hold what is no node; all others hold nothing else."""


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
                    todo += [item for item in value if isinstance(item, gast.AST)] if name in _MIXED else value
                elif isinstance(value, gast.AST):
                    todo.append(value)
    return kinds


class _Bits(dict[type, int]):
    def __missing__(self, kind: type) -> int:
        bit = self[kind] = 1 << len(self)
        return bit


_bits = _Bits()


def mask_of(kinds: Iterable[type]) -> int:
    """Classes of nodes as one number."""
    found = 0
    for kind in kinds:
        found |= _bits[kind]
    return found


def kinds_under(node: Any, key: str) -> int:
    """The classes of the nodes in a tree (see `mask_of`), which is kept under ``key`` on every node of it.

    >>> tree = gast.parse("a + b")
    >>> kinds_under(tree, "k") == mask_of(kinds_in(tree))
    True
    >>> tree.body[0].value.left.k == mask_of([gast.Name])
    True
    """
    values = node.__dict__
    known: int | None = values.get(key)
    if known is not None:
        return known
    kind = type(node)
    found = _bits[kind]
    for name in inner_fields[kind]:
        value = values.get(name)
        if value:
            if type(value) is list:
                for item in value:
                    if name not in _MIXED or isinstance(item, gast.AST):
                        found |= kinds_under(item, key)
            elif isinstance(value, gast.AST):
                found |= kinds_under(value, key)
    values[key] = found
    return found


__all__ = ["BLOCKS", "children", "inner_fields", "kinds_in", "kinds_under", "mask_of", "walk"]
