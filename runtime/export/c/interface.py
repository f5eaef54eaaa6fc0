"""What a caller of an exported function gives and gets: names that C takes, and the form of each value.

    x, (y, {"mask": m})      ->      inputs: x      outputs: out_0, out_1_mask

Where paths return different structures, a number says which it is, and those of the others are None:

    y  or  (y, n)            ->      outputs: out_which, out_if0, out_if1_0, out_if1_1
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from runtime.errors import StorageError
from runtime.ir import Program, TensorType
from runtime.ir.tree import Leaf, Record

DTYPES: dict[torch.dtype, str] = {
    torch.float32: "FLOAT32", torch.float64: "FLOAT64", torch.int64: "INT64", torch.int32: "INT32",
    torch.int16: "INT16", torch.int8: "INT8", torch.uint8: "UINT8", torch.bool: "BOOL",
}  # fmt: skip
"""The dtypes of exported tensors, and their names in C."""

MAX_RANK = 8

_KEYWORDS = frozenset(
    "auto break case char const continue default do double else enum extern float for goto if inline int long register "
    "restrict return short signed sizeof static struct switch typedef union unsigned void volatile while bool true "
    "false data".split()
)
_PLAIN = ("namedtuple", "dataclass", "structseq", "size", "growing", "growing tuple", "ordered", "OrderedDict")


def c_name(text: str, taken: set[str]) -> str:
    """A name for C, like a text, that nothing has yet.

    >>> taken = set()
    >>> c_name("batch['ids'][0]", taken), c_name("int", taken), c_name("batch.ids[0]", taken)
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
class Given:
    """A tensor that the caller gives."""

    name: str
    said: str
    """As the user would write it."""
    type: TensorType


@dataclass(frozen=True)
class Result:
    """A value that the caller gets: the yield at ``index``."""

    name: str
    index: int
    said: str


def inputs_of(program: Program) -> list[Given]:
    """The arguments. Errors raised: StorageError for one that is no tensor of a dtype that C has."""
    taken: set[str] = set()
    found = []
    for one in program.inputs:
        type_ = one.var.type
        if not isinstance(type_, TensorType) or type_.dtype not in DTYPES or type_.shape is None or (
                len(type_.shape) > MAX_RANK or type_.device is not None):  # fmt: skip
            raise StorageError(
                f"'{one.name}' cannot be an argument of exported C: {type_}",
                hint=f"Export tensors of the CPU with at most {MAX_RANK} dimensions, of "
                f"{', '.join(str(dtype).removeprefix('torch.') for dtype in DTYPES)}.",
                code="D2S531",
            )
        found.append(Given(c_name(one.name, taken), one.name, type_))
    return found


def outputs_of(program: Program) -> list[Result]:
    """The results, in the order of the output's tree. Errors raised: StorageError for containers that C has not."""
    taken: set[str] = set()
    found: dict[int, Result] = {}
    for path, leaf in _leaves(program.output, ()):
        if leaf.index not in found:
            said = "".join(f"[{step!r}]" for step in path)
            name = "_".join(["out", *map(str, path)]) if path else "result"
            found[leaf.index] = Result(c_name(name, taken), leaf.index, f"result{said}")
    return list(found.values())


def _leaves(tree: Any, path: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], Leaf]]:
    if isinstance(tree, Leaf):
        yield path, tree
    elif isinstance(tree, (list, tuple)):
        for place, item in enumerate(tree):
            yield from _leaves(item, (*path, place))
    elif isinstance(tree, dict):
        for key, item in tree.items():
            yield from _leaves(item, (*path, key))
    elif isinstance(tree, Record):
        fields = dict(tree.fields)
        if tree.kind in ("growing", "growing tuple") and "arrays" in fields:
            arrays = fields["arrays"]
            for place, item in enumerate(arrays):
                yield from _leaves(item, path if len(arrays) == 1 else (*path, place))
            return
        if tree.kind == "choice":
            yield from _leaves(fields.pop("selector"), (*path, "which"))
            for number, option in enumerate(fields.values()):
                yield from _leaves(option, (*path, f"if{number}"))
            return
        if tree.kind not in _PLAIN:
            if any(_any_leaf(item) for _, item in tree.fields):
                raise StorageError(
                    f"a result of this kind ({tree.kind}) has no form in exported C",
                    hint="Return tensors, numbers, and lists of them, in tuples, lists, dicts, named tuples or "
                    "dataclasses.",
                    code="D2S531",
                )
            return
        for name, item in tree.fields:
            yield from _leaves(item, (*path, name))


def _any_leaf(tree: Any) -> bool:
    if isinstance(tree, Leaf):
        return True
    if isinstance(tree, Record):
        return any(_any_leaf(item) for _, item in tree.fields)
    if isinstance(tree, dict):
        return any(map(_any_leaf, tree.values()))
    return isinstance(tree, (list, tuple)) and any(map(_any_leaf, tree))


__all__ = ["DTYPES", "MAX_RANK", "Given", "Result", "c_name", "inputs_of", "outputs_of"]
