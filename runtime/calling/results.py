"""From an output tree and the flat yields of one run to the result of the call.

What was made inside the function is made anew at every call, what existed before is the caller's own object. The trees
are made by the tracer (``tracer/boundary/results.py``), or come from a file.
"""

from __future__ import annotations

import collections
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from runtime.ir.tree import Leaf, Record
from runtime.kinds import is_a
from runtime.ops.keyed import Keyed
from runtime.tracer.ambient import objects
from runtime.tracer.python_state.journal import MISSING, Place
from runtime.tracer.values import remaking, structure


def build_tree(tree: Any, values: Sequence[Any], classes: dict[str, Any], built: dict[Any, Any] | None = None) -> Any:
    """The caller's result from an output tree and the flat yields.

    ``built`` holds the containers that exist already, by identity of their subtree: one subtree is one object.
    """
    built = {} if built is None else built
    if is_a(tree, Leaf):
        return values[tree.index]
    if type(tree) in (list, tuple, dict) or is_a(tree, Record):
        if id(tree) not in built:
            built[id(tree)] = _build_container(tree, values, classes, built)
        return built[id(tree)]
    return tree


def _build_container(tree: Any, values: Sequence[Any], classes: dict[str, Any], built: dict[Any, Any]) -> Any:
    def build(part: Any) -> Any:
        return build_tree(part, values, classes, built)

    if type(tree) is tuple:
        return tuple(map(build, tree)) if tree else ()  # in Python 3.10, tuple() of no items may be another one
    if type(tree) is list:
        return list(map(build, tree))
    if type(tree) is dict:
        return {key: build(item) for key, item in tree.items()}
    if tree.kind == "choice":
        fields = dict(tree.fields)
        return build(fields[f"option{values[fields['selector'].index]}"])
    if tree.kind == "missing":
        return MISSING
    if tree.kind == "object":
        return classes[tree.type_name]
    if tree.kind == "growing":
        return list(_rows(tree, values, classes, build, built))
    if tree.kind == "row":
        heaps, (_, place), (_, number) = tree.fields
        lists = build(dict(heaps[1].fields)["value"] if is_a(heaps[1], Record) else heaps[1])
        found = build(number)
        return None if found is None else lists[place][found]  # None: in a row that no path has filled, nobody has it
    if tree.kind == "heaps" and not tree.fields:
        return built["heaps"]
    if tree.kind == "heaps":
        made_rows: list[list[Any]] = []
        for _, rows in tree.fields:
            held = dict(rows.fields)
            made_rows.append([_empty_row(held["item"], classes) for _ in values[held["arrays"][0].index]])
        built["heaps"] = made_rows  # rows may refer to each other
        keyed: list[tuple[Any, Keyed]] = []
        for (_, rows), empty in zip(tree.fields, made_rows):
            for one, row in zip(empty, _rows(_of_parts(rows), values, classes, build, built)):
                if is_a(row, Keyed):
                    keyed.append((one, row))
                else:
                    _fill_row(one, row)
        for one, row in keyed:  # now that there are the lists of their keys and values
            row.fill(one)
        return made_rows
    if tree.kind == "hung":
        (_, tensor), (_, attributes) = tree.fields
        made = built[id(tree)] = build(tensor)
        for name, held in attributes.items():
            if (item := build(held)) is not MISSING:
                setattr(made, name, item)
        return made
    if tree.kind == "retaining":
        made = built[id(tree)] = build(tree.fields[0][1])
        if build(tree.fields[1][1]):
            made.retain_grad()
        return made
    if tree.kind in ("numpy array", "numpy scalar"):
        memory = build(tree.fields[0][1])  # one tensor is one array, in lists that grew, too
        if memory is None:  # in a row that no path has filled
            return None
        arrays = built.setdefault("arrays", {})
        if (tree.kind, id(memory)) not in arrays:
            array = memory.detach().numpy()
            arrays[tree.kind, id(memory)] = memory, array[()].copy() if tree.kind == "numpy scalar" else array
        return arrays[tree.kind, id(memory)][1]
    if tree.kind == "growing tuple":
        return tuple(build(tree.fields[0][1]))
    if tree.kind == "growing deque":
        return collections.deque(build(tree.fields[1][1]), tree.fields[0][1])
    if tree.kind == "deque":
        return collections.deque((build(item) for _, item in tree.fields[1:]), tree.fields[0][1])
    if tree.kind.endswith(" instance"):
        maxlen, attributes, content = (build(item) for _, item in tree.fields)
        return _of_class(classes[tree.type_name], maxlen, attributes, content)
    collection = _COLLECTIONS.get(tree.kind)
    if collection is not None:
        return collection(build(item) for _, item in tree.fields)
    if tree.kind == "again":
        return built[("function", tree.fields[0][1])]
    if tree.kind == "function":
        return _build_function(tree, classes[tree.type_name], build, built)
    if tree.kind == "cell":
        return types.CellType()
    if tree.kind in remaking.REMADE:
        return remaking.remake(tree.kind, classes[tree.type_name], {key: build(item) for key, item in tree.fields})
    keys, items = tree.fields[0][1], tuple(build(item) for _, item in tree.fields[1:])
    if tree.kind == "defaultdict":
        return classes[tree.type_name](zip(keys, items))
    if tree.kind in ("instance", _PARTS):
        result = object.__new__(classes[tree.type_name])
        for key, item in zip(keys, items):
            if item is not MISSING:
                object.__setattr__(result, key, item)
        return result.whole() if is_a(result, Keyed) and tree.kind != _PARTS else result
    return structure.rebuild_fields(classes[tree.type_name], tuple(keys), items)


