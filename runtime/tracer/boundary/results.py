"""Results: from the values a traced function returns to an output tree, and from the tree to each call's result.

A tree says how to build: what was made inside the function is made anew at every call, what existed before is the
caller's own object.
"""

from __future__ import annotations

import collections
import contextvars
import dataclasses
import enum
import functools
import io
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch

from runtime import torch_internals
from runtime.ir import Location, Variable, leaves
from runtime.ir.tree import Leaf, Record
from runtime.tracer.ambient import objects
from runtime.tracer.memory import aliases, hung
from runtime.tracer.memory.storage_table import Storage, TensorInfo, ViewStep
from runtime.tracer.numbers.scalars import Staged
from runtime.tracer.numbers.staged_size import StagedSize
from runtime.tracer.python_state.ages import existed_before
from runtime.tracer.python_state.journal import MISSING, Place, python_kind
from runtime.tracer.recording import gradients
from runtime.tracer.recording.interceptor import History
from runtime.tracer.recording.session import Session
from runtime.tracer.values import containers, holding, remaking, same_object, structure
from runtime.tracer.values.arguments import Path
from runtime.tracer.values.heaps import Heap
from runtime.tracer.values.identities import Identity
from runtime.tracer.values.tables import Table


@dataclass
class ViewOutput:
    """A result that is an argument, or a view of one that the Program writes: rebuilt from the caller's tensor."""

    source: Variable
    steps: tuple[ViewStep, ...]


