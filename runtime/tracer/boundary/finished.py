"""Finished trees: nothing of the tracer's own is in what a Program gives to its callers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from runtime.ir.tree import Leaf, Record
from runtime.kinds import is_a
from runtime.tracer.ambient.unasked import module_name
from runtime.tracer.python_state.guards import is_plain

_OURS = ("runtime.tracer.", "dy2static.operators.")
_STANDS = "stands for a value while tracing only"


def require_users_own(trees: Iterable[Any], kept: Iterable[Any]) -> None:
    """Require that trees hold plain constants, and containers that every call makes; ``kept``: the classes that they
    name, and the objects that they give as they are.

    Raises:
        AssertionError: A class of the tracer is named, or an instance of one is in a tree: a fault of the tracer.
    """
    for value in kept:
        cls = value if is_a(value, type) else type(value)
        if module_name(cls).startswith(_OURS) or issubclass(cls, (Leaf, Record)):
            raise AssertionError(f"a result would hold a {cls.__name__}, which {_STANDS}")
    todo, seen = list(trees), set[int]()
    while todo:
        tree = todo.pop()
        if is_a(tree, Leaf) or is_plain(tree):
            continue
        if is_a(tree, (Record, list, tuple, dict)):
            if id(tree) in seen:
                continue
            seen.add(id(tree))
        if is_a(tree, Record):
            todo += (part for _, part in tree.fields)
        elif type(tree) in (list, tuple):
            todo += tree
        elif type(tree) is dict:
            todo += tree.values()
        elif module_name(type(tree)).startswith(_OURS):
            raise AssertionError(f"a result would be a {type(tree).__name__}, which {_STANDS}")


__all__ = ["require_users_own"]
