"""Trees of containers: going through them, finding a part by its path, and parts that are one object."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from runtime.ir.template import KeyPath
from runtime.ir.tree import Record
from runtime.storage.artefact import TensorRef

KEYED = ("namedtuple", "dataclass", "mapping", "defaultdict", "instance")
"""Kinds of Records whose first field, ``keys``, holds the names of the others."""


def parts(tree: Any) -> list[tuple[Any, Any]] | None:
    """The steps into a container and what is there; None for a leaf."""
    if type(tree) in (list, tuple):
        return list(enumerate(tree))
    if type(tree) is dict:
        return list(tree.items())
    if isinstance(tree, Record):
        if tree.kind in KEYED and tree.fields and type(tree.fields[0][1]) is tuple:
            return list(zip(tree.fields[0][1], (item for _, item in tree.fields[1:])))
        return list(tree.fields)
    return None


def leaves(tree: Any) -> Iterator[Any]:
    """Everything in a tree that is no container.

    >>> list(leaves((1, {"a": [2]})))
    [1, 2]
    """
    inside = parts(tree)
    if inside is None:
        yield tree
    for _, item in inside or ():
        yield from leaves(item)


def records(tree: Any) -> Iterator[Record]:
    """Every Record in a tree, outer before inner."""
    if isinstance(tree, Record):
        yield tree
    for _, item in parts(tree) or ():
        yield from records(item)


def shared_paths(trees: Sequence[Any]) -> list[tuple[KeyPath, KeyPath]]:
    """Containers that stand in the trees more than once: the first path, and each later one.

    >>> a = [1]
    >>> shared_paths([(a, a), {"b": a}])
    [((0, 0), (0, 1)), ((0, 0), (1, 'b'))]
    """
    first: dict[int, KeyPath] = {}
    found: list[tuple[KeyPath, KeyPath]] = []

    def visit(tree: Any, path: KeyPath) -> None:
        if type(tree) in (list, dict) or isinstance(tree, Record) or (type(tree) is tuple and tree):
            if id(tree) in first:
                found.append((first[id(tree)], path))
                return
            first[id(tree)] = path
        for step, item in parts(tree) or ():
            visit(item, (*path, step))

    visit(list(trees), ())
    return found


def at_path(tree: Any, path: KeyPath) -> Any:
    """The part of a tree at a path. Errors raised: LookupError if there is none."""
    for step in path:
        inside = dict(parts(tree) or ())
        if step not in inside:
            raise LookupError(step)
        tree = inside[step]
    return tree


def with_part(tree: Any, path: KeyPath, part: Any) -> Any:
    """The tree with another part at a path; lists and dicts are changed in place, others made anew.

    Errors raised: LookupError if there is no such path.
    """
    if not path:
        return part
    step, rest = path[0], path[1:]
    inside = dict(parts(tree) or ())
    if step not in inside:
        raise LookupError(step)
    new = with_part(inside[step], rest, part)
    if type(tree) in (list, dict):
        tree[step] = new
        return tree
    if type(tree) is tuple:
        return tuple(new if index == step else item for index, item in enumerate(tree))
    position = list(inside).index(step) + len(tree.fields) - len(inside)
    fields = [(name, new if index == position else item) for index, (name, item) in enumerate(tree.fields)]
    return Record(tree.kind, tree.type_name, tuple(fields))


def with_tensors(tree: Any, tensors: Sequence[torch.Tensor]) -> Any:
    """A default with its tensors in place."""
    if isinstance(tree, TensorRef):
        return tensors[tree.index]
    if type(tree) in (list, tuple):
        return type(tree)(with_tensors(item, tensors) for item in tree)
    if type(tree) is dict:
        return {key: with_tensors(item, tensors) for key, item in tree.items()}
    return tree
