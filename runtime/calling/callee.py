"""What is called: a Program made ready, with what belongs to each call of it.

A call is the same for live functions and loaded files, once it is known that the Program answers it: the executor runs,
what the Program wrote is put into the caller's tensors, views are taken of these, the function's stores are repeated,
and the result is built.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from runtime import torch_internals
from runtime.autodiff import Runner
from runtime.autodiff.lower import targets as gradients_in
from runtime.batching.program import BatchedProgram
from runtime.batching.results import require_same, settled
from runtime.calling.results import build_tree
from runtime.ir import ArrayType, Operator, Program, Variable
from runtime.ir.flow import Kind
from runtime.ir.ports import flow_of
from runtime.ir.template import KeyPath
from runtime.ir.tree import tree_leaves
from runtime.ir.types import TensorType
from runtime.ir.views import View, ViewStep, fill
from runtime.kinds import is_a
from runtime.ops import aten
from runtime.torch_internals import batches
from runtime.tracer.ambient.calls import flatten_results
from runtime.tracer.boundary.tracing import Effect
from runtime.tracer.memory.write_back import write_back
from runtime.tracer.python_state.journal import Place
from runtime.tracer.values.arguments import Arguments, follow


@dataclass(eq=False)
class Callee:
    """A Program made ready, and what follows each run of it."""

    program: Program
    runner: Runner
    classes: dict[str, Any]
    """By name: the classes that Records name, and objects that are returned as they are."""
    views: dict[int, View]
    """By yield position: results that alias the caller's memory."""
    same: dict[int, KeyPath]
    """By identity of a subtree of an output tree: the path of the argument that it is."""
    stores: Sequence[Effect] = ()
    """Stores to the caller's Python state that every run repeats."""
    kept: dict[int, Any] = field(default_factory=dict)
    """By identity of a subtree: the container from before the trace that it is."""
    loose: tuple[int, ...] = ()
    """Yield positions of results that may be views of the caller's memory in some runs, where these are to be views for
    autograd, too: who goes on in plain Python may write to them."""
    _for_rows: dict[int, BatchedProgram] = field(default_factory=dict)
    """By identity of a Program: what runs it under ``torch.vmap``."""
    _asks_gradients: bool | None = None
    """Whether ``torch.autograd.grad`` stands in the Program; None: not looked yet."""

    @property
    def only_results(self) -> bool:
        """Whether all that follows a run are writes, and a result made of what the Program yields."""
        return not any((self.views, self.same, self.kept, self.stores, self.loose, self._may_list_what_is_written))

    @functools.cached_property
    def _may_list_what_is_written(self) -> bool:
        """Whether what the Program writes may be among the items of a list that grew, where no view tells of it."""
        made = (out.type for op in self.program.block.walk() for out in op.outputs)
        return bool(self.program.writes) and any(is_a(type_, ArrayType) for type_ in made)

    def call(
        self, arguments: Arguments, inputs: Sequence[Any], params: Sequence[Any], stores: Sequence[Effect] | None = None
    ) -> Any:
        """The function's result, from the Program's inputs and parameters.

        ``arguments``: the call's, taken apart. ``stores``: those of this call, where they are not always the same.
        """
        if batches.transforms() and batches.any_batched([*inputs, *params]):
            return self._call_for_rows(arguments, inputs, params, self.stores if stores is None else stores)
        values = self.runner.run(inputs, params)
        return self._finish(arguments, inputs, params, values, self.stores if stores is None else stores)

    def _finish(
        self, arguments: Arguments, inputs: Sequence[Any], params: Sequence[Any], values: list[Any],
        stores: Sequence[Effect],
    ) -> Any:
        """What follows a run: writes, views, stores and the result."""
        given = [*inputs, *params]
        targets = dict(zip(self.program.block.args, given))
        self.put(given, values)
        self._take_views(given, values)
        for position in self.loose:
            if position in self.views:
                continue
            values[position] = _attached(values[position], [*inputs, *params])
        for effect in stores:
            if effect.placed:
                _without_base(values, effect.tree)
        built = self.kept | {key: follow(arguments, path) for key, path in self.same.items()}
        stored = [
            (_place(effect, arguments, targets), build_tree(effect.tree, values, self.classes, built))
            for effect in stores
        ]
        result = build_tree(self.program.output, values, self.classes, built)
        for place, value in stored:
            place.set(value)
        return result

    def _take_views(self, given: Sequence[Any], values: list[Any]) -> None:
        """Views of the caller's tensors, in place of what the run gave: what is one tensor there is one view.

        So is what else the run gave of the memory of what it wrote, such as an item of a list that grew.
        """
        targets = dict(zip(self.program.block.args, given))
        anew: dict[int, list[tuple[Any, View | None, Any]]] = {}
        for position, view in self.views.items():
            value = values[position]
            if value is None or self._is_ancestor(view, value):  # None: of another path
                continue
            known = anew.setdefault(id(value), [])
            values[position] = next((made for _, one, made in known if one == view), None)
            if values[position] is None:
                values[position] = taken(targets[view.source], view.steps)
                known.append((value, view, values[position]))
        memory = {torch_internals.storage_identity(values[index]): (values[index], given[place])
                  for place, index, _ in (self._written if self._may_list_what_is_written else ())
                  if _moves(values[index], given[place])}  # fmt: skip
        if not anew and not memory:
            return

        def of_callers(item: Any) -> Any:
            if is_a(item, (list, tuple)):
                return [of_callers(one) for one in item]
            if not is_a(item, torch.Tensor) or item.layout is not torch.strided:
                return item
            content, target = memory.get(torch_internals.storage_identity(item), (item, item))
            known = anew.setdefault(id(item), [])
            part = item if content is target else _same_part(item, content, target)
            for _, _, made in known:
                if made is item or _lie_alike(made, part):
                    return made
            known.append((item, None, part))
            return part

        own = {index for _, index, _ in self._written}.union(self.views)
        for position, value in enumerate(values):
            if position not in own:
                values[position] = of_callers(value)

    def _is_ancestor(self, view: View, value: Any) -> bool:
        """Whether the run has taken a view of the caller's tensor itself, so that other results are computed from it:
        the content of that tensor is the same after the run."""
        if not view.steps or not value.requires_grad:
            return False
        return value._is_view() and not any(write.target is view.source for write in self.program.writes)

    def _call_for_rows(
        self, arguments: Arguments, inputs: Sequence[Any], params: Sequence[Any], stores: Sequence[Effect]
    ) -> Any:
        """A call under ``torch.vmap``: the Program runs once for all rows."""
        values, domain = self._batched([*inputs, *params]).run(inputs, params)
        for effect in stores:
            stored = [values[leaf.index] for leaf in tree_leaves(effect.tree)]
            require_same(stored, effect.place.describe(), effect.location)
        values = settled(self.program, self.program.output, values, domain)
        return self._finish(arguments, inputs, params, values, stores)

    def _batched(self, arguments: Sequence[Any]) -> BatchedProgram:
        program = self.runner.program
        if self._asks_gradients is None:
            self._asks_gradients = bool(gradients_in(program))
        if self._asks_gradients:
            row = [batches.like_a_row(one) for one in arguments]
            with batches.without_transforms():
                lowered = self.runner.lowered(row)
            program = program if lowered is None else lowered.program
        found = self._for_rows.get(id(program))
        if found is None:
            found = self._for_rows[id(program)] = BatchedProgram(program, self.runner.compile)
        return found

    def put(self, given: Sequence[Any], values: Sequence[Any]) -> None:
        """Put what the Program wrote into the inputs and parameters it was ``given``."""
        for position, index, announced in self._written:
            try:
                write_back(given[position], values[index], announced)
            except RuntimeError as error:
                target = self.program.block.args[position]
                if str(error).startswith("a leaf Variable") and _through_view(self.program, target):
                    raise RuntimeError(str(error).replace("a leaf", "a view of a leaf")) from error
                raise

    @functools.cached_property
    def _written(self) -> list[tuple[int, int, bool]]:
        """The positions of what the Program writes among what it is given, and of the new values; and whether autograd
        is told of the writes."""
        block = self.program.block
        places = {var: position for position, var in enumerate(block.args)}
        makers = {out: op for op in block.ops for out in op.outputs}
        return [(places[write.target], write.index, _is_announced(write.target, block.yields[write.index], makers))
                for write in self.program.writes]


