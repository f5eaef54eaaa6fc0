"""The output tree of a Program: how the caller's result is built from the flat yields.

A tree is a list, tuple or dict of trees, a ``Leaf`` (the yield at a position), a ``Record`` (any other container),
or a constant.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Leaf:
    """The value of ``block.yields[index]``; printed ``$index``."""

    index: int


@dataclass(frozen=True)
class Record:
    """A container that is no plain list, tuple or dict: a namedtuple, a dataclass, an ordered mapping.

    ``kind`` says how to build it (``"namedtuple"``, ``"dataclass"``, ...), ``type_name`` which type the user had.
    """

    kind: str
    type_name: str
    fields: tuple[tuple[str, Any], ...]


def tree_leaves(tree: Any) -> Iterator[Leaf]:
    """The Leaves of an output tree, left to right.

    >>> list(tree_leaves(({"a": Leaf(1)}, [Leaf(0), None])))
    [Leaf(index=1), Leaf(index=0)]
    """
    if isinstance(tree, Leaf):
        yield tree
    elif isinstance(tree, (list, tuple)):
        for item in tree:
            yield from tree_leaves(item)
    elif isinstance(tree, dict):
        for item in tree.values():
            yield from tree_leaves(item)
    elif isinstance(tree, Record):
        for _, item in tree.fields:
            yield from tree_leaves(item)
