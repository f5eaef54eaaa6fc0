"""Types that an artefact names: which it may name, and what stands for the user's own after loading.

Nothing is imported for a name. A named tuple or dataclass comes back as a named tuple of its name and fields, another
mapping as a dict whose items are attributes too, an exception as a class of its name under the same builtin.
"""

from __future__ import annotations

import builtins
import collections
import functools
import keyword
from collections.abc import Callable, Mapping
from typing import Any

import torch

from runtime.ir.tree import Record

OBJECTS: dict[str, tuple[Callable[[Any], tuple[Any, ...]], Callable[[tuple[Any, ...]], Any]]] = {
    "torch.Size": (tuple, torch.Size),
    "range": (lambda value: (value.start, value.stop, value.step), lambda items: range(*items)),
    "set": (tuple, set),
    "frozenset": (tuple, frozenset),
    "ellipsis": (lambda value: (), lambda items: ...),
}
"""Objects that results may hold as constants: how their items are taken, how they are made from them."""

EXCEPTION_BASES = frozenset(
    name for name, found in vars(builtins).items() if isinstance(found, type) and issubclass(found, Exception)
)
"""Builtin exceptions that a user's may derive from."""

_MAPPINGS: dict[str, type] = {
    "collections.OrderedDict": collections.OrderedDict,
    "collections.defaultdict": collections.defaultdict,
}
_RETURN_TYPES = "torch.return_types."


class Fields(dict[str, Any]):
    """A dict whose items are attributes too: stands for a user's own mapping type."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


def object_kind(value: object) -> str | None:
    """The kind of a constant object, or None if an artefact cannot hold it.

    >>> object_kind(torch.Size([2])), object_kind(object())
    ('torch.Size', None)
    """
    kind = "torch.Size" if type(value) is torch.Size else type(value).__name__
    return kind if kind in OBJECTS and type(value) in (torch.Size, range, set, frozenset, type(...)) else None


def record_class(record: Record) -> type:
    """The class whose instances stand for a record's. ``check_record`` has found nothing wrong with it."""
    keys = tuple(record.fields[0][1])
    if record.kind == "mapping":
        return _MAPPINGS.get(record.type_name, Fields)
    known = _return_type(record.type_name)
    return known if known is not None else _namedtuple(record.type_name.rpartition(".")[2], keys)


def _return_type(type_name: str) -> Any:
    """One of the named tuples that torch's operators return."""
    found = vars(torch.return_types).get(type_name.removeprefix(_RETURN_TYPES))
    return found if type_name.startswith(_RETURN_TYPES) and isinstance(found, type) else None


@functools.cache
def _namedtuple(name: str, keys: tuple[str, ...]) -> type:
    return collections.namedtuple(name, keys)


def exception_class(name: str, base: str) -> type[BaseException]:
    """The class that stands for a user's exception."""
    return _exception(name.rpartition(".")[2], base)


@functools.cache
def _exception(name: str, base: str) -> type[BaseException]:
    return type(name, (getattr(builtins, base),), {})


def check_record(record: Record, objects: Mapping[str, Any]) -> str:
    """What is wrong with a record of an output tree, "" if nothing is."""
    fields = dict(record.fields)
    if record.kind in ("missing", "frozenset"):
        return ""
    if record.kind == "object":
        return "" if record.type_name in objects else "that is not described"
    if record.kind == "choice":
        names = [name for name, _ in record.fields]
        right = len(names) > 1 and names == ["selector", *(f"option{index}" for index in range(len(names) - 1))]
        return "" if right and hasattr(fields["selector"], "index") else "without selector and options"
    if record.kind not in ("namedtuple", "dataclass", "mapping"):
        return "of an unknown kind"
    keys = record.fields[0][1] if record.fields and record.fields[0][0] == "keys" else None
    if type(keys) is not tuple or len(keys) != len(record.fields) - 1:
        return "without the names of its fields"
    if record.kind == "mapping":
        return ""
    known = _return_type(record.type_name)
    if known is not None:
        return "" if known.__match_args__ == keys else "whose fields are others in this version of torch"
    names = [record.type_name.rpartition(".")[2], *keys]
    if not all(type(name) is str and name.isidentifier() and not keyword.iskeyword(name) for name in names):
        return "whose names are no names"
    if any(name.startswith("_") for name in keys) or len(set(keys)) != len(keys):
        return "whose fields cannot be those of a named tuple"
    return ""
