"""What leaves a run for many rows: numbers become tensors, and how a result is built must be the same in all rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import torch

from runtime.batching.rows import Domain, Rows
from runtime.errors import TraceError
from runtime.ir import ArrayType, Location, Program, ScalarType, Variable
from runtime.ir.tree import Leaf, Record, tree_leaves
from runtime.torch_internals import batches


def settled(program: Program, tree: Any, values: Sequence[Any], domain: Domain) -> list[Any]:
    """The values that a tree is built of: each number that a run computed is a tensor.

    Raises:
        TraceError: How the tree is built depends on the row, or it holds text that does.
    """
    found = list(values)
    _settle(program, tree, found, domain, set())
    return found


def _settle(program: Program, tree: Any, values: list[Any], domain: Domain, seen: set[int]) -> None:
    if isinstance(tree, Leaf):
        values[tree.index] = _number(program, tree.index, values[tree.index], domain)
        return
    if id(tree) in seen:
        return
    seen.add(id(tree))
    if isinstance(tree, Record):
        if tree.kind == "choice":
            _choice(program, tree, values, domain, seen)
            return
        if tree.kind == "growing" and _is_of_numbers(program, tree):
            (column,) = dict(tree.fields)["arrays"]
            made = [_made(item, domain) for item in values[column.index]]
            if any(item is None for item in made):
                _refuse(program, tree, "a list in the result holds what is another text in some rows")
            values[column.index] = made
            return
        if tree.kind in ("heaps", "growing", "row"):
            if _holds_rows(tree, values):
                _refuse(program, tree, "a list or object in the result is another in some rows")
            return
        parts: Sequence[Any] = [part for _, part in tree.fields]
    elif type(tree) is dict:
        parts = list(tree.values())
    else:
        parts = tree if type(tree) in (list, tuple) else ()
    for part in parts:
        _settle(program, part, values, domain, seen)


def _choice(program: Program, tree: Record, values: list[Any], domain: Domain, seen: set[int]) -> None:
    fields = dict(tree.fields)
    chosen = values[fields["selector"].index]
    if isinstance(chosen, Rows):
        _refuse(program, fields["selector"], "the result is of another kind in some rows")
    _settle(program, fields[f"option{chosen}"], values, domain, seen)


def _number(program: Program, index: int, value: Any, domain: Domain) -> Any:
    declared = program.block.yields[index]
    computed = isinstance(declared, Variable) and isinstance(declared.type, ScalarType)
    if not computed and not isinstance(value, Rows):
        return value
    made = _made(value, domain)
    if made is None:
        what = "a number or text in the result is one that no tensor holds, and another in some rows"
        _refuse(program, Leaf(index), what)
    return made


def _is_of_numbers(program: Program, tree: Record) -> bool:
    """Whether a list that grew holds numbers and nothing else."""
    arrays = dict(tree.fields)["arrays"]
    found = program.block.yields[arrays[0].index] if len(arrays) == 1 and isinstance(arrays[0], Leaf) else None
    return isinstance(found, Variable) and isinstance(found.type, ArrayType) and isinstance(
        found.type.element, ScalarType)  # fmt: skip


def _made(value: Any, domain: Domain) -> Any:
    """A number as a tensor; None for numbers of rows that none holds."""
    if isinstance(value, Rows):
        try:
            return domain.tensor(value.values)
        except (OverflowError, RuntimeError, KeyError):  # more than 64 bits; a text
            return None
    return _plain(value) if type(value) in (bool, int, float, complex) else value


def _plain(value: Any) -> torch.Tensor:
    with batches.without_transforms():
        dtype = {bool: torch.bool, int: torch.int64, float: torch.float64, complex: torch.complex128}[type(value)]
        return torch.tensor(value, dtype=dtype)


def _holds_rows(tree: Any, values: Sequence[Any]) -> bool:
    if isinstance(tree, Leaf):
        return _has_rows(values[tree.index])
    if isinstance(tree, Record):
        return any(_holds_rows(part, values) for _, part in tree.fields)
    if type(tree) in (list, tuple):
        return any(_holds_rows(part, values) for part in tree)
    return False


def _has_rows(value: Any) -> bool:
    return isinstance(value, Rows) or (isinstance(value, list) and any(map(_has_rows, value)))


def require_same(values: Sequence[Any], name: str, location: Location | None) -> None:
    """Refuse to store what is another value in each row.

    Raises:
        TraceError: One of the values is.
    """
    if any(_has_rows(value) or batches.levels_of(value) for value in values):
        raise TraceError(
            f"under vmap, what is stored in {name} is another value in each row",
            hint="Give it as a result, and store it after the call.", code="D2S284", location=location)


def _refuse(program: Program, tree: Any, what: str) -> NoReturn:
    """The error, at the line that made what a tree refers to."""
    read = {program.block.yields[leaf.index] for leaf in tree_leaves(tree)}
    made = [op for op in program.block.ops if not read.isdisjoint(op.outputs)]
    raise TraceError(
        f"under vmap, {what}", hint="Give tensors of one kind and size on all paths.", code="D2S283",
        location=made[-1].location if made else None,
    )


__all__ = ["require_same", "settled"]