class Outputs:
    """Collects the flat yields of the main Block while output trees are made."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.values: list[Any] = []
        self.classes: dict[str, Any] = {}
        """By name: the classes that Records name, and objects that are returned as they are."""
        self.views: dict[int, ViewOutput] = {}
        self.same: dict[int, Path] = {}
        """By identity of a subtree: the argument that it stands for."""
        self.kept: dict[int, Any] = {}
        """By identity of a subtree: the container from before the trace that it stands for."""
        self.location: Location | None = None
        """Where the value whose tree is made was stored, for errors; None for what the function returns."""
        self._starts: dict[Variable, Location | None] | None = None
        self._tensors: dict[int, tuple[torch.Tensor, Leaf | Record]] = {}
        self._containers: dict[int, tuple[Any, Any]] = {}
        self._yielded: dict[Variable, tuple[torch.Tensor, bool]] = {}
        """For the Variables of results made inside: the first tensor that has it, and whether something hangs on it."""
        self._heaps: Record | None = None
        """The tree of what lists hold that others hold by reference."""
        self._around: list[Any] = []
        """The containers whose trees are being made, outer first."""
        self._values: dict[tuple[type, bool], list[Any]] = {}
        """Tuples and the like, by class and whether a join made them."""
        self._in_making: dict[int, int] = {}
        """Functions that the trace made, by identity, with their numbers."""

    def pin(self, written: Iterable[Any]) -> None:
        """Guard what leaves by identity, and what is written, as the very objects."""
        for value in (*self.classes.values(), *self.kept.values(), *written):
            self.session.guards.pin(value)
            if isinstance(value, memoryview):
                self.session.guards.pin(value.obj)

    def leaf(self, operand: Any) -> Leaf:
        """A yield."""
        self.values.append(operand)
        return Leaf(len(self.values) - 1)

    def tree(self, value: Any) -> Any:
        """The output tree of a value.

        Errors raised: TraceError (D2S228) for an iterator, or an object that holds values of the trace where no call
        could put its own.
        """
        if structure.is_plain(value) and id(value) not in self.session.externals:
            return value
        if isinstance(value, torch.Tensor):
            return self._tensor(value)
        if isinstance(value, (Staged, torch.SymInt, torch.SymFloat, torch.SymBool)):
            return self.leaf(self.session.operand(value))
        if isinstance(value, structure.Choice):
            fields = [("selector", self.leaf(self.session.operand(value.selector)))]
            fields += [(f"option{index}", self.tree(option)) for index, option in enumerate(value.options)]
            return Record("choice", "", tuple(fields))
        if value is MISSING:
            return Record("missing", "", ())
        if isinstance(value, Identity):
            value.refuse()
        if isinstance(value, History):
            value.refuse("the node")
        known = self._containers.get(id(value))
        if known is None:
            if any(one is value for one in self._around):
                if id(value) in self._in_making:
                    return Record("again", "", (("number", self._in_making[id(value)]),))
                raise self.session.error(
                    f"a {type(value).__name__} that holds itself is returned, or stored outside the function",
                    hint="Return its parts, and put them together outside.", code="D2S228", location=self.location)
            self._around.append(value)
            known = self._containers[id(value)] = (value, self._that_it_is(value, self._container(value)))
            self._around.pop()
            self._note_owner(value, known[1])
        return known[1]

    def _that_it_is(self, value: Any, tree: Any) -> Any:
        """The tree of a tuple that on some paths is another one: there it is that one's."""
        session = self.session
        if structure.is_container(value) or id(value) in session.externals:
            return tree
        joined, kind = same_object.is_joined(session, value), type(value)
        others = list(self._values.get((kind, True), ()))
        self._values.setdefault((kind, joined), []).append(value)
        if joined:
            others += self._values.get((kind, False), ())
            others += (owner for owner, _ in session.externals.values() if type(owner) is kind)
        options, selector = [tree], cast("Any", 0)
        for other in others:
            if same_object.may_be_one(session, value, other) not in ("same", "open"):
                continue
            flag = same_object.identical(session, value, other)
            if flag is True:
                return self.tree(other)
            selector = session.scalar("select", flag, len(options), selector)
            options.append(self.tree(other))
        if len(options) > 1:
            chosen = ("selector", self.leaf(session.operand(selector)))
            return Record("choice", "", (chosen, *((f"option{number}", one) for number, one in enumerate(options))))
        return tree

    def _note_owner(self, value: Any, tree: Any) -> None:
        """A container from before the trace is returned as what it is."""
        external = self.session.externals.get(id(value))
        if external is None or (isinstance(tree, Record) and tree.kind in ("frozenset", "size")):
            return
        if type(value) is tuple and not value:
            return
        if external[1] is not None:
            self.same[id(tree)] = external[1]
        else:
            self.kept[id(tree)] = value

    def _tensor(self, value: torch.Tensor) -> Leaf | Record:
        session = self.session
        value = session.itself(value)
        if id(value) in self._tensors:
            return self._tensors[id(value)][1]
        if any(one is value for one in self._around):
            hung.require_none(session, value, "which leads to the tensor again, leaves the converted function")
        leaf = self.leaf(session.read(value))
        info = session.info(value)
        origin = info.storage.origin
        own = session.inputs.own_variable(value)
        if own is None and origin is None:
            self._require_no_start(value, info)
        if own is not None:
            self.views[leaf.index] = ViewOutput(own, ())
        elif origin is not None and not _has_variables(info.steps):
            self.views[leaf.index] = ViewOutput(origin, info.steps)
        elif origin is not None and info.storage.value is not origin:
            raise session.error(
                "a view, at a position that is only known while the Program runs, of an argument "
                "that is written in place is returned",
                hint="Return a .clone() of it.",
                code="D2S224",
            )
        tree = leaf if own is not None or origin is not None else self._on_its_path(info, leaf)
        if own is None:
            tree = self._with_attributes(value, tree)
        self._tensors[id(value)] = (value, tree)
        return tree

    def _with_attributes(self, value: torch.Tensor, tree: Leaf | Record) -> Leaf | Record:
        """The tree of a tensor made inside with what hangs on it, which each run hangs on its own."""
        session = self.session
        var, names = session.read(value), hung.names(session, value)
        alone = self._yielded.setdefault(var, (value, bool(names)))
        if (names or alone[1]) and alone[0] is not value:
            hung.require_none(session, value if names else alone[0], "is another name for a result, and leaves")
        if any(hung.names(session, one) for one, _ in session.hung.values()):
            for storage in hung.others(session, value):
                for one, _ in list(session.hung.values()):
                    if one is value or session.info(one).storage is storage:
                        hung.require_none(session, one, "is another one on some path, and leaves the function")
        if not names:
            return tree
        self._around.append(value)
        held = {name: self.tree(value.__dict__[name]) for name in names}
        self._around.pop()
        return Record("hung", "", (("tensor", tree), ("attributes", held)))

    def _on_its_path(self, info: TensorInfo, leaf: Leaf) -> Leaf | Record:
        """The tree of a tensor that is the caller's on some paths: there the caller's own is returned.

        Where nothing was written, the yield is that tensor anyway.
        """
        session = self.session
        found, reached = aliases.few_roots(info, ())
        written = [root for root in found if is_written(root.storage)]
        if not written and not any(map(is_written, reached)):
            return leaf
        if any(step.detaches for root in written for step in root.steps):  # its memory, with a history of its own
            return leaf
        if reached or any(root.pending or _has_variables(root.steps) for root in written):
            raise session.error(
                "a tensor is returned that may be a view of an argument that is written in place, in a way that only "
                "a run knows", hint="Return a .clone() of it.", code="D2S224", location=self.location)
        selector: Any = 0
        options = [leaf]
        for root in written:
            options.append(self.leaf(self.values[leaf.index]))
            shown = session.inputs.shown_by(root.storage, root.steps)
            assert root.storage.origin is not None
            self.views[options[-1].index] = (
                ViewOutput(root.storage.origin, root.steps) if shown is None else ViewOutput(shown, ()))
            flag = root.when.staged(session)
            number = len(options) - 1
            selector = number if flag is True else session.scalar("select", flag, number, selector)
        chosen = ("selector", self.leaf(session.operand(selector)))
        return Record("choice", "", (chosen, *((f"option{number}", one) for number, one in enumerate(options))))

    def _require_no_start(self, value: torch.Tensor, info: TensorInfo) -> None:
        """Refuse a leaf made inside: a caller who has it expects its ``.grad``, and no gradient ends there.

        Raises:
            TraceError: D2S228.
        """
        if self._starts is None:
            self._starts = gradients.starts(self.session)
        parameter = isinstance(value, torch.nn.Parameter)
        if not parameter and (info.steps or info.storage.value not in self._starts):
            return
        what = "a Parameter" if parameter else "a tensor that requires_grad_() made the start of a graph"
        raise self.session.error(
            f"{what} is made inside a converted function, which {'returns' if self.location is None else 'keeps'} it: "
            "no backward outside would find its gradient", code="D2S228",
            location=self.location or self._starts.get(info.storage.value),
            hint="Make it outside and pass it in, or return x.detach() of it.")  # fmt: skip

    def _container(self, value: Any) -> Any:
        """The tree of anything that is no tensor, number or constant."""
        row = structure.row_of(value)
        if row is not None:
            return self._row(row.heap, self.leaf(self.session.operand(row.number)))
        choice = containers.several(value)
        if choice is not None:
            return self.tree(choice)
        grown = structure.growing(value) if isinstance(value, (list, tuple, collections.deque)) else None
        if grown is not None and type(value) in (list, tuple, structure.ListContent, collections.deque):
            items = self._growing(grown)
            if type(value) is tuple:
                return Record("growing tuple", "", (("items", items),))
            return Record("growing deque", "", (("maxlen", value.maxlen), ("items", items))) if isinstance(
                value, collections.deque) else items  # fmt: skip
        if type(value) in (list, structure.ListContent):
            return [self.tree(item) for item in value]
        if type(value) is tuple:
            return tuple(self.tree(item) for item in value)
        if type(value) in (dict, structure.DictContent):
            if not all(map(_is_lasting, value)):
                keys, items = self.tree(tuple(value)), self.tree(tuple(value.values()))
                return Record("pairs", self._name(dict, _name_of(dict)), (("keys", keys), ("items", items)))
            return {key: self.tree(item) for key, item in value.items()}
        if isinstance(value, StagedSize):
            return self._items("size", value)
        if type(value) in (set, frozenset):
            return self._items(type(value).__name__, value)
        if type(value) is collections.deque:
            return Record("deque", "", (("maxlen", value.maxlen), *self._items("", value).fields))
        if type(value) is collections.defaultdict and all(map(_is_lasting, value)):
            make: Any = functools.partial(collections.defaultdict, value.default_factory)
            name = self._name(make, f"collections.defaultdict of {value.default_factory}")
            return self._record("defaultdict", name, tuple(value), tuple(value.values()))
        if structure.is_container(value) and self._made_inside(value):
            made = self._of_users_class(value)
            if made is not None:
                return made
        fields = structure.field_items(value)
        if fields is not None and _is_only_fields(value, fields[0]) and (
                isinstance(value, (tuple, dict)) or self._is_taken_apart(value)):
            keys, items = fields
            kind = "namedtuple" if isinstance(value, tuple) else "mapping" if isinstance(value, dict) else "dataclass"
            if isinstance(value, structure.BOUND):
                return self._record("method", self._name(type(value), _name_of(type(value))), keys, items)
            if kind == "dataclass":
                extra = [(key, item) for key, item in objects.attributes(value).items() if key not in keys]
                keys, items = (*keys, *(key for key, _ in extra)), (*items, *(item for _, item in extra))
            return self._record(kind, self._name(type(value), _name_of(type(value))), keys, items)
        return self._object(value)

    def _of_users_class(self, value: Any) -> Record | None:
        """The tree of a container of a class derived from Python's own; None for a dict that is its items alone."""
        attributes, base = objects.attributes(value), python_kind(value)
        if issubclass(base, dict):
            if not attributes and all(map(structure.is_plain, value)):
                return None
            base = dict
            if isinstance(value, collections.defaultdict):
                return None  # it has a factory as well
        fields = (
            ("maxlen", value.maxlen if isinstance(value, collections.deque) else None),
            ("attributes", {name: self.tree(held) for name, held in attributes.items()}),
            ("content", self.tree(containers.content(value))),
        )
        return Record(f"{base.__name__} instance", self._name(type(value), _name_of(type(value))), fields)

    def _object(self, value: Any) -> Any:
        if isinstance(value, torch.nn.Module) and id(value) in self.session.created and self.location is not None:
            if any(map(torch_internals.is_fake, (*value.parameters(), *value.buffers()))):
                self._refuse(f"a {type(value).__name__} made inside, with its tensors")
            for module in value.modules():
                self.session.journal.keep(module)  # one and the same from now on
        elif not remaking.is_fixed(value) and self._made_inside(value):
            return self._made(value)
        return Record("object", self._name(value, f"object {len(self.classes)} {_name_of(type(value))}"), ())

    def _made(self, value: Any) -> Any:
        """The tree of an object that the trace made: each call makes its own."""
        self._note_class(type(value))
        if objects.is_simple(type(value)) or isinstance(value, torch.nn.Module):
            attributes = objects.attributes(value)
            name = self._name(type(value), _name_of(type(value)))
            return self._record("instance", name, tuple(attributes), tuple(attributes.values()))
        if isinstance(value, types.FunctionType):
            return self._function(value)
        if isinstance(value, types.CellType):
            held = [("content", self.tree(content)) for content in _content_of(value)]
            return Record("cell", _name_of(types.CellType), tuple(held))
        if isinstance(value, contextvars.Token):
            self._refuse("a token of a context variable, which could be used only once")
        if isinstance(value, Iterator) and not isinstance(value, io.IOBase):
            self._refuse(f"an iterator ({type(value).__name__}), which could be used only once")
        parts = remaking.parts_of(value)
        if parts is None:
            return self._for_one_call(value)
        name = self._name(parts.named, f"{parts.kind} {len(self.classes)} {_name_of(type(value))}")
        return Record(parts.kind, name, tuple((key, self.tree(item)) for key, item in parts.items.items()))

    def _function(self, value: types.FunctionType) -> Record:
        """The tree of a function that the trace made; what it closes over may lead to it again."""
        number = self._in_making[id(value)] = len(self._in_making)
        name = self._name(remaking.without_values(value), f"{value.__name__} {len(self.classes)} builtins.function")
        given = {
            "defaults": value.__defaults__, "kwdefaults": value.__kwdefaults__, "attributes": dict(value.__dict__),
            "cells": value.__closure__ or (),
        }  # fmt: skip
        return Record("function", name, (("number", number), *((key, self.tree(item)) for key, item in given.items())))

    def _for_one_call(self, value: Any) -> Record:
        """An object that nobody can make anew is given as it is, by a Program for this call alone."""
        if holding.leads_to_traced(value):
            self._refuse(f"a {type(value).__name__} that holds tensors or numbers of the Program")
        self.session.once(f"a {type(value).__name__} that is made inside is returned")
        self.session.journal.keep_made()
        return Record("object", self._name(value, f"object {len(self.classes)} {_name_of(type(value))}"), ())

    def _note_class(self, cls: type) -> None:
        """Each call has classes of its own where they are made inside: then so are the Programs."""
        if "<locals>" in cls.__qualname__ and existed_before(self.session, cls) is not True:
            self.session.once(f"an instance of {cls.__name__}, which is made inside, is returned")

    def _is_taken_apart(self, value: Any) -> bool:
        external = self.session.externals.get(id(value))
        return self._made_inside(value) or (external is not None and external[1] is not None)

    def _made_inside(self, value: Any) -> bool:
        if id(value) not in self.session.externals and holding.holds_traced(value):
            return True
        existed = existed_before(self.session, value)
        if existed is None:  # given as it is, which is right for a Program of this call alone
            if self._holds_what_is_made(value):
                self._refuse(f"a {type(value).__name__} that something else refers to, and that holds values of the "
                             "Program")
            self.session.once(f"nothing tells whether a {type(value).__name__} it gives was there before the call")
            self.session.journal.keep_made()
        return existed is False

    def _holds_what_is_made(self, value: Any) -> bool:
        """Whether an object leads to tensors or numbers of the trace, other than by stores that each run repeats."""
        stored = self.session.journal.frames[0]
        now = [(place, place.get()) for place in stored if id(place.owner) in self.session.externals]
        for place, _ in reversed(now):
            place.set(stored[place])
        try:
            return holding.leads_to_traced(value)
        finally:
            for place, content in now:
                place.set(content)

    def _refuse(self, what: str) -> None:
        raise self.session.error(
            f"the function returns {what}", code="D2S228",
            hint="Return tensors, numbers and strings, in lists, tuples, dicts, dataclasses or plain objects.",
        )  # fmt: skip

    def _items(self, kind: str, value: Any) -> Record:
        return Record(kind, "", tuple((f"item{index}", self.tree(item)) for index, item in enumerate(value)))

    def _record(self, kind: str, name: str, keys: tuple[Any, ...], items: tuple[Any, ...]) -> Record:
        trees = [
            (str(key) if str(key).isidentifier() else f"field{index}", self.tree(item))
            for index, (key, item) in enumerate(zip(keys, items))
        ]
        return Record(kind, name, (("keys", tuple(keys)), *trees))

    def _name(self, value: Any, name: str) -> str:
        """Keep a class or object under its name; another of the same name gets a number."""
        candidate, number = name, 2
        while self.classes.setdefault(candidate, value) is not value:
            candidate, number = f"{name} ({number})", number + 1
        return candidate

    def _rows(self, heap: Heap | Table) -> Any:
        """The tree of all rows of a heap or table: a list that grew, of what each row holds."""
        if isinstance(heap, Heap):
            return self.tree(heap.held)
        tree = self._growing(heap.whole())
        if heap.cls is dict:
            return tree
        self._note_class(heap.cls)
        arrays, (_, item) = tree.fields
        name = self._name(heap.cls, f"{_name_of(heap.cls)} row")  # after loading, what can be changed stands for it
        return Record(tree.kind, "", (arrays, ("item", Record("instance", name, item.fields))))

    def _row(self, heap: Heap | Table, number: Any) -> Record:
        """The tree of a row of a heap or table; each run makes all rows of all of them once, as they may refer to each
        other."""
        filled = [one for one in self.session.heaps.values() if one.held]
        if self._heaps is None:
            self._heaps = Record("heaps", "", ())  # what the trees of the rows refer to
            rows = [(f"heap{place}", self._rows(one)) for place, one in enumerate(filled)]
            self._heaps = Record("heaps", "", tuple(rows))
        lists = Record("known", "", (("value", self._heaps),))
        return Record("row", "", (("heaps", lists), ("heap", filled.index(heap)), ("number", number)))

    def _growing(self, grown: structure.Growing) -> Any:
        """The tree of a list whose length is only known at run time."""
        arrays = [self.leaf(self.session.require_visible(var, "a list")) for var in grown.variables]

        def of_items(item: structure.Structure) -> Any:
            count = iter(range(structure.width(item)))
            return columns(item, lambda: Record("column", "", (("index", next(count)),)))

        def columns(item: structure.Structure, column: Callable[[], Record]) -> Any:
            if isinstance(item, structure.Known):
                tree = self.tree(item.value)
                whole = isinstance(tree, (Leaf, Record, list, tuple, dict))
                return Record("known", "", (("value", tree),)) if whole else tree
            if isinstance(item, (structure.Number, structure.Tensor)):
                return column()
            if isinstance(item, structure.Reference):
                return self._row(item.heap, column())
            if isinstance(item, structure.Sequence):
                return item.kind(columns(inner, column) for inner in item.items)
            if isinstance(item, structure.Options) and not item.options:  # there never is an item
                column()
                return None
            if isinstance(item, structure.Options):
                selector = ("selector", column())
                options = [(f"option{index}", columns(inner, column)) for index, inner in enumerate(item.options)]
                return Record("choice", "", (selector, *options))
            if isinstance(item, structure.Fields):
                if item.cls is dict:
                    return {key: columns(inner, column) for key, inner in zip(item.keys, item.items)}
                kind = "namedtuple" if issubclass(item.cls, tuple) else "dataclass"
                fields = [(f"field{index}", columns(inner, column)) for index, inner in enumerate(item.items)]
                return Record(kind, self._name(item.cls, _name_of(item.cls)), (("keys", tuple(item.keys)), *fields))
            assert isinstance(item, structure.Array)
            own = tuple(column() for _ in range(structure.width(item)))
            inner = Record("growing", "", (("arrays", own), ("item", of_items(item.item))))
            return Record("growing tuple", "", (("items", inner),)) if item.kind is tuple else inner

        return Record("growing", "", (("arrays", tuple(arrays)), ("item", of_items(grown.item))))


