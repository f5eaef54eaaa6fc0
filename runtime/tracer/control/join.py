"""Values that the paths of a construct bring out: one structure for each, and the Variables that carry what differs."""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch

from runtime.ir import UNDEF, Location, Operand, ScalarType, Variable, leaves
from runtime.kinds import is_a
from runtime.tracer.control import selections
from runtime.tracer.control.branches import Path
from runtime.tracer.control.joined_aliases import JoinAliases
from runtime.tracer.control.joined_copies import JoinCopies
from runtime.tracer.control.joined_leaves import JoinLeaves
from runtime.tracer.control.joined_nonwritable_views import JoinViews
from runtime.tracer.control.joined_used_up import JoinUsedUp
from runtime.tracer.control.memory_parts import JoinMemory
from runtime.tracer.control.parts import Branches, JoinPart, Met
from runtime.tracer.memory.deferred import PathEnd
from runtime.tracer.memory.storage_table import Storage
from runtime.tracer.numbers import selected
from runtime.tracer.numbers.scalars import Staged
from runtime.tracer.recording.session import Session
from runtime.tracer.values import flattening, one_view, origins, structure, unification
from runtime.tracer.values.tensor_pairs import tensor_pairs

_INT = ScalarType("int")
NOWHERE = object()
"""What a place holds on a path that does not have it: its owner was made on another path."""

PARTS: tuple[Callable[[Branches], JoinPart], ...] = (
    JoinMemory, JoinAliases, JoinViews, JoinUsedUp, JoinCopies, JoinLeaves
)  # fmt: skip
"""What takes part in every join besides values (see ``parts``)."""


