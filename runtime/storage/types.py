"""Types that an artefact names: which it may name, and what stands for the user's own after loading.

Nothing is imported for a name. A few classes of Python's library and of PyTorch are known by it. A user's named tuple
or dataclass comes back as a named tuple of its name and fields, another object as one of its name with the same
attributes, another mapping as a dict whose items are attributes too, an exception as a class of its name under the same
builtin.
"""

from __future__ import annotations

import builtins
import collections
import fractions
import functools
import keyword
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.nn.utils.rnn import PackedSequence

from runtime.ir.tree import Leaf, Record
from runtime.ops.keyed import CLASSES
from runtime.storage.trees import KEYED, parts, records

_FACTORIES: dict[str, Any] = {
    "None": None, "list": list, "dict": dict, "set": set, "int": int, "float": float, "str": str, "bool": bool,
    "tuple": tuple,
}  # fmt: skip

Items = tuple[Any, ...]

OBJECTS: dict[str, tuple[Callable[[Any], Items], Callable[[Items], Any]]] = {
    "torch.Size": (tuple, torch.Size),
    "range": (lambda value: (value.start, value.stop, value.step), lambda items: range(*items)),
    "slice": (lambda value: (value.start, value.stop, value.step), lambda items: slice(*items)),
    "set": (tuple, set),
    "frozenset": (tuple, frozenset),
    "ellipsis": (lambda value: (), lambda items: ...),
    "defaultdict": (
        lambda value: (getattr(value.args[0], "__name__", str(value.args[0])),),
        lambda items: functools.partial(collections.defaultdict, _factory(*items)),
    ),
}
"""Objects that results may hold as constants: how their items are taken, how they are made from them."""

EXCEPTION_BASES = frozenset(
    name for name, found in vars(builtins).items() if isinstance(found, type) and issubclass(found, Exception)
)
"""Builtin exceptions that a user's may derive from."""

_MAPPINGS: dict[str, type] = {
    f"collections.{known.__name__}": known for known in (collections.OrderedDict, collections.Counter)
}
_LIBRARY: dict[tuple[str, str], tuple[type, tuple[str, ...]]] = {
    ("namedtuple", "torch.nn.utils.rnn.PackedSequence"): (
        PackedSequence, ("data", "batch_sizes", "sorted_indices", "unsorted_indices")),
    ("instance", "fractions.Fraction"): (fractions.Fraction, ("_denominator", "_numerator")),
    ("instance", "collections.ChainMap"): (collections.ChainMap, ("maps",)),
    ("instance", "collections.UserDict"): (collections.UserDict, ("data",)),
    ("instance", "collections.UserList"): (collections.UserList, ("data",)),
    ("instance", "collections.UserString"): (collections.UserString, ("data",)),
    **{("instance", f"{cls.__module__}.{cls.__name__}"): (cls, fields) for cls, fields in CLASSES},
}  # fmt: skip
"""Classes that come back as themselves, and the fields that make an object of them, by kind and name of the record.
With other fields such a name is taken for a class of the user's."""
_BASES: dict[str, type] = {
    f"{base.__name__} instance": base for base in (list, dict, set, collections.deque)
}
"""By kind of record: what a user's container class derives from."""
_RETURN_TYPES = "torch.return_types."


class Fields(dict[str, Any]):
    """A dict whose items are attributes too: stands for a user's own mapping type."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


class Attributes:
    """An object that is its attributes: stands for an instance of a user's own class."""

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({inside})"


def _factory(name: Any) -> Any:
    if name not in _FACTORIES:
        raise ValueError(name)
    return _FACTORIES[name]


def object_kind(value: object) -> str | None:
    """The kind of a constant object, or None if an artefact cannot hold it.

    >>> object_kind(torch.Size([2])), object_kind(object())
    ('torch.Size', None)
    """
    if isinstance(value, functools.partial):
        factory = value.args[0] if value.func is collections.defaultdict and len(value.args) == 1 else object
        return "defaultdict" if any(factory is known for known in _FACTORIES.values()) else None
    kind = "torch.Size" if type(value) is torch.Size else type(value).__name__
    return kind if kind in OBJECTS and type(value) in (torch.Size, range, slice, set, frozenset, type(...)) else None


def record_class(record: Record) -> type | None:
    """The class whose instances stand for a record's, if it names one. ``check_record`` has found nothing wrong."""
    if record.kind == "mapping":
        return _MAPPINGS.get(record.type_name, Fields)
    if (library := _library_class(record)) is not None:
        return library
    if record.kind == "namedtuple" or (record.kind == "dataclass" and not _unfit(record)):
        known = _return_type(record.type_name)
        return known if known is not None else _namedtuple(_short_name(record.type_name), tuple(record.fields[0][1]))
    base = _BASES.get(record.kind)
    if base is not None:
        return _container_class(_short_name(record.type_name), base)
    return _plain_class(_short_name(record.type_name)) if record.kind in ("dataclass", "instance") else None


