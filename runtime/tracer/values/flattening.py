"""Values in Variables: ``lower`` gives the operands that carry a value in a structure, ``lift`` rebuilds the value."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch

from runtime import torch_internals
from runtime.ir import UNDEF, ArrayType, Block, Operand, Variable
from runtime.kinds import is_a
from runtime.tracer.memory import hung
from runtime.tracer.numbers import scalars
from runtime.tracer.numbers.scalars import StagedInt
from runtime.tracer.values import alias_set_items
from runtime.tracer.values.columns import with_items
from runtime.tracer.values.containers import flat
from runtime.tracer.values.structure import (
    BOUND,
    DYNAMIC,
    Array,
    Choice,
    Fields,
    Growing,
    JoinContext,
    Known,
    Made,
    Number,
    Options,
    Reference,
    Sequence,
    Structure,
    Tensor,
    field_items,
    growing,
    rebuild_fields,
    types_of,
    width,
)
from runtime.tracer.values.unification import fits, structure_of

if TYPE_CHECKING:
    from runtime.tracer.recording.session import Session


def lower(session: Session, value: Any, s: Structure, context: JoinContext) -> list[Operand]:
    """The operands that carry ``value`` in structure ``s``, read in the current Block."""
    if is_a(value, Choice) and not is_a(s, (Known, Made, Options)):
        return _lower_options(session, value, Options((s,)), context)[1:]
    if is_a(s, (Known, Made)):
        return []
    if is_a(s, Number):
        return [session.operand(value)]
    if is_a(s, Reference):
        return [s.heap.reference(session, value)]
    if is_a(s, Tensor):
        hung.require_none(session, value, "is another one after a branch or an iteration", retained=True)
        return [session.read(value)]
    if is_a(s, Sequence):
        return [operand for item, inner in zip(value, s.items) for operand in lower(session, item, inner, context)]
    if is_a(s, Fields):
        fields = field_items(value)
        assert fields is not None
        return [operand for item, inner in zip(fields[1], s.items) for operand in lower(session, item, inner, context)]
    if is_a(s, Array):
        return _lower_array(session, value, s, context)
    return _lower_options(session, value, s, context)


def _lower_array(session: Session, value: Any, s: Array, context: JoinContext) -> list[Operand]:
    """Arrays for a list: its own where it has grown already, new ones from the items of a plain list."""
    grown = growing(value)
    if grown is not None:
        grown = grown.read()
        s.alias_set.merge(grown.alias_set)
        grown = with_items(session, grown, s.item, context)
        return [session.require_visible(var, "a list") for var in grown.variables]
    rows = [lower_item(session, item, s.item, context) for item in value]
    for position, item in enumerate(value):
        alias_set_items.put(session, s.alias_set, item, (value, position))
    arrays: list[Operand] = []
    for position, type_ in enumerate(types_of(session, s.item)):
        arrays += session.emit("array.new", [[row[position] for row in rows]], types=[ArrayType(type_)])
    return arrays


def lower_item(session: Session, value: Any, s: Structure, context: JoinContext) -> list[Operand]:
    """The operands that carry an item of an array: None where they stand for an option that the item is not."""
    return [None if operand is UNDEF else operand for operand in lower(session, value, s, context.copies())]


def lower_nothing(session: Session, s: Structure, context: JoinContext) -> list[Operand]:
    """The operands where no value stands: the user's code does not read them there.

    What is recorded to carry a value in another structure runs there all the same, and asks for lists that are lists
    and for which of several a value is: the list is empty, and the value the first, of those that need no row of a
    heap if there are such, as there may be no row.
    """
    if context.copying:
        return [UNDEF] * width(s)
    if is_a(s, Array):
        return [session.emit("array.new", [[]], types=[type_])[0] for type_ in types_of(session, s)]
    if is_a(s, Options):
        chosen = next((index for index, option in enumerate(s.options) if not _needs_row(option)), 0)
        return [chosen, *(operand for option in s.options for operand in lower_nothing(session, option, context))]
    if is_a(s, (Sequence, Fields)):
        return [operand for item in s.items for operand in lower_nothing(session, item, context)]
    return [UNDEF] * width(s)


def _needs_row(s: Structure) -> bool:
    """Whether what carries a value refers to a row of a heap."""
    if is_a(s, Reference):
        return True
    return is_a(s, (Sequence, Fields)) and any(map(_needs_row, s.items))


def _lower_options(session: Session, value: Any, s: Options, context: JoinContext) -> list[Operand]:
    def target(option: Any) -> int:
        pictured = structure_of(session, option, context)
        for index, candidate in enumerate(s.options):
            if fits(session, pictured, candidate, context) or fits(session, Known(option), candidate, context):
                return index
        raise AssertionError("a value does not fit the structure it was unified into")

    slots: list[list[Operand] | None] = [None] * len(s.options)
    selector: Operand
    if is_a(value, Choice):
        value = flat(session, value)
        targets = [target(option) for option in value.options]
        selector = session.operand(value.selector)
        if targets != list(range(len(targets))):
            chosen: Any = targets[-1]
            for index in range(len(targets) - 2, -1, -1):
                chosen = session.scalar("select", value.selector == index, targets[index], chosen)
            selector = session.operand(chosen)
        for number, (option, index) in enumerate(zip(value.options, targets)):
            operands = lower(session, option, s.options[index], context)
            before = slots[index]
            slots[index] = (
                operands
                if before is None
                else _one_of(session, value.selector == number, operands, before, s.options[index])
            )
    else:
        index = target(value)
        selector = index
        slots[index] = lower(session, value, s.options[index], context)
    result: list[Operand] = [selector]
    for operands_or_none, option in zip(slots, s.options):
        result += operands_or_none if operands_or_none is not None else lower_nothing(session, option, context)
    return result


def _one_of(session: Session, flag: Any, a: list[Operand], b: list[Operand], s: Structure) -> list[Operand]:
    """Operands that are ``a`` where a flag is true, else ``b``; both carry a value of structure ``s``."""
    if not a:
        return a
    first, second = Block(yields=list(a)), Block(yields=list(b))
    return list(session.emit("cond", [session.operand(flag)], types=types_of(session, s), blocks=[first, second]))


def lift(
    session: Session, s: Structure, variables: Iterator[Variable], context: JoinContext,
    tensors: dict[Variable, torch.Tensor] | None = None,
) -> Any:  # fmt: skip
    """A value of structure ``s`` carried by the next Variables (which belong to the current Block).

    ``tensors``: those of Variables so far; one that comes again is the same object.
    """
    if is_a(s, Known):
        return s.value
    if is_a(s, Made):
        return context.stand_ins[s.cell]
    if is_a(s, Number):
        return scalars.wrap(next(variables))
    if is_a(s, Reference):
        return s.heap.made(session, s.kind, scalars.wrap(next(variables)))
    if is_a(s, Tensor):
        var = next(variables)
        if tensors is None:
            return _lift_tensor(session, s, var)
        if var not in tensors:
            tensors[var] = _lift_tensor(session, s, var)
        return tensors[var]
    if is_a(s, Sequence):
        items = s.kind(lift(session, item, variables, context, tensors) for item in s.items)
        session.origins.note_unknown(items)
        return items
    if is_a(s, Fields):
        parts = tuple(lift(session, item, variables, context, tensors) for item in s.items)
        made = rebuild_fields(s.cls, s.keys, parts)
        if not is_a(made, (dict, tuple, *BOUND)):
            session.objects.created[id(made)] = made
            session.journal.note_made(made)
        session.origins.note_unknown(made)
        return made
    if is_a(s, Array):
        grown = Growing(tuple(next(variables) for _ in range(width(s.item))), s.item, s.alias_set)
        return (grown,) if s.kind is tuple else [grown]
    selector = StagedInt(next(variables))
    return Choice(selector, tuple(lift(session, option, variables, context, tensors) for option in s.options))


def _lift_tensor(session: Session, s: Tensor, var: Variable) -> torch.Tensor:
    shape: list[Any] = []
    fresh_sizes = False
    for size in s.shape:
        if size is DYNAMIC or not session.sizes.visible(size):
            size = session.sizes.fresh()
            fresh_sizes = True
        shape.append(size)
    strides = s.strides if not fresh_sizes else None
    fake = torch_internals.empty_fake(session.fake_mode, shape, strides, s.dtype, s.device)
    session.fresh(
        fake,
        var,
        requires_grad=s.requires_grad,
        layout_known=s.layout_known and (s.strides is None or not fresh_sizes),
    )
    session.sizes.bind_sizes(fake, var)
    var.type = session.type_of(fake)
    info = session.info(fake)
    info.cached, info.cached_for = var, info.storage.value
    info.grad_in_some_runs, info.perhaps_retains = s.grad_in_some_runs, s.perhaps_retains
    session.origins.note_unknown(fake)
    return fake


__all__ = ["lift", "lower", "lower_item", "lower_nothing"]
