"""Results: from the values that a traced function returns to an output tree.

The tree says how each call's result is built (``calling/results.py``): what was made inside the function is made anew
at every call, what existed before is the caller's own object.
"""

from __future__ import annotations

import collections
import contextvars
import enum
import functools
import io
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NoReturn, cast

import torch

from runtime import torch_internals
from runtime.ir import Location, Variable, leaves
from runtime.ir.template import KeyPath
from runtime.ir.tree import Leaf, Record
from runtime.ir.undefined import may_be_undefined
from runtime.ir.views import View
from runtime.kinds import is_a
from runtime.ops.keyed import Keyed, fields_of
from runtime.tracer.ambient import objects
from runtime.tracer.memory import aliases, cached_results, detached, host_memory, hung
from runtime.tracer.memory.conditions import NEVER
from runtime.tracer.memory.storage_table import RecordedStep, Storage, TensorInfo
from runtime.tracer.numbers.scalars import Staged
from runtime.tracer.numbers.staged_size import StagedSize
from runtime.tracer.python_state.ages import Ages
from runtime.tracer.python_state.journal import MISSING, Frame, Undefined, python_kind
from runtime.tracer.recording import gradients, hooked_tensors, leaf_gradients, nonwritable_views, used_up
from runtime.tracer.recording.session import Session
from runtime.tracer.values import containers, copied_items, holding, remaking, same_object, structure
from runtime.tracer.values.heaps import Heap
from runtime.tracer.values.numpy_arrays import NumpyArray, NumpyCopy, NumpyScalar
from runtime.tracer.values.tables import Table
from runtime.tracer.values.transient import Transient