def _short_name(type_name: str) -> str:
    return type_name.partition(" ")[0].rpartition(".")[2]


def _library_class(record: Record) -> type | None:
    found = _LIBRARY.get((record.kind, record.type_name))
    return found[0] if found is not None and found[1] == record.fields[0][1] else None


def _return_type(type_name: str) -> Any:
    """One of the named tuples that torch's operators return."""
    found = vars(torch.return_types).get(type_name.removeprefix(_RETURN_TYPES))
    return found if type_name.startswith(_RETURN_TYPES) and isinstance(found, type) else None


@functools.cache
def _namedtuple(name: str, keys: tuple[str, ...]) -> type:
    return collections.namedtuple(name, keys)


@functools.cache
def _plain_class(name: str) -> type:
    return type(name, (Attributes,), {})


@functools.cache
def _container_class(name: str, base: type) -> type:
    return type(name, (base,), {})


def exception_class(name: str, base: str) -> type[BaseException]:
    """The class that stands for a user's exception."""
    return _exception(name.rpartition(".")[2], base)


@functools.cache
def _exception(name: str, base: str) -> type[BaseException]:
    return type(name, (getattr(builtins, base),), {})


# --- what may stand in a file


def _check_array(record: Record) -> str:
    whole = len(record.fields) == 1 and record.fields[0][0] == "tensor"
    held = isinstance(record.fields[0][1], (Leaf, Record)) if whole else False
    return "" if held else "that is not of one tensor"


def _check_retaining(record: Record) -> str:
    fields = dict(record.fields)
    held = [*fields] == ["tensor", "flag"] and isinstance(fields["tensor"], (Leaf, Record))
    return "" if held and isinstance(fields["flag"], (bool, Leaf)) else "that is not of a tensor and a flag"


def check_record(record: Record, objects: Mapping[str, Any]) -> str:
    """What is wrong with a record of an output tree, "" if nothing is."""
    if record.kind in KEYED:
        return _check_keyed(record, objects)
    if record.kind == "object":
        return "" if record.type_name in objects else "that is not described"
    checks = _CHECKS.get(record.kind)
    return checks(record) if checks is not None else "of an unknown kind"


def _check_keyed(record: Record, objects: Mapping[str, Any]) -> str:
    keys = record.fields[0][1] if record.fields and record.fields[0][0] == "keys" else None
    if type(keys) is not tuple or len(keys) != len(record.fields) - 1 or len(set(keys)) != len(keys):
        return "without the names of its fields"
    if record.kind == "mapping":
        return ""
    if record.kind == "defaultdict":
        return "" if objects.get(record.type_name, ("",))[0] == "defaultdict" else "that is not described"
    known = _return_type(record.type_name)
    if known is not None:
        return "" if known.__match_args__ == keys else "whose fields are others in this version of torch"
    if not all(_is_name(name) for name in (_short_name(record.type_name), *keys)):
        return "whose names are no names"
    if record.kind == "namedtuple" and _unfit(record):
        return "whose fields cannot be those of a named tuple"
    return "whose attributes are Python's own" if any(name.startswith("__") for name in keys) else ""


def _is_name(name: Any) -> bool:
    return type(name) is str and name.isidentifier() and not keyword.iskeyword(name)


def _unfit(record: Record) -> bool:
    return any(name.startswith("_") for name in record.fields[0][1])


def _check_choice(record: Record) -> str:
    names = [name for name, _ in record.fields]
    right = len(names) > 1 and names == ["selector", *(f"option{index}" for index in range(len(names) - 1))]
    return "" if right and isinstance(record.fields[0][1], Leaf) else "without selector and options"


def _check_deque(record: Record) -> str:
    first = record.fields[0] if record.fields else ("", "")
    right = first[0] == "maxlen" and (first[1] is None or (type(first[1]) is int and first[1] >= 0))
    return "" if right else "without a greatest length"


def _check_container(record: Record) -> str:
    if [name for name, _ in record.fields] != ["maxlen", "attributes", "content"]:
        return "without attributes and content"
    attributes = record.fields[1][1]
    named = type(attributes) is dict and all(map(_is_name, attributes))
    if not named or not _is_name(_short_name(record.type_name)):
        return "whose names are no names"
    if any(name.startswith("__") for name in attributes):
        return "whose attributes are Python's own"
    content = record.fields[2][1]
    kinds = {"dict instance": (dict,), "set instance": (Record,)}.get(record.kind, (list, Record))
    inner = content.kind in ("growing", "choice", "frozenset") if isinstance(content, Record) else True
    return _check_deque(record) if type(content) in kinds and inner else "without content"


def _check_growing_deque(record: Record) -> str:
    names = [name for name, _ in record.fields]
    items = record.fields[1][1] if names == ["maxlen", "items"] else None
    right = isinstance(items, Record) and items.kind == "growing"
    return _check_deque(record) if right else "without items"