def _rows(
    tree: Record, values: Sequence[Any], classes: dict[str, Any], build: Callable[[Any], Any], built: dict[Any, Any]
) -> Iterator[Any]:
    """The items of a list that grew."""
    fields, arrays = dict(tree.fields), built.setdefault("arrays", {})
    for row in map(list, zip(*(values[leaf.index] for leaf in fields["arrays"]))):
        yield build_tree(_with_leaves(fields["item"], row, build), row, classes, {"arrays": arrays})


_PARTS = "instance of parts"
"""A dict or set of numbers of the run as the lists that stand for it."""


def _of_parts(rows: Record) -> Record:
    """The tree of rows, in which such dicts and sets stay these lists."""
    (arrays, (name, item)) = rows.fields
    if not is_a(item, Record) or item.kind != "instance":
        return rows
    return Record(rows.kind, rows.type_name, (arrays, (name, Record(_PARTS, item.type_name, item.fields))))


def _empty_row(item: Any, classes: dict[str, Any]) -> Any:
    """A list, dict or object that is a row, before it holds anything; ``item``: the tree of what it will hold."""
    if type(item) is dict:
        return {}
    if not is_a(item, Record) or item.kind != "instance":
        return []
    cls = classes[item.type_name]
    return cls.stands_for() if issubclass(cls, Keyed) else object.__new__(cls)


def _fill_row(made: Any, row: Any) -> None:
    if is_a(made, list):
        made += row
    elif is_a(made, dict):
        made.update(row)
    else:
        for name, held in objects.attributes(row).items():
            object.__setattr__(made, name, held)


def _build_function(tree: Record, template: Any, build: Callable[[Any], Any], built: dict[Any, Any]) -> Any:
    """A function of a call's own; its cells are filled once it exists, as they may refer to it."""
    fields = dict(tree.fields)
    empty = [cell for cell in fields["cells"] if id(cell) not in built]
    cells = tuple(map(build, fields["cells"]))
    made = built[("function", fields["number"])] = built[id(tree)] = remaking.with_cells(template, cells)
    for part, cell in zip(fields["cells"], cells):
        if part in empty and part.kind == "cell":
            for _, content in part.fields:
                cell.cell_contents = build(content)
    made.__defaults__, made.__kwdefaults__ = build(fields["defaults"]), build(fields["kwdefaults"])
    made.__dict__.update(build(fields["attributes"]))
    return made


def _of_class(cls: Any, maxlen: int | None, attributes: dict[str, Any], content: Any) -> Any:
    """A container of a user's class, whose own methods have nothing to say about what it holds."""
    made = cls.__new__(cls)
    if is_a(made, collections.deque):
        collections.deque.__init__(made, (), maxlen)
    Place("content", made).set(content)
    for name, held in attributes.items():
        if held is not MISSING:
            object.__setattr__(made, name, held)
    return made


_COLLECTIONS: dict[str, Any] = {"size": torch.Size, "set": set, "frozenset": frozenset}


def _with_leaves(tree: Any, row: list[Any], build: Callable[[Any], Any]) -> Any:
    """The tree of one item of a list that grew, with the positions in its row as leaves.

    What is the same object in all items that hold it is built by ``build``, and added to the row.
    """
    if is_a(tree, Record):
        if tree.kind == "column":
            return Leaf(dict(tree.fields)["index"])
        if tree.kind == "known":
            row.append(build(tree.fields[0][1]))
            return Leaf(len(row) - 1)
        if tree.kind == "growing":  # its columns are those of its own items
            arrays, item = (part for _, part in tree.fields)
            leaves_ = tuple(_with_leaves(array, row, build) for array in arrays)
            return Record("growing", "", (("arrays", leaves_), ("item", _with_known(item, row, build))))
        fields = tuple((name, _with_leaves(item, row, build)) for name, item in tree.fields)
        return Record(tree.kind, tree.type_name, fields)
    if type(tree) in (list, tuple):
        return type(tree)(_with_leaves(item, row, build) for item in tree)
    if type(tree) is dict:
        return {key: _with_leaves(item, row, build) for key, item in tree.items()}
    return tree


def _with_known(tree: Any, row: list[Any], build: Callable[[Any], Any]) -> Any:
    """The tree of an item of a list inside, with the place in the row of what is the same object in all of them."""
    if is_a(tree, Record):
        if tree.kind == "known":
            return Record("known", "", (("value", _with_leaves(tree, row, build)),))
        fields = tuple((name, _with_known(part, row, build)) for name, part in tree.fields)
        return Record(tree.kind, tree.type_name, fields)
    if type(tree) in (list, tuple):
        return type(tree)(_with_known(part, row, build) for part in tree)
    if type(tree) is dict:
        return {key: _with_known(part, row, build) for key, part in tree.items()}
    return tree


__all__ = ["build_tree"]
