"""What an exported program returns: the structure of the function's result, in containers that PyTorch's trees know.

    (y, {"mask": m})       ->      the same
    Point(x, y)            ->      (x, y) for a named tuple, {"x": x, "y": y} for a dataclass
    y  or  (y, n)          ->      {"which": 0 or 1, "if0": y, "if1": (y, n)}, of which one means something

A constant of the result is one that PyTorch's exported programs can hold: None, a bool, a number or a text.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runtime.errors import StorageError
from runtime.export.results import FIELDS_ONLY
from runtime.ir.tree import Leaf, Record


def built(tree: Any, value: Callable[[int], Any]) -> Any:
    """The result from an output tree; ``value``: the yield at a position.

    Errors raised: StorageError D2S551 for a constant or container that exported programs cannot hold.
    """
    if isinstance(tree, Leaf):
        return value(tree.index)
    if type(tree) in (list, tuple):
        return type(tree)(built(one, value) for one in tree)
    if type(tree) is dict:
        return {key: built(one, value) for key, one in tree.items()}
    if tree is None or type(tree) in (bool, int, float, str):
        return tree
    if not isinstance(tree, Record):
        raise _refusal(type(tree).__name__)
    fields = dict(tree.fields)
    if tree.kind == "choice":
        selector, *options = fields.values()
        return {"which": built(selector, value), **{f"if{at}": built(one, value) for at, one in enumerate(options)}}
    if tree.kind in ("growing", "growing tuple") and "arrays" in fields:
        columns = [built(one, value) for one in fields["arrays"]]
        return columns[0] if len(columns) == 1 else columns
    if tree.kind in ("growing", "growing tuple"):
        found = [built(one, value) for one in fields.values()]
        return found[0] if len(found) == 1 else found
    if tree.kind in ("namedtuple", "structseq", "size"):
        return tuple(built(one, value) for name, one in tree.fields if name != "keys")
    if tree.kind not in FIELDS_ONLY:
        raise _refusal(tree.kind)
    keys = fields.pop("keys", None)
    names = keys if isinstance(keys, (list, tuple)) else list(fields)
    return {name: built(one, value) for name, one in zip(names, fields.values())}


def _refusal(kind: str) -> StorageError:
    return StorageError(
        f"a result of this kind ({kind}) has no form in torch.export",
        hint="Return tensors, numbers, texts and None, in tuples, lists, dicts, named tuples or dataclasses.",
        code="D2S551")  # fmt: skip


__all__ = ["built"]