def build_tree(tree: Any, values: Sequence[Any], classes: dict[str, Any], built: dict[Any, Any] | None = None) -> Any:
    """The caller's result from an output tree and the flat yields.

    ``built`` holds the containers that exist already, by identity of their subtree: one subtree is one object.
    """
    built = {} if built is None else built
    if isinstance(tree, Leaf):
        return values[tree.index]
    if type(tree) in (list, tuple, dict) or isinstance(tree, Record):
        if id(tree) not in built:
            built[id(tree)] = _build_container(tree, values, classes, built)
        return built[id(tree)]
    return tree


def _build_container(tree: Any, values: Sequence[Any], classes: dict[str, Any], built: dict[Any, Any]) -> Any:
    def build(part: Any) -> Any:
        return build_tree(part, values, classes, built)

    if type(tree) in (list, tuple):
        return type(tree)(map(build, tree))
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
        return list(_rows(tree, values, classes, build))
    if tree.kind == "row":
        heaps, (_, place), (_, number) = tree.fields
        lists = build(dict(heaps[1].fields)["value"] if isinstance(heaps[1], Record) else heaps[1])
        return lists[place][build(number)]
    if tree.kind == "heaps" and not tree.fields:
        return built["heaps"]
    if tree.kind == "heaps":
        made_rows: list[list[Any]] = []
        for _, rows in tree.fields:
            held = dict(rows.fields)
            made_rows.append([_empty_row(held["item"], classes) for _ in values[held["arrays"][0].index]])
        built["heaps"] = made_rows  # rows may refer to each other
        for (_, rows), empty in zip(tree.fields, made_rows):
            for one, row in zip(empty, _rows(rows, values, classes, build)):
                _fill_row(one, row)
        return made_rows
    if tree.kind == "hung":
        (_, tensor), (_, attributes) = tree.fields
        made = built[id(tree)] = build(tensor)
        for name, held in attributes.items():
            if (item := build(held)) is not MISSING:
                setattr(made, name, item)
        return made
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
    if tree.kind == "instance":
        result = object.__new__(classes[tree.type_name])
        for key, item in zip(keys, items):
            if item is not MISSING:
                object.__setattr__(result, key, item)
        return result
    return structure.rebuild_fields(classes[tree.type_name], tuple(keys), items)