def _moves(content: Any, target: Any) -> bool:
    """Whether what a run wrote is in other memory than the caller's tensor, in which it lies alike."""
    return content is not target and content.layout is target.layout is torch.strided and (
        content.stride() == target.stride())


def _same_part(part: torch.Tensor, content: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """The part of the caller's tensor that a tensor is of what was written to that."""
    offset = part.storage_offset() - content.storage_offset() + target.storage_offset()
    return target.as_strided(part.shape, part.stride(), offset)


def _lie_alike(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors are the same part of one memory."""
    first, second = ((t.shape, t.stride(), t.storage_offset(), t.dtype) for t in (one, other))
    return first == second and torch_internals.storage_identity(one) == torch_internals.storage_identity(other)


def _attached(value: Any, given: Sequence[Any]) -> Any:
    """A result as a view of the argument whose memory it is: what autograd's node of a Program gives may not be
    written."""
    if not is_a(value, torch.Tensor) or not value.requires_grad or not value._is_view():
        return value
    memory = torch_internals.storage_identity(value)
    for tensor in given:
        if is_a(tensor, torch.Tensor) and torch_internals.storage_identity(tensor) == memory:
            return tensor.as_strided(value.shape, value.stride(), value.storage_offset())
    return value


def loose_results(program: Program) -> tuple[int, ...]:
    """Yield positions of tensors that come out of a branch or loop, directly or as a view: they may be an argument's
    memory in some runs."""
    if not any(flow_of(op).kind not in (Kind.PLAIN, Kind.INLINE) for op in program.block.ops):
        return ()
    own = set(program.block.args)
    return tuple(
        position for position, var in enumerate(program.block.yields)
        if is_a(var, Variable) and var not in own and is_a(var.type, TensorType)
    )


def _without_base(values: list[Any], tree: Any) -> None:
    """Let a gradient be no view of what its formula gave, as where PyTorch puts one: its memory stays what it is."""
    for leaf in tree_leaves(tree):
        value = values[leaf.index]
        if is_a(value, torch.Tensor) and value._is_view():
            values[leaf.index] = value.data


def _place(effect: Effect, arguments: Arguments, targets: dict[Variable, Any]) -> Place:
    """Where a store of this call goes."""
    place = effect.place
    if effect.path is not None:
        return Place(place.kind, follow(arguments, effect.path), place.name)
    if effect.target is not None:
        return Place(place.kind, targets[effect.target], place.name)
    return place


def _is_announced(base: Variable, value: Any, makers: Mapping[Variable, Operator]) -> bool:
    """Whether one of the writes that made a value of ``base`` is one that autograd counts."""
    while value is not base:
        op = makers.get(value) if is_a(value, Variable) else None
        if op is None or op.name != "update":
            return True
        position, names = op.outputs.index(value), [inner.name for inner in op.blocks[0].ops]
        if position >= len(op.args) or not all(name.startswith("aten.") for name in names):
            return True
        if any(aten.announces_writes(aten.resolve(name)) for name in names):
            return True
        value = op.args[position]
    return False


def _through_view(program: Program, base: Variable) -> bool:
    """Whether the first write to an argument that autograd sees is one to a view of it."""
    for op in program.block.walk():
        if op.name == "update" and base in op.args and op.grad_mode != "off":
            (block,) = op.blocks
            return block.ops[-1].args[:1] != (block.args[op.args.index(base)],)
    return False


def taken(tensor: torch.Tensor, steps: tuple[ViewStep, ...]) -> torch.Tensor:
    """A view of a real tensor: the operators of its chain, one after another."""
    for step in steps:
        operator: Any = aten.resolve(step.name)
        kwargs = {key: fill(value, tensor) for key, value in step.kwargs}
        tensor = flatten_results(operator(*fill(step.args, tensor), **kwargs))[step.index]
    return tensor


__all__ = ["Callee", "loose_results", "taken"]