class Join:
    """Values that paths bring out of a construct, and the Variables that carry what differs."""

    def __init__(
        self, session: Session, paths: Sequence[Path], entry: dict[Storage, Variable], context: structure.JoinContext,
        chooses: bool = False,
    ) -> None:  # fmt: skip
        """``chooses``: the path is that of one of several values, by the number that tells which it is."""
        self.session = session
        self.chooses = chooses
        self.context = context
        self.paths = paths
        self.entry = entry
        self.items: list[tuple[list[Any], structure.Structure, str]] = []
        self.branches = Branches(session, paths, entry)
        self.parts: tuple[JoinPart, ...] = tuple([part(self.branches) for part in PARTS])

    def add(
        self, values: list[Any], hint: str = "", of: structure.Choice | None = None, mixed_lists: bool = False
    ) -> None:
        """One value per path; those of paths that ended, or do not have it, are not looked at."""
        session, context = self.session, self.context.mixing(mixed_lists)
        alive = [
            (path, value) for path, value in zip(self.paths, values) if not path.ended and value is not NOWHERE
        ]

        def picture(path: Path, value: Any) -> structure.Structure:
            with path.inside(session):
                pictured = self._pictured(path, value, context)
                if is_a(value, structure.ListContent):
                    self._picture_records(value)
                return unification.with_rows(session, pictured, context) if session.containers.has_rows else pictured

        joined: structure.Structure = structure.Known(alive[0][1] if alive else None)
        its_own = of is not None and all(a is b for a, b, p in zip(values, of.options, self.paths) if not p.ended)
        if its_own and len(alive) > 1:
            joined = structure.Known(of)
        elif len(alive) == 1:
            path, value = alive[0]
            if self._is_made_inside(path, value):
                with path.inside(session):
                    joined = unification.carried(session, picture(path, value), context)
        elif any(not structure.same_known(value, alive[0][1]) for _, value in alive[1:]):
            values = [value if path.ended or value is NOWHERE else _known(session, path, value)
                      for path, value in zip(self.paths, values)]  # fmt: skip
            alive = [(path, value) for path, value in zip(self.paths, values) if any(path is one for one, _ in alive)]
            if is_a(alive[0][1], torch.Tensor) and all(value is alive[0][1] for _, value in alive):
                self.items.append((values, structure.Known(alive[0][1]), hint))
                return
            pictures = [picture(path, value) for path, value in alive]
            joined = pictures[0]
            for one in pictures[1:]:
                joined = unification.require_few(session, unification.unify(session, joined, one, context))
        self.items.append((values, joined, hint))

    def _pictured(self, path: Path, value: Any, context: structure.JoinContext) -> structure.Structure:
        """The structure of what a path leaves, what is made there by what it holds: it holds that on the path alone."""
        pictured = unification.structure_of(self.session, value, context)
        if not is_a(value, (structure.ListContent, structure.DictContent)):
            return pictured
        if not is_a(pictured, (structure.Sequence, structure.Fields)):
            return pictured
        return replace(pictured, items=tuple(
            unification.carried(self.session, item, context)
            if is_a(item, structure.Known) and self._is_made_inside(path, item.value) else item
            for item in pictured.items))  # fmt: skip

    def _picture_records(self, values: Iterable[Any]) -> None:
        """Note how a list that grows holds copies of the records among what a path leaves in a list."""
        session, pictures = self.session, self.context.pictures
        for value in values:
            if is_a(value, tuple):
                self._picture_records(tuple.__iter__(value))
            elif id(value) in session.objects.created and structure.can_be_copied(session, value):
                found = unification.item_structure(session, value, self.context)
                before = pictures.get(id(value))
                pictures[id(value)] = (
                    found if before is None else unification.unify(session, before, found, self.context.copies()))

    def _is_made_inside(self, path: Path, value: Any) -> bool:
        """Whether a value means nothing outside the path that has it."""
        if structure.has_traced(value) and not outside(self.session, self.entry, value):
            return True
        made = self.context.made
        if not self.session.containers.has_rows and not made:
            return False
        with path.inside(self.session):  # where it is known what containers hold, and which dicts and objects are rows
            if self.session.containers.has_rows and _holds_row(value):
                return True
            return bool(made) and _leads_to(value, made, set())  # a container that another one stands for from now on

    def emit(self, name: str, pred: Staged, location: Location | None) -> list[Any]:
        """Close the paths' Blocks with yields, record the Operator; the joined values."""
        session = self.session
        only_chooses = self.chooses and not any(path.ended or path.scope.block.ops for path in self.paths)
        carried = [(type_, hint) for _, item, hint in self.items for type_ in structure.types_of(session, item)]
        count = len(carried)
        self._require_one_view()
        for part in self.parts:
            carried += part.carried()
        for index, path in enumerate(self.paths):
            path.scope.block.yields.extend(self._yields(index, path) if not path.ended else [UNDEF] * len(carried))
        op = session.emit_operator(
            name, [session.operand(pred)], None, [type_ for type_, _ in carried], hints=[hint for _, hint in carried],
            blocks=[path.scope.block for path in self.paths], location=location,
        )  # fmt: skip
        self.op = op
        session.looks.path_ends[op] = tuple(PathEnd(path.scope, path.ended) for path in self.paths)
        rest = iter(op.outputs[count:])
        for part in self.parts:
            part.recorded(op, rest)
        if all(path.ended for path in self.paths):
            return []
        told = self._told_once(pred, list(op.outputs[:count]))
        results = self._lifted(told, {})
        if only_chooses:
            earlier = self._chosen_before(pred.var, results)
            results = self._lifted(told, earlier) if earlier else results
        rows = [([None if value is NOWHERE else value for value in values], item, result)
                for (values, item, _), result in zip(self.items, results)]  # fmt: skip
        origins.note_join(session, op, self.paths, rows)
        met = self._met(results)
        for part in self.parts:
            part.tensors(op, met)
        return results

    def _require_one_view(self) -> None:
        """Begin again where a path has put a tensor from before into a list that grows, and a path writes its memory.

        Errors raised: Restart.
        """
        if self.session.call.known.listed:
            return
        for values, item, _ in self.items:
            for path, value in zip(self.paths, values) if is_a(item, structure.Array) else ():
                if not path.ended and is_a(value, structure.ListContent):
                    for tensor in filter(lambda one: outside(self.session, self.entry, one), _tensors_in(value)):
                        info = self.session.info(tensor)
                        before = self.entry.get(info.storage)
                        if one_view.shows(info) and any(
                                path.storages.get(info.storage, before) is not before for path in self.paths):
                            one_view.begin_again(self.session)

    def known_containers(self) -> Iterator[Any]:
        """The containers that values may be which differ between the paths."""
        todo = [item for _, item, _ in self.items]
        while todo:
            item = todo.pop()
            if is_a(item, structure.Known) and structure.is_container(item.value):
                yield item.value
            elif is_a(item, structure.Options):
                todo += item.options
            elif is_a(item, (structure.Sequence, structure.Fields)):
                todo += item.items

    def _yields(self, index: int, path: Path) -> list[Operand]:
        session = self.session
        yields: list[Operand] = []
        with path.inside(session):
            for values, item, _ in self.items:
                value = values[index]
                if value is NOWHERE:
                    yields += flattening.lower_nothing(session, item, self.context)
                else:
                    yields += flattening.lower(session, value, item, self.context)
            for part in self.parts:
                yields += part.yields(path)
        return yields

    def _told_once(self, pred: Staged, outputs: list[Variable]) -> list[Variable]:
        """The Variables, each that says the same about the path as an earlier one, or as the number that a ``switch``
        goes by, replaced by that: what several values are is then known together."""
        first: dict[tuple[Operand, ...], Variable] = {}
        if self.chooses:
            first[tuple(number for number, path in enumerate(self.paths) if not path.ended)] = pred.var
        told = []
        for position, variable in enumerate(outputs):
            yields = tuple(path.scope.block.yields[position] for path in self.paths if not path.ended)
            is_known = all(type(one) is int or is_a(one, Variable) and one.type == _INT for one in yields)
            told.append(first.setdefault(yields, variable) if is_known else variable)
        return told

    def _chosen_before(self, selector: Variable, results: list[Any]) -> dict[Variable, torch.Tensor]:
        """Among the Variables of tensors that a ``switch`` only chooses, those of which it is known what they are."""
        session = self.session
        options: dict[int, tuple[torch.Tensor, list[torch.Tensor]]] = {}
        for _, tensors in self._met(results):
            for one, result in tensors:
                options.setdefault(id(result), (result, []))[1].append(one)
        chosen = [(result, selections.once(session, selector, among, result))
                  for result, among in options.values() if len(among) == len(self.paths)]  # fmt: skip
        return {session.info(result).storage.first: tensor for result, tensor in chosen if tensor is not result}

    def _lifted(self, outputs: list[Variable], known: dict[Variable, torch.Tensor]) -> list[Any]:
        """The values; ``known``: the tensors of some Variables."""
        session = self.session
        variables = iter(outputs)
        results = []
        seen: dict[tuple[int, ...], Any] = {}
        for values, item, _ in self.items:
            identity = tuple(id(value) for value, path in zip(values, self.paths) if not path.ended)
            one_object = is_a(item, (structure.Tensor, structure.Sequence, structure.Fields, structure.Array))
            if one_object and identity in seen:
                for _ in range(structure.width(item)):
                    next(variables)
                results.append(seen[identity])
                continue
            value = flattening.lift(session, item, variables, self.context, {**known} if known else None)
            if one_object:
                seen[identity] = value
            results.append(value)
        return results

    def _met(self, results: list[Any]) -> Met:
        """By path, the tensors that it leaves, beside those of the joined values."""
        session = self.session
        met: list[tuple[Path, list[tuple[torch.Tensor, torch.Tensor]]]] = [(path, []) for path in self.paths]
        for index, (path, tensors) in enumerate(met):
            for (values, item, _), result in zip(self.items, results):
                if not path.ended and not is_a(item, structure.Known):
                    with path.inside(session):
                        tensors += tensor_pairs(values[index], result, item)
        return met