def _check_growing_tuple(record: Record) -> str:
    items = record.fields[0][1] if [name for name, _ in record.fields] == ["items"] else None
    return "" if isinstance(items, Record) and items.kind == "growing" else "without items"


def _check_growing(record: Record) -> str:
    if [name for name, _ in record.fields] != ["arrays", "item"]:
        return "without arrays and an item"
    arrays, item = (value for _, value in record.fields)
    if type(arrays) is not tuple or not arrays or not all(isinstance(leaf, Leaf) for leaf in arrays):
        return "without arrays"
    return "" if _has_its_columns(item, len(arrays)) else "whose item names columns that it has not"


def _has_its_columns(item: Any, count: int) -> bool:
    """Whether an item of a list that grew names no columns but the list's; lists in it have columns of their own."""
    if isinstance(item, Record) and item.kind == "column":
        number = item.fields[0][1] if len(item.fields) == 1 else None
        return type(number) is int and 0 <= number < count
    if isinstance(item, Record) and item.kind == "heaps":  # rows have columns of their own
        return True
    if isinstance(item, Record) and item.kind == "growing":
        if [name for name, _ in item.fields] != ["arrays", "item"] or type(item.fields[0][1]) is not tuple:
            return False
        arrays, inner = (value for _, value in item.fields)
        return bool(arrays) and _has_its_columns(arrays, count) and _has_its_columns(inner, len(arrays))
    return all(_has_its_columns(part, count) for _, part in parts(item) or ())


def _check_row(record: Record) -> str:
    if [name for name, _ in record.fields] != ["heaps", "heap", "number"]:
        return "without heaps and numbers"
    known, heap, number = (value for _, value in record.fields)
    if not isinstance(number, Leaf) and not (isinstance(number, Record) and number.kind == "column"):
        return "without a number"
    heaps = known.fields[0][1] if isinstance(known, Record) and known.kind == "known" and known.fields else None
    if not isinstance(heaps, Record) or heaps.kind != "heaps" or type(heap) is not int or heap < 0:
        return "without heaps"
    return "" if not heaps.fields or heap < len(heaps.fields) else "of a heap that is not there"


def _check_heaps(record: Record) -> str:
    rows = [value for _, value in record.fields]
    if not all(isinstance(one, Record) and one.kind == "growing" for one in rows):
        return "without rows"
    inner = [one for value in rows for one in records(value) if one.kind == "row"]
    right = all(type(heap := dict(one.fields).get("heap")) is int and heap < len(rows) for one in inner)
    return "" if right else "with rows of a heap that is not there"


_CHECKS: dict[str, Callable[[Record], str]] = {
    "missing": lambda record: "",
    "known": lambda record: "" if [name for name, _ in record.fields] == ["value"] else "without a value",
    "size": lambda record: "",
    "numpy array": lambda record: _check_array(record), "numpy scalar": lambda record: _check_array(record),
    "retaining": lambda record: _check_retaining(record),
    "set": lambda record: "",
    "frozenset": lambda record: "",
    "deque": _check_deque,
    "growing deque": _check_growing_deque,
    "growing tuple": _check_growing_tuple,
    **dict.fromkeys(_BASES, _check_container),
    "choice": _check_choice,
    "growing": _check_growing,
    "row": _check_row,
    "heaps": _check_heaps,
}


def check_tree(tree: Any, results: int, objects: Mapping[str, Any], in_heaps: bool = False) -> str:
    """What is wrong with an output tree of a Program with so many results, "" if nothing is.

    ``in_heaps``: whether the tree is part of a record of heaps, to which records without fields refer.
    """
    if isinstance(tree, Leaf):
        return "" if tree.index < results else f"the output refers to result {tree.index} of {results}"
    problem = check_record(tree, objects) if isinstance(tree, Record) else ""
    if isinstance(tree, Record) and tree.kind == "heaps":
        problem = problem or ("" if tree.fields or in_heaps else "without rows")
        in_heaps = True
    if problem:
        return f"the output holds a {tree.kind} {tree.type_name!r} {problem}"
    grows = isinstance(tree, Record) and tree.kind == "growing"
    inside = [item for _, item in parts(tree) or ()]
    if grows:
        inside = [*inside[0], _without_columns(inside[1])]
    return next((found for item in inside if (found := check_tree(item, results, objects, in_heaps))), "")


def _without_columns(tree: Any) -> Any:
    if isinstance(tree, Record):
        if tree.kind == "column":
            return Leaf(0)
        return Record(tree.kind, tree.type_name, tuple((name, _without_columns(item)) for name, item in tree.fields))
    if type(tree) in (list, tuple):
        return type(tree)(_without_columns(item) for item in tree)
    return {key: _without_columns(item) for key, item in tree.items()} if type(tree) is dict else tree
