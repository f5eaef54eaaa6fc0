"""Tracing lists that grow: what Python's list operations are once a list's length is only known at run time.

A tuple of such a length is a tuple that holds the same (``(*xs,)``, ``f(*xs)`` for ``def f(*items)``): Python's own
``+``, ``type`` and ``isinstance`` are right for it, and it is never changed.

Such a list or deque is still the user's own object; while tracing it holds one ``structure.Growing``, whose Variables
are arrays, one for each Variable of an item. Every function expects one for which ``structure.growing`` is not None.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

import torch

from runtime.ir import Operand, Variable
from runtime.kinds import is_a
from runtime.tracer.ambient import state
from runtime.tracer.numbers import scalars
from runtime.tracer.python_state import held
from runtime.tracer.python_state.journal import Place
from runtime.tracer.values import alias_set_items, copied_items, flattening, structure, unification
from runtime.tracer.values.columns import with_items
from runtime.tracer.values.structure import PLAIN, Growing

if TYPE_CHECKING:
    from runtime.tracer.recording.session import Session


def content(target: list[Any] | tuple[Any, ...]) -> Growing:
    """What the list holds."""
    grown = structure.growing(target)
    assert grown is not None
    return grown.read()


def as_growing(session: Session, value: list[Any], like: Growing) -> Growing:
    """Any list as arrays of the items that ``like`` holds, or of a structure that fits both."""
    grown = structure.growing(value)
    if grown is not None:
        grown = grown.read()
        like.alias_set.merge(grown.alias_set)
        return with_items(session, grown, _wider(session, like.item, grown.item), PLAIN)
    item = like.item
    held.move_inside(session, value, item)
    for one in value:
        item = _wider(session, item, unification.item_structure(session, one, PLAIN))
    return _of(session, value, structure.Array(item, like.alias_set))


def of_items(session: Session, items: list[Any]) -> list[Any]:
    """A list that grows, with the items of an ordinary list that has some."""
    held.move_inside(session, items)
    item = unification.as_items(unification.item_structure(session, items[0], PLAIN))
    for one in items[1:]:
        item = _wider(session, item, unification.item_structure(session, one, PLAIN))
    return [_of(session, items, structure.Array(item))]


def _of(session: Session, items: list[Any], array: structure.Array) -> Growing:
    operands = flattening.lower(session, items, array, PLAIN)
    variables = tuple(operand for operand in operands if is_a(operand, Variable))
    return Growing(variables, array.item, array.alias_set)


def _wider(session: Session, item: structure.Structure, other: structure.Structure) -> structure.Structure:
    """The structure of items that fits both; it must be carried by the same number of Variables."""
    if unification.fits(session, other, item, PLAIN):
        return item
    return unification.as_items(unification.unify(session, item, other, PLAIN))


def _each(session: Session, grown: Growing, name: str, *args: list[Operand]) -> tuple[Variable, ...]:
    """One operator on every array; ``args`` give an operand per array."""
    results: list[Variable] = []
    for position, var in enumerate(grown.variables):
        session.require_visible(var, "a list")
        results += session.emit(name, [var, *(column[position] for column in args)])
    return tuple(results)


def _store(session: Session, target: list[Any], variables: tuple[Variable, ...], like: Growing) -> None:
    store(session, target, [Growing(variables, like.item, like.alias_set)])


def store(session: Session, target: list[Any] | deque[Any], items: list[Any]) -> None:
    """Give a list or deque another content."""
    row = structure.list_row(target)
    if row is not None:
        row.heap.store(session, row.number, items)
        return
    session.journal.note_content(target)
    Place("content", target).set(items)


def length(session: Session, target: list[Any]) -> Any:
    """``len(target)``."""
    var = session.require_visible(content(target).variables[0], "a list")
    return scalars.wrap(session.emit("array.len", [var])[0])


def append(session: Session, target: list[Any], value: Any) -> None:
    """``target.append(value)``."""
    held.move_inside(session, (value,), content(target).item)
    grown, operands = lowered(session, content(target), value)
    _store(session, target, _each(session, grown, "array.append", operands), grown)


def lowered(session: Session, grown: Growing, value: Any) -> tuple[Growing, list[Operand]]:
    """A list in a structure that carries another item, too, and the operands that carry that."""
    item = _wider(session, grown.item, unification.item_structure(session, value, PLAIN))
    grown = with_items(session, grown, item, PLAIN)
    alias_set_items.put(session, grown.alias_set, value)
    return grown, flattening.lower_item(session, value, item, PLAIN)


def extend(session: Session, target: list[Any], values: list[Any]) -> None:
    """``target.extend(values)`` for another list or tuple."""
    grown = content(target)
    _note_again(session, grown, structure.growing(list(values)))
    other = as_growing(session, list(values), grown)
    grown = with_items(session, grown, other.item, PLAIN)
    _store(session, target, _each(session, grown, "array.extend", list(other.variables)), other)


def concat(session: Session, a: list[Any], b: list[Any]) -> list[Any]:
    """``a + b``, either of which may have grown."""
    _note_again(session, structure.growing(a), structure.growing(b))
    return parts(session, a, b)


def _note_again(session: Session, a: Growing | None, b: Growing | None) -> None:
    """Items of ``b`` come into one list with those of ``a``."""
    if a is not None and b is not None and a.alias_set.find() is b.alias_set.find():
        copied_items.put_again(session, b.item)


def parts(session: Session, a: list[Any], b: list[Any]) -> list[Any]:
    """The same for two parts of one list, which have no item in common."""
    own = structure.growing(a)
    grown = own.read() if own is not None else content(b)
    first = as_growing(session, a, grown)
    second = as_growing(session, b, first)
    first = with_items(session, first, second.item, PLAIN)
    return [Growing(_each(session, first, "array.concat", list(second.variables)), second.item, second.alias_set)]


def parts_joined(target: list[Any] | tuple[Any, ...]) -> Growing:
    """What a list holds that Python's own ``+`` made of lists that grew and others.

    The list stays as it is: paths of a construct that look at it must not see each other's Variables.
    """
    session = state.current()
    first = next(item for item in target if is_a(item, Growing))
    if first.joined is not None:
        items, found = first.joined
        same = len(items) == len(target) and all(a is b for a, b in zip(items, target))
        if same and all(map(session.visible, found.variables)):
            return found
    parts: list[list[Any]] = []
    for item in target:
        if is_a(item, Growing) or not parts or is_a(parts[-1][0], Growing):
            parts.append([item])
        else:
            parts[-1].append(item)
    joined = parts[0]
    for part in parts[1:]:
        joined = concat(session, joined, part)
    first.joined = list(target), joined[0]
    return content(joined)


def get(session: Session, target: list[Any], index: Any) -> Any:
    """``target[index]``; IndexError at run time as in Python."""
    grown = content(target)
    operand = session.operand(index)
    results: list[Variable] = []
    for var in grown.variables:
        session.require_visible(var, "a list")
        results += session.emit("array.get", [var, operand])
    return item_of(session, grown, results)


def item_of(session: Session, grown: Growing, variables: list[Variable]) -> Any:
    """An item of a list, from the Variables that carry it."""
    value = flattening.lift(session, grown.item, iter(variables), PLAIN)
    if is_a(value, structure.Choice) and len(value.options) == 1:
        value = value.options[0]
    alias_set_items.got(session, grown.alias_set, value)
    return value


def set_(session: Session, target: list[Any], index: Any, value: Any) -> None:
    """``target[index] = value``."""
    held.move_inside(session, (value,), content(target).item)
    grown, values = lowered(session, content(target), value)
    places: list[Operand] = [session.operand(index)] * len(grown.variables)
    _store(session, target, _each(session, grown, "array.set", places, values), grown)


def pop(session: Session, target: list[Any], index: Any = -1) -> Any:
    """``target.pop(index)``."""
    grown = content(target)
    operand = session.operand(index)
    rests: list[Variable] = []
    items: list[Variable] = []
    for var in grown.variables:
        session.require_visible(var, "a list")
        rest, popped = session.emit("array.pop", [var, operand])
        rests.append(rest)
        items.append(popped)
    _store(session, target, tuple(rests), grown)
    return item_of(session, grown, items)


def slice_(session: Session, target: list[Any] | tuple[Any, ...], where: slice) -> list[Any]:
    """``target[where]``."""
    grown = content(target)
    places: list[Operand] = [session.operand(where)] * len(grown.variables)
    return [Growing(_each(session, grown, "array.slice", places), grown.item, grown.alias_set)]


def replace(session: Session, target: list[Any], values: list[Any]) -> None:
    """``target[:] = values``."""
    other = as_growing(session, values, content(target))
    _store(session, target, other.variables, other)


def splice(session: Session, target: list[Any], where: slice, values: list[Any]) -> None:
    """``target[where] = values`` for a slice without a step."""
    if where.step not in (None, 1):
        raise session.error(
            "a slice with a step, of a list whose length is only known while the Program runs, is assigned or deleted",
            hint="Make a new list of the items that stay.",
            code="D2S253",
        )
    before = slice_(session, target, slice(None, 0 if where.start is None else where.start))
    after = slice_(session, target, slice(where.start, None))
    taken = slice_(session, target, slice(where.start, where.stop))
    rest = slice_(session, after, slice(length(session, taken), None))
    _note_again(session, content(before), structure.growing(values))
    whole = parts(session, parts(session, before, values), rest)
    store(session, target, whole)


def insert(session: Session, target: list[Any], index: Any, value: Any) -> None:
    """``target.insert(index, value)``."""
    splice(session, target, slice(index, index), [value])


def repeat(session: Session, target: list[Any], count: int) -> None:
    """``target *= count``."""
    whole: list[Any] = []
    for _ in range(count):
        whole = concat(session, whole, target) if whole else copy(target)
    store(session, target, whole)


def reverse(session: Session, target: list[Any]) -> None:
    """``target.reverse()``."""
    _store(session, target, content(slice_(session, target, slice(None, None, -1))).variables, content(target))


def clear(session: Session, target: list[Any]) -> None:
    """``target.clear()``."""
    store(session, target, [])


def copy(target: list[Any]) -> list[Any]:
    """``target.copy()``, ``list(target)``."""
    return [content(target)]


def tensors(session: Session, target: list[Any]) -> tuple[Variable, structure.Tensor]:
    """The array of a list of tensors, to stand where an ATen operator takes Tensor[], and the items' structure."""
    grown = content(target)
    if not is_a(grown.item, structure.Tensor):
        raise session.error(
            "a list that grows is passed to torch, but its items are not tensors of one dtype and number of dimensions",
            code="D2S252",
            hint="Keep the tensors in a list of their own.",
        )
    return session.require_visible(grown.variables[0], "a list"), grown.item


def join(session: Session, name: str, target: list[Any], dim: int) -> Any:
    """``torch.stack`` (``aten.stack.default``) or ``torch.cat`` (``aten.cat.default``) of a list that grew."""
    array, item = tensors(session, target)
    rank = len(item.shape) + (name == "aten.stack.default")
    if not -rank <= dim < rank:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], but got {dim})")
    place = dim % rank
    shape = list(item.shape)
    if name == "aten.stack.default":
        shape.insert(place, structure.DYNAMIC)
    else:
        shape[place] = structure.DYNAMIC
    needs = item.requires_grad and torch.is_grad_enabled()
    in_some_runs = needs and item.grad_in_some_runs
    joined = structure.Tensor(tuple(shape), None, item.dtype, item.device, needs, False, in_some_runs)
    (var,) = session.emit(name, [array, dim], types=structure.types_of(session, joined))
    return flattening.lift(session, joined, iter([var]), PLAIN)


structure.register(parts_joined)