def _tensors_in(value: Any) -> Iterator[torch.Tensor]:
    if is_a(value, torch.Tensor):
        yield value
        return
    if is_a(value, structure.Choice):
        value = value.options
    fields = (None, value) if is_a(value, (list, tuple)) else structure.field_items(value)
    for item in () if fields is None else fields[1]:
        yield from _tensors_in(item)


def outside(session: Session, entry: dict[Storage, Variable], value: Any) -> bool:
    """Whether every tensor and number inside a value exists outside the paths."""
    if is_a(value, torch.Tensor):
        info = session.info(value)
        return info.storage in entry and all(
            session.visible(var) for step in info.steps for var in _step_variables(step)
        )
    if is_a(value, Staged):
        return session.visible(value.var)
    if (row := structure.row_of(value)) is not None:
        return row.visible(session)
    if is_a(value, structure.Row):
        return value.visible(session)
    if is_a(value, structure.Growing):
        return all(map(session.visible, value.arrays))
    if is_a(value, structure.Choice):
        return session.visible(value.selector.var) and all(outside(session, entry, option) for option in value.options)
    if is_a(value, (list, tuple)):
        return all(outside(session, entry, item) for item in value)
    fields = structure.field_items(value)
    return fields is None or all(outside(session, entry, item) for item in fields[1])


def _known(session: Session, path: Path, value: Any) -> Any:
    """A value that a path leaves, with what it is there in place of one of several; so is what a container holds."""
    if is_a(value, torch.Tensor) and not any(scope.selections for scope in path.scope.chain()):
        return value
    with path.inside(session):
        return _narrowed(session, value)


def _narrowed(session: Session, value: Any) -> Any:
    if is_a(value, torch.Tensor):
        return selections.known(session, value)
    if is_a(value, structure.Choice):
        known = None if hasattr(value, "run") else selected.only(session, value.selector.var)
        return value if known is None else _narrowed(session, value.options[known])
    if not is_a(value, (structure.DictContent, structure.ListContent)):
        return value
    items: Any = value.values() if is_a(value, structure.DictContent) else value
    now = [_narrowed(session, item) for item in items]
    if all(map(operator.is_, now, items)):
        return value
    return structure.DictContent(zip(value, now)) if is_a(value, dict) else structure.ListContent(now)


def _holds_row(value: Any) -> bool:
    """Whether a list, dict or object that others hold by reference is in a value."""
    if structure.row_of(value) is not None:
        return True
    if is_a(value, structure.Choice):
        return any(map(_holds_row, value.options))
    if is_a(value, (list, tuple)):
        return any(map(_holds_row, value))
    fields = structure.field_items(value)
    return fields is not None and any(map(_holds_row, fields[1]))


def _leads_to(value: Any, made: Collection[int], seen: set[int]) -> bool:
    """Whether one of some containers, told by identity, is in a value."""
    if id(value) in made:
        return True
    if id(value) in seen:
        return False
    seen.add(id(value))
    if is_a(value, structure.Choice):
        return any(_leads_to(option, made, seen) for option in value.options)
    if is_a(value, (list, tuple)):
        return any(_leads_to(item, made, seen) for item in value)
    fields = structure.field_items(value)
    return fields is not None and any(_leads_to(item, made, seen) for item in fields[1])


def _step_variables(step: Any) -> list[Variable]:
    return [*leaves(step.args), *leaves(dict(step.kwargs))]


__all__ = ["NOWHERE", "Join", "outside"]