class Outputs:
    """Collects the flat yields of the main Block while output trees are made."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.values: list[Any] = []
        self.classes: dict[str, Any] = {}
        """By name: the classes that Records name, and objects that are returned as they are."""
        self.views: dict[int, View] = {}
        self.same: dict[int, KeyPath] = {}
        """By identity of a subtree: the argument that it stands for."""
        self.kept: dict[int, Any] = {}
        """By identity of a subtree: the container from before the trace that it stands for."""
        self.location: Location | None = None
        """Where the value whose tree is made was stored, for errors; None for what the function returns."""
        self._starts: dict[Variable, Location | None] | None = None
        self._tensors: dict[int, tuple[torch.Tensor, Leaf | Record]] = {}
        self._leaving: list[tuple[TensorInfo, Storage | None]] = []
        """The tensors, with other memory that each was taken of."""
        self._containers: dict[int, tuple[Any, Any]] = {}
        self._yielded: dict[Variable, tuple[torch.Tensor, bool]] = {}
        """For the Variables of results made inside: the first tensor that has it, and whether something hangs on it."""
        self._heaps: Record | None = None
        """The tree of what lists hold that others hold by reference."""
        self._around: list[Any] = []
        """The containers whose trees are being made, outer first."""
        self._choices = 0
        """Inside of how many values that are one of several."""
        self._values: dict[tuple[type, bool], list[Any]] = {}
        """Tuples and the like, by class and whether a join made them."""
        self._ages = Ages(session, holding.holds_traced)
        self._in_making: dict[int, int] = {}
        """Functions that the trace made, by identity, with their numbers."""

    def pin(self, written: Iterable[Any]) -> None:
        """Guard what leaves by identity, and what is written, as the very objects."""
        for value in (*self.classes.values(), *self.kept.values(), *written):
            self.session.guards.pin(value)
            if is_a(value, memoryview):
                self.session.guards.pin(value.obj)

    def require_one_memory(self) -> None:
        """When all trees are made: what is one memory in eager is one here.

        Raises:
            TraceError: D2S222.
        """
        detached.require_one_memory(self.session, self._leaving)

    def leaf(self, operand: Any) -> Leaf:
        """A yield."""
        self.values.append(operand)
        return Leaf(len(self.values) - 1)

    def tree(self, value: Any) -> Any:
        """The output tree of a value.

        Errors raised: TraceError (D2S228) for an iterator, or an object that holds values of the trace where no call
        could put its own.
        """
        if structure.is_plain(value) and id(value) not in self.session.objects.externals:
            return value
        if is_a(value, torch.Tensor):
            return self._tensor(value)
        if id(value) in self.session.objects.given:
            return self._given(value)
        if is_a(value, (Staged, torch.SymInt, torch.SymFloat, torch.SymBool)):
            return self.leaf(self.session.operand(value))
        if is_a(value, structure.Choice):
            fields = [("selector", self.leaf(self.session.operand(value.selector)))]
            self._choices += 1
            fields += [(f"option{index}", self.tree(option)) for index, option in enumerate(value.options)]
            self._choices -= 1
            return Record("choice", "", tuple(fields))
        if value is MISSING or is_a(value, Undefined) and not self._around:  # an outer function's name, deleted
            return Record("missing", "", ())
        if is_a(value, Transient):
            value.leave()
        if id(value) in self.session.objects.generators:
            raise self.session.error(
                f"a {type(value).__name__} that the function makes is returned, or stored outside the function",
                hint="Make it outside, or return the numbers that it draws.", code="D2S228", location=self.location)
        known = self._containers.get(id(value))
        if known is None:
            cached_results.require_not_made_anew(self.session, value, "leaves the function")
            if not self._around:
                self._ages.look(value)
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
        if structure.is_container(value) or id(value) in session.objects.externals:
            return tree
        joined, kind = same_object.is_joined(session, value), type(value)
        others = list(self._values.get((kind, True), ()))
        self._values.setdefault((kind, joined), []).append(value)
        if joined:
            others += self._values.get((kind, False), ())
            others += (owner for owner, _ in session.objects.externals.values() if type(owner) is kind)
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
        external = self.session.objects.externals.get(id(value))
        if external is None or (is_a(tree, Record) and tree.kind in ("frozenset", "size")):
            return
        if type(value) is tuple and not value:
            return
        if external[1] is not None:
            self.same[id(tree)] = external[1]
        else:
            self.kept[id(tree)] = value

    def _read(self, value: torch.Tensor) -> Variable:
        """What a tensor holds.

        Errors raised: TraceError (D2S220): it is a part of what other paths do not have, and is taken of it here.
        """
        session = self.session
        block, before = session.scope.block, len(session.scope.block.ops)
        var = session.read(value)
        taken = block.ops[before:]
        if taken and self._choices and not may_be_undefined(block).isdisjoint(one for op in taken for one in op.inputs):
            raise session.error(
                "a part of a tensor that only some paths have leaves the function, in an object that they share",
                hint="Return the tensor, or a list of its parts.", code="D2S220", location=self.location)
        return var

    def _tensor(self, value: torch.Tensor) -> Leaf | Record:
        session = self.session
        value = session.itself(value)
        if id(value) in self._tensors:
            return self._tensors[id(value)][1]
        if any(one is value for one in self._around):
            hung.require_none(session, value, "which leads to the tensor again, leaves the converted function")
        info = session.info(value)
        nonwritable_views.require_returnable(session, info)
        cached_results.require_none(session, info, "leaves the function")
        origin = info.storage.origin
        own = session.inputs.own_variable(value)
        asked = origin is None and session.graph.used_up
        gone = NEVER if not asked else used_up.met_when(session, value, gradients.leaves(session))
        var = self._read(value)
        perhaps_root = own is None and origin is None and not gone.always and info.storage.aliases
        if perhaps_root and not session.call.known.listed:  # where that is known, reading it has taken it of that
            var = aliases.of_roots(session, info, var, session.type_of(session.fake(value)))
        of = None
        if own is None and origin is None and info.storage.dependents:
            var, of = detached.of_detached(session, info, var, session.type_of(session.fake(value)))
        self._leaving.append((info, of))
        if not gone.never:
            var = used_up.returned(session, value, var, gone, gradients.leaves(session))
        leaf = self.leaf(var)
        if own is None and origin is None:
            self._require_no_start(value, info)
            hooked_tensors.require_no_hook(session, value)
            leaf_gradients.require_none(session, value)
        if own is not None:
            self.views[leaf.index] = View(own, ())
        elif origin is not None and not _has_variables(info.steps):
            self.views[leaf.index] = _view(origin, info.steps)
        elif origin is not None and info.storage.value is not origin:
            raise session.error(
                "a view, at a position that is only known while the Program runs, of an argument "
                "that is written in place is returned",
                hint="Return a .clone() of it.",
                code="D2S224",
            )
        tree = leaf if own is not None or origin is not None else self._on_its_path(info, leaf)
        if own is None:
            tree = self._or_earlier(value, tree)
        if own is None:
            tree = self._with_attributes(value, tree)
        self._tensors[id(value)] = (value, tree)
        return tree

    def _with_attributes(self, value: torch.Tensor, tree: Leaf | Record) -> Leaf | Record:
        """The tree of a tensor made inside with what hangs on it, which each run hangs on its own."""
        session = self.session
        hung.require_told(session, value, "leaves the function")
        var, names = session.read(value), hung.names(session, value)
        alone = self._yielded.setdefault(var, (value, bool(names)))
        if (names or alone[1]) and alone[0] is not value:
            hung.require_none(session, value if names else alone[0], "is another name for a result, and leaves")
        if any(hung.names(session, one) for one in hung.holders(session)):
            for storage in hung.others(session, value):
                for one in hung.holders(session):
                    if one is value or session.info(one).storage is storage:
                        hung.require_none(session, one, "is another one on some path, and leaves the function")
        if hung.RETAINS in names:
            names.remove(hung.RETAINS)
            flag = self.tree(hung.retains(session, value))
            tree = Record("retaining", "", (("tensor", tree), ("flag", flag)))
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
        if info.requires_grad and any(step.detaches for root in written for step in root.steps):
            return leaf  # its memory, with a history of its own
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
                _view(root.storage.origin, root.steps) if shown is None else View(shown, ()))
            flag = root.when.staged(session)
            number = len(options) - 1
            selector = number if flag is True else session.scalar("select", flag, number, selector)
        chosen = ("selector", self.leaf(session.operand(selector)))
        return Record("choice", "", (chosen, *((f"option{number}", one) for number, one in enumerate(options))))

    def _or_earlier(self, value: torch.Tensor, tree: Leaf | Record) -> Leaf | Record:
        """The tree of a tensor that on some paths is one whose tree was made before.

        There the earlier one's tree stands: what the Program gives may be two objects. A view of an argument is made
        anew of the caller's tensor, written memory is read anew for each name, and a copy is made where it is needed.
        """
        session = self.session
        options, selector = [tree], cast("Any", 0)
        for other, known in list(self._tensors.values()):
            if same_object.may_be_one(session, value, other) == "open":
                flag = same_object.identical(session, value, other)
                selector = session.scalar("select", flag, len(options), selector)
                options.append(known)
        if len(options) == 1:
            return tree
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
        if info.storage.value in self.session.graph.zero_gradients:
            what = "a zero gradient, which needs a gradient with materialize_grads=True and create_graph=True,"
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
        copied_items.leave_alone(self.session, value)
        choice = containers.several(value)
        if choice is not None:
            attributes = objects.attributes(value)
            if attributes and self._made_inside(value):  # those are the container's, whichever content it has
                parts: list[tuple[str, Any]] = [("selector", self.leaf(self.session.operand(choice.selector)))]
                options = (self._of_users_class(option, attributes) for option in choice.options)
                parts += [(f"option{index}", option) for index, option in enumerate(options)]
                return Record("choice", "", tuple(parts))
            return self.tree(choice)
        grown = structure.growing(value) if is_a(value, (list, tuple, collections.deque)) else None
        if grown is not None and type(value) in (list, tuple, structure.ListContent, collections.deque):
            items = self._growing(grown)
            if type(value) is tuple:
                return Record("growing tuple", "", (("items", items),))
            return Record("growing deque", "", (("maxlen", value.maxlen), ("items", items))) if is_a(
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
        if is_a(value, StagedSize):
            return _in_class(StagedSize, [self.tree(item) for item in value])
        if type(value) in (set, frozenset):
            return self._items(type(value).__name__, value)
        if type(value) is collections.deque:
            return Record("deque", "", (("maxlen", value.maxlen), *self._items("", value).fields))
        if type(value) is collections.defaultdict and all(map(_is_lasting, value)):
            name = self._factory(value.default_factory)
            return self._record("defaultdict", name, tuple(value), tuple(value.values()))
        if structure.is_container(value) and self._made_inside(value):
            made = self._of_users_class(value)
            if made is not None:
                return made
        if is_a(value, NumpyArray):
            return self._array(value)
        fields = structure.field_items(value)
        if fields is not None and _is_only_fields(value, fields[0]) and (
                is_a(value, (tuple, dict)) or self._is_taken_apart(value)):
            keys, items = fields
            kind = "namedtuple" if is_a(value, tuple) else "mapping" if is_a(value, dict) else "dataclass"
            if is_a(value, structure.BOUND):
                return self._record("method", self._name(type(value), _name_of(type(value))), keys, items)
            if kind == "dataclass":
                own = objects.attributes(value)  # a field of which the class has the default stays there
                named = dict(zip(keys, items))
                keys, items = tuple(own), tuple(named.get(key, item) for key, item in own.items())
            return self._record(kind, self._name(type(value), _name_of(type(value))), keys, items)
        return self._object(value)

    def _array(self, value: NumpyArray) -> Record:
        """The tree of an array of NumPy's, or a scalar: the tensor in whose memory it is."""
        if is_a(value, NumpyCopy):
            self._refuse_apart()
        return Record(_kind_of_array(type(value)), "", (("tensor", self.tree(value.tensor)),))

    def _refuse_apart(self) -> NoReturn:
        raise self.session.error(
            "a NumPy array with negative strides, or that may not be written, leaves the function", code="D2S213",
            hint="Return .copy() of it.", location=self.location)

    def _of_users_class(self, value: Any, attributes: dict[str, Any] | None = None) -> Record | None:
        """The tree of a container of a class derived from Python's own; None for a dict that is its items alone.

        ``attributes``: what it has by name, if not what ``value`` has.
        """
        attributes, base = objects.attributes(value) if attributes is None else attributes, python_kind(value)
        if issubclass(base, dict):
            if not attributes and all(map(structure.is_plain, dict.__iter__(value))):
                return None
            base = dict
            if is_a(value, collections.defaultdict):
                return None  # it has a factory as well
        fields = (
            ("maxlen", value.maxlen if is_a(value, collections.deque) else None),
            ("attributes", {name: self.tree(held) for name, held in attributes.items()}),
            ("content", self.tree(containers.content(value))),
        )
        return Record(f"{base.__name__} instance", self._name(type(value), _name_of(type(value))), fields)

    def _object(self, value: Any) -> Any:
        if not remaking.is_fixed(value) and self._made_inside(value):
            return self._made(value)
        return Record("object", self._name(value, f"object {len(self.classes)} {_name_of(type(value))}"), ())

    def _given(self, value: Any) -> Any:
        """Each call gives back what it was given."""
        known = self._containers.get(id(value))
        if known is None:
            name = self._name(value, f"object {len(self.classes)} {_name_of(type(value))}")
            known = self._containers[id(value)] = value, Record("object", name, ())
            self.same[id(known[1])] = self.session.objects.given[id(value)][1]
        return known[1]

    def _made(self, value: Any) -> Any:
        """The tree of an object that the trace made: each call makes its own."""
        self._note_class(type(value))
        host_memory.require_unshown(self.session, value)
        stands_for_another = is_a(value, tuple(remaking.stand_ins))
        simple = objects.is_simple(type(value)) and not stands_for_another
        self.session.journal.require_ordered(value, f"a {type(value).__name__} leaves the function")
        if simple or is_a(value, torch.nn.Module):
            attributes = objects.attributes(value)
            cls = type(value)
            if is_a(value, Keyed):  # a trace knows more of it
                cls, kept = fields_of(cls)
                attributes = {name: attributes[name] for name in kept}
            name = self._name(cls, _name_of(cls))
            return self._record("instance", name, tuple(attributes), tuple(attributes.values()))
        if is_a(value, types.FunctionType):
            return self._function(value)
        if is_a(value, types.CellType):
            held = [("content", self.tree(content)) for content in _content_of(value)]
            return Record("cell", _name_of(types.CellType), tuple(held))
        if is_a(value, torch_internals.KEEPERS):
            self._refuse(f"a {type(value).__name__} that is made inside, with its value of the trace")
        if is_a(value, contextvars.Token):
            self._refuse("a token of a context variable, which could be used only once")
        if is_a(value, Iterator) and not is_a(value, io.IOBase):
            self._refuse(f"an iterator ({type(value).__name__}), which could be used only once")
        parts = remaking.parts_of(value)
        if parts is None:
            return self._for_one_call(value)
        kind = parts.named if stands_for_another else type(value)
        name = self._name(parts.named, f"{parts.kind} {len(self.classes)} {_name_of(kind)}")
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
        if remaking.shows_memory(value):
            self._refuse(f"a {type(value).__name__} of memory that is made inside, and that others may have as well")
        self.session.once(f"a {type(value).__name__} that is made inside is returned")
        self.session.journal.keep_made()
        return Record("object", self._name(value, f"object {len(self.classes)} {_name_of(type(value))}"), ())

    def _note_class(self, cls: type) -> None:
        """Each call has classes of its own where they are made inside: then so are the Programs."""
        made = "<locals>" in cls.__qualname__ or id(cls) in self.session.code.given_classes
        if made and self._ages.existed_before(cls) is not True:
            self.session.once(f"an instance of {cls.__name__}, which is made inside, is returned")

    def _is_taken_apart(self, value: Any) -> bool:
        external = self.session.objects.externals.get(id(value))
        return self._made_inside(value) or (external is not None and external[1] is not None)

    def _made_inside(self, value: Any) -> bool:
        if id(value) not in self.session.objects.externals and holding.holds_traced(value):
            return True
        existed = self._ages.existed_before(value)
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
        now = Frame.of_now(place for place in stored if id(place.owner) in self.session.objects.externals)
        for place in reversed(now):
            place.set(stored[place])
        try:
            return holding.leads_to_traced(value)
        finally:
            for place, content in now.items():
                place.set(content)
            now.put_orders()

    def _refuse(self, what: str) -> None:
        raise self.session.error(
            f"the function returns {what}", code="D2S228",
            hint="Return tensors, numbers and strings, in lists, tuples, dicts, dataclasses or plain objects.",
        )  # fmt: skip

    def _items(self, kind: str, value: Any) -> Record:
        return _of_items(kind, [self.tree(item) for item in value])

    def _record(self, kind: str, name: str, keys: tuple[Any, ...], items: tuple[Any, ...]) -> Record:
        trees = [
            (str(key) if str(key).isidentifier() else f"field{index}", self.tree(item))
            for index, (key, item) in enumerate(zip(keys, items))
        ]
        return Record(kind, name, (("keys", tuple(keys)), *trees))

    def _name(self, value: Any, name: str) -> str:
        """Keep a class or object under its name; another of the same name gets a number."""
        if is_a(value, type):
            self._note_class(value)
        candidate, number = name, 2
        while self.classes.setdefault(candidate, value) is not value:
            candidate, number = f"{name} ({number})", number + 1
        return candidate

    def _rows(self, heap: Heap | Table) -> Any:
        """The tree of all rows of a heap or table: a list that grew, of what each row holds."""
        if is_a(heap, Heap):
            return self.tree(heap.held)
        tree = self._growing(heap.whole())
        if heap.cls is dict:
            return tree
        self._note_class(heap.cls)
        arrays, (_, item) = tree.fields
        if issubclass(heap.cls, Keyed):
            cls, kept = fields_of(heap.cls)
            (_, keys), *parts = item.fields
            parts = [part for key, part in zip(keys, parts) if key in kept]
            item = Record("instance", self._name(cls, _name_of(cls)), (("keys", kept), *parts))
            return Record(tree.kind, "", (arrays, ("item", item)))
        name = self._name(heap.cls, f"{_name_of(heap.cls)} row")  # after loading, what can be changed stands for it
        return Record(tree.kind, "", (arrays, ("item", Record("instance", name, item.fields))))

    def _row(self, heap: Heap | Table, number: Any) -> Record:
        """The tree of a row of a heap or table; each run makes all rows of all of them once, as they may refer to each
        other."""
        filled = [one for one in self.session.containers.heaps.values() if one.held]
        if self._heaps is None:
            self._heaps = Record("heaps", "", ())  # what the trees of the rows refer to
            rows = [(f"heap{place}", self._rows(one)) for place, one in enumerate(filled)]
            self._heaps = Record("heaps", "", tuple(rows))
        lists = Record("known", "", (("value", self._heaps),))
        return Record("row", "", (("heaps", lists), ("heap", filled.index(heap)), ("number", number)))

    def _growing(self, grown: structure.Growing) -> Any:
        """The tree of a list whose length is only known at run time."""
        copied_items.leave(self.session, grown)
        cached_results.require_list_of_none(self.session, grown.alias_set.find().cached_by)
        arrays = [self.leaf(self.session.require_visible(var, "a list")) for var in grown.variables]

        def of_items(item: structure.Structure) -> Any:
            count = iter(range(structure.width(item)))
            return columns(item, lambda: Record("column", "", (("index", next(count)),)))

        def columns(item: structure.Structure, column: Callable[[], Record]) -> Any:
            if is_a(item, structure.Known):
                tree = self.tree(item.value)
                whole = is_a(tree, (Leaf, Record, list, tuple, dict))
                return Record("known", "", (("value", tree),)) if whole else tree
            if is_a(item, structure.Tensor) and item.perhaps_retains:
                raise hung.perhaps_retained(self.session, "leaves the function in a list")
            if is_a(item, (structure.Number, structure.Tensor)):
                return column()
            if is_a(item, structure.Reference):
                return self._row(item.heap, column())
            if is_a(item, structure.Sequence):
                return _in_class(item.kind, [columns(inner, column) for inner in item.items])
            if is_a(item, structure.Options) and not item.options:  # there never is an item
                column()
                return None
            if is_a(item, structure.Options):
                selector = ("selector", column())
                options = [(f"option{index}", columns(inner, column)) for index, inner in enumerate(item.options)]
                return Record("choice", "", (selector, *options))
            if is_a(item, structure.Fields):
                if item.cls in (dict, structure.DictContent):
                    return {key: columns(inner, column) for key, inner in zip(item.keys, item.items)}
                return self._rows_of_fields(item, [columns(inner, column) for inner in item.items])
            assert is_a(item, structure.Array)
            own = tuple(column() for _ in range(structure.width(item)))
            inner = Record("growing", "", (("arrays", own), ("item", of_items(item.item))))
            return Record("growing tuple", "", (("items", inner),)) if item.kind is tuple else inner

        return Record("growing", "", (("arrays", tuple(arrays)), ("item", of_items(grown.item))))

    def _rows_of_fields(self, item: structure.Fields, parts: list[Any]) -> Record:
        """The tree of the items that have fields, of a list that grew; ``parts``: those of the fields."""
        if issubclass(item.cls, NumpyArray):
            if issubclass(item.cls, NumpyCopy):
                self._refuse_apart()
            return Record(_kind_of_array(item.cls), "", (("tensor", parts[item.keys.index("tensor")]),))
        beside = {key.name: part for key, part in zip(item.keys, parts) if is_a(key, structure.Attribute)}
        keys = item.keys[: len(parts) - len(beside)]
        fields = [(f"field{index}", part) for index, part in enumerate(parts[: len(keys)])]
        if item.cls is collections.defaultdict and is_a(item.items[-1], structure.Known):  # one factory
            kind, name, beside = "defaultdict", self._factory(item.items[-1].value), {}
        else:
            kind = "namedtuple" if issubclass(item.cls, tuple) else "dataclass"
            cls = fields_of(item.cls)[0] if issubclass(item.cls, Keyed) else item.cls
            name = self._name(cls, _name_of(cls))
        made = Record(kind, name, (("keys", keys), *fields))
        return Record("hung", "", (("value", made), ("attributes", beside))) if beside else made

    def _factory(self, factory: Any) -> str:
        """The name under which what makes a defaultdict is kept."""
        make: Any = functools.partial(collections.defaultdict, factory)
        return self._name(make, f"collections.defaultdict of {factory}")