def _rows(
    tree: Record, values: Sequence[Any], classes: dict[str, Any], build: Callable[[Any], Any]
) -> Iterator[Any]:
    """The items of a list that grew."""
    fields = dict(tree.fields)
    for row in map(list, zip(*(values[leaf.index] for leaf in fields["arrays"]))):
        yield build_tree(_with_leaves(fields["item"], row, build), row, classes)


def _empty_row(item: Any, classes: dict[str, Any]) -> Any:
    """A list, dict or object that is a row, before it holds anything; ``item``: the tree of what it will hold."""
    if type(item) is dict:
        return {}
    keyed = isinstance(item, Record) and item.kind == "instance"
    return object.__new__(classes[item.type_name]) if keyed else []


def _fill_row(made: Any, row: Any) -> None:
    if isinstance(made, list):
        made += row
    elif isinstance(made, dict):
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
    if isinstance(made, collections.deque):
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
    if isinstance(tree, Record):
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
    if isinstance(tree, Record):
        if tree.kind == "known":
            return Record("known", "", (("value", _with_leaves(tree, row, build)),))
        fields = tuple((name, _with_known(part, row, build)) for name, part in tree.fields)
        return Record(tree.kind, tree.type_name, fields)
    if type(tree) in (list, tuple):
        return type(tree)(_with_known(part, row, build) for part in tree)
    if type(tree) is dict:
        return {key: _with_known(part, row, build) for key, part in tree.items()}
    return tree


def is_written(storage: Storage) -> bool:
    """Whether memory of the caller was written."""
    return storage.origin is not None and storage.value is not storage.origin


def _has_variables(steps: tuple[ViewStep, ...]) -> bool:
    return any(True for step in steps for _ in _variables(step))


def _variables(step: ViewStep) -> Iterator[Variable]:
    yield from leaves(step.args)
    yield from leaves(dict(step.kwargs))


def _name_of(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


def _is_only_fields(value: Any, keys: tuple[Any, ...]) -> bool:
    """Whether a named tuple or a mapping has no attributes beside its items."""
    if not isinstance(value, (tuple, dict)) or isinstance(value, structure.DictContent):
        return True
    if dataclasses.is_dataclass(value):
        return True
    attributes = objects.attributes(value)
    return not attributes or isinstance(value, dict) and all(
        name in keys and value[name] is held for name, held in attributes.items())


def _content_of(cell: types.CellType) -> list[Any]:
    try:
        return [cell.cell_contents]
    except ValueError:
        return []


def _is_lasting(key: Any) -> bool:
    """Whether a key of a dict is the same one in every call."""
    return structure.is_plain(key) or isinstance(key, enum.Enum)


__all__ = ["Outputs", "ViewOutput", "build_tree"]
