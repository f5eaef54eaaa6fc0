"""What a caller of something exported gets: a name for each value of the result, told by where it is in it.

    x, (y, {"mask": m})      ->      out_0, out_1_mask

Where paths return different structures, a number says which it is, and those of the others mean nothing:

    y  or  (y, n)            ->      out_which, out_if0, out_if1_0, out_if1_1
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from runtime.errors import StorageError
from runtime.ir import Program
from runtime.ir.tree import Leaf, Record

_KEYWORDS = frozenset(
    "auto break case char const continue default do double else enum extern float for goto if inline int long register "
    "restrict return short signed sizeof static struct switch typedef union unsigned void volatile while bool true "
    "false data".split()
)
FIELDS_ONLY = ("namedtuple", "dataclass", "structseq", "size", "growing", "growing tuple", "mapping", "defaultdict")
"""The kinds of Records that say no more than their fields do."""


def plain_name(text: str, taken: set[str]) -> str:
    """A name, like a text, that C takes too, and that nothing has yet.

    >>> taken = set()
    >>> plain_name("batch['ids'][0]", taken), plain_name("int", taken), plain_name("batch.ids[0]", taken)
    ('batch_ids_0', 'int_', 'batch_ids_0_2')
    """
    found = re.sub(r"[^A-Za-z0-9]+", "_", text.encode("ascii", "ignore").decode()).strip("_") or "value"
    found = f"v_{found}" if found[0].isdigit() else found
    found = f"{found}_" if found in _KEYWORDS else found
    name, number = found, 2
    while name in taken:
        name, number = f"{found}_{number}", number + 1
    taken.add(name)
    return name


@dataclass(frozen=True)
class Result:
    """A value that the caller gets: the yield at ``index``."""

    name: str
    index: int
    said: str


def outputs_of(program: Program, where: str, code: str) -> list[Result]:
    """The results, in the order of the output's tree.

    Errors raised: StorageError with ``code`` for containers that have no form in what is exported to (``where``).
    """
    taken: set[str] = set()
    found: dict[int, Result] = {}
    for path, leaf in _leaves(program.output, (), (where, code)):
        if leaf.index not in found:
            said = "".join(f"[{step!r}]" for step in path)
            name = "_".join(["out", *map(str, path)]) if path else "result"
            found[leaf.index] = Result(plain_name(name, taken), leaf.index, f"result{said}")
    return list(found.values())


def _leaves(tree: Any, path: tuple[Any, ...], target: tuple[str, str]) -> Iterator[tuple[tuple[Any, ...], Leaf]]:
    if isinstance(tree, Leaf):
        yield path, tree
    elif isinstance(tree, (list, tuple)):
        for place, item in enumerate(tree):
            yield from _leaves(item, (*path, place), target)
    elif isinstance(tree, dict):
        for key, item in tree.items():
            yield from _leaves(item, (*path, key), target)
    elif isinstance(tree, Record):
        fields = dict(tree.fields)
        if tree.kind in ("growing", "growing tuple") and "arrays" in fields:
            arrays = fields["arrays"]
            if not _is_plain_item(fields.get("item")):
                raise StorageError(
                    f"a list whose items differ in structure has no form in {target[0]}",
                    hint="Put tensors or numbers of one kind into the list.", code=target[1])  # fmt: skip
            for place, item in enumerate(arrays):
                yield from _leaves(item, path if len(arrays) == 1 else (*path, place), target)
            return
        if tree.kind == "choice":
            yield from _leaves(fields.pop("selector"), (*path, "which"), target)
            for number, option in enumerate(fields.values()):
                yield from _leaves(option, (*path, f"if{number}"), target)
            return
        if tree.kind not in FIELDS_ONLY:
            if any(_any_leaf(item) for _, item in tree.fields):
                raise StorageError(
                    f"a result of this kind ({tree.kind}) has no form in {target[0]}",
                    hint="Return tensors, numbers, and lists of them, in tuples, lists, dicts, named tuples or "
                    "dataclasses.",
                    code=target[1],
                )
            return
        for name, item in tree.fields:
            yield from _leaves(item, (*path, name), target)


def _is_plain_item(item: Any) -> bool:
    """Whether each item of a list that grew is made of values of the run only, in one way."""
    if isinstance(item, Record):
        return item.kind == "column" or (item.kind in FIELDS_ONLY and all(
            _is_plain_item(one) for name, one in item.fields if name != "keys"))  # fmt: skip
    if isinstance(item, dict):
        return all(map(_is_plain_item, item.values()))
    return isinstance(item, (list, tuple)) and all(map(_is_plain_item, item))


def _any_leaf(tree: Any) -> bool:
    if isinstance(tree, Leaf):
        return True
    if isinstance(tree, Record):
        return any(_any_leaf(item) for _, item in tree.fields)
    if isinstance(tree, dict):
        return any(map(_any_leaf, tree.values()))
    return isinstance(tree, (list, tuple)) and any(map(_any_leaf, tree))


__all__ = ["FIELDS_ONLY", "Result", "outputs_of", "plain_name"]