def is_written(storage: Storage) -> bool:
    """Whether memory of the caller was written."""
    return storage.origin is not None and storage.value is not storage.origin


def _view(source: Variable, steps: tuple[RecordedStep, ...]) -> View:
    return View(source, tuple(step.plain for step in steps))


def _has_variables(steps: tuple[RecordedStep, ...]) -> bool:
    return any(True for step in steps for _ in _variables(step))


def _variables(step: RecordedStep) -> Iterator[Variable]:
    yield from leaves(step.args)
    yield from leaves(dict(step.kwargs))


def _of_items(kind: str, parts: Iterable[Any]) -> Record:
    return Record(kind, "", tuple((f"item{index}", part) for index, part in enumerate(parts)))


def _in_class(kind: type, parts: list[Any]) -> Any:
    """The tree of a list, tuple or size, whose items' trees are given."""
    if kind is StagedSize:
        return _of_items("size", parts)
    return tuple(parts) if kind is tuple else parts


def _name_of(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


def _is_only_fields(value: Any, keys: tuple[Any, ...]) -> bool:
    """Whether a named tuple or a mapping has no attributes beside its items."""
    if not is_a(value, (tuple, dict)) or is_a(value, structure.DictContent):
        return True
    return not any(is_a(key, structure.Attribute) for key in keys)


def _content_of(cell: types.CellType) -> list[Any]:
    try:
        return [cell.cell_contents]
    except ValueError:
        return []


def _kind_of_array(cls: type) -> str:
    return "numpy scalar" if issubclass(cls, NumpyScalar) else "numpy array"


def _is_lasting(key: Any) -> bool:
    """Whether a key of a dict is the same one in every call."""
    return structure.is_plain(key) or is_a(key, enum.Enum)


__all__ = ["Outputs"]
