"""Joining structures: ``unify`` finds the one that carries what either of two values carries, ``fits`` says whether one
already does."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch

from runtime import torch_internals
from runtime.kinds import is_a
from runtime.tracer.ambient import objects, state
from runtime.tracer.memory import hung
from runtime.tracer.numbers import scalars
from runtime.tracer.numbers.scalars import Staged
from runtime.tracer.numbers.staged_size import StagedSize
from runtime.tracer.python_state.held import RowField, holder
from runtime.tracer.values.alias_sets import AliasSet
from runtime.tracer.values.choices import make_rows, too_many
from runtime.tracer.values.numpy_arrays import ArrayMethod, NumpyArray
from runtime.tracer.values.structure import (
    BOUND,
    DYNAMIC,
    Array,
    Choice,
    DictContent,
    Fields,
    JoinContext,
    Known,
    ListContent,
    Made,
    Number,
    Options,
    Reference,
    Sequence,
    Structure,
    Tensor,
    can_be_copied,
    field_items,
    growing,
    has_traced,
    is_container,
    known_items,
    row_of,
    same_keys,
    same_known,
    width,
)

if TYPE_CHECKING:
    from runtime.tracer.recording.session import Session


_TEXTS = 16
"""How many known strings a variable may be; of more, the string itself is carried."""

_OPTIONS = 256
"""How many different things a variable may be."""

_CONTAINERS = 64
"""Of so many, lists and what they hold are no longer told apart: an item is the number of a row, where it can be."""

_LENGTHS = 4
"""Tuples of so many lengths become one whose length is carried."""


def structure_of(session: Session, value: Any, context: JoinContext) -> Structure:
    """The structure in which ``value`` is carried by Variables."""
    row = row_of(value)
    if row is not None:
        return Reference(row.heap, type(value))
    if is_a(value, RowField):
        value.refuse()
    own = is_container(value) and id(value) not in session.objects.externals
    copied = context.copying and (own or can_be_copied(session, value))
    if context.copying and session.holds_by_reference(type(value)) and id(value) not in session.objects.externals:
        found = holder(session, value)
        if found is not None:
            return Reference(found, type(value))
    if id(value) in context.made and not copied:
        return context.made[id(value)]
    if is_a(value, Staged):
        return Number(value.kind)
    if is_a(value, torch.Tensor):
        return _tensor_structure(session, value)
    if is_a(value, Choice):
        options = Options(tuple(_options(session, value, context)))
        if context.copying:
            return one_kind(session, options, context)
        return options
    if is_container(value) and not copied:
        return Known(value)
    grown = growing(value) if type(value) in (list, ListContent, tuple) else None
    if grown is not None:
        return Array(grown.item, grown.alias_set, tuple if type(value) is tuple else list)
    if type(value) is ListContent:
        return Sequence(ListContent, tuple(map(Known, value)))
    if type(value) is DictContent:
        keys, items = tuple(value), tuple(value.values())
        return Fields(DictContent, keys, tuple(map(Known, items)))
    if type(value) in (list, tuple, StagedSize):
        return Sequence(type(value), tuple(structure_of(session, item, context) for item in value))
    if objects.is_record(value) and not copied:
        return Known(value)
    if copied and is_container(value) and objects.attributes(value):
        return Known(value)
    if objects.is_users_tuple(value) and (session.is_whole(type(value)) or not has_traced(value)):
        return Known(value)
    fields = field_items(value)
    if fields is not None and (copied or is_a(value, (dict, tuple)) or has_traced(value)):
        return Fields(type(value), fields[0], tuple(structure_of(session, item, context) for item in fields[1]))
    return Known(value)


def _options(session: Session, value: Choice, context: JoinContext) -> Iterator[Structure]:
    """How each of several values is carried, those of an option that is one of several in its place."""
    for option in value.options:
        if is_a(option, Choice):
            yield from _options(session, option, context)
        else:
            yield carried(session, structure_of(session, option, context), context)


def _tensor_structure(session: Session, value: torch.Tensor) -> Tensor:
    info = session.info(value)
    fake = session.fake(value)
    strides: tuple[Any, ...] | None
    if fake.layout is not torch.strided:
        raise session.error(
            "a sparse tensor is assigned in a branch or loop whose condition is a tensor",
            hint="Make it dense before, or compute it outside.",
            code="D2S240",
        )
    contiguous, known = torch_internals.contiguity(fake)
    strides = None if contiguous else torch_internals.strides_of(fake)
    return Tensor(
        tuple(fake.shape),
        strides,
        fake.dtype,
        fake.device,
        info.requires_grad,
        info.layout_known and known and not (fake.is_conj() or fake.is_neg()),  # others need not be
        info.grad_in_some_runs,
        info.perhaps_retains or hung.retains(session, value) is not False,
    )


def item_structure(session: Session, value: Any, context: JoinContext) -> Structure:
    """The structure in which a list that grows holds ``value``."""
    return structure_of(session, value, context.copies())


def _same_size(a: Any, b: Any) -> bool:
    if a is DYNAMIC or b is DYNAMIC:
        return a is b
    if type(a) is int and type(b) is int:
        return a == b
    return torch_internals.size_expr(a) == torch_internals.size_expr(b)


def _unify_tensors(a: Tensor, b: Tensor) -> Structure:
    if a.device != b.device or a.dtype != b.dtype or len(a.shape) != len(b.shape):
        return Options((a, b))
    shape = tuple(x if _same_size(x, y) else DYNAMIC for x, y in zip(a.shape, b.shape))
    same_layout = (a.strides is None and b.strides is None) or (
        a.strides is not None and b.strides is not None and all(map(_same_size, a.strides, b.strides))
    )
    strides = a.strides if same_layout and DYNAMIC not in shape else None
    known = a.layout_known and b.layout_known and same_layout and (DYNAMIC not in shape or a.strides is None)
    needs = a.requires_grad or b.requires_grad
    in_some_runs = a.grad_in_some_runs or b.grad_in_some_runs or a.requires_grad != b.requires_grad
    retains = a.perhaps_retains or b.perhaps_retains
    return Tensor(shape, strides, a.dtype, a.device, needs, known, in_some_runs, retains)


def _opened(session: Session, s: Structure, context: JoinContext) -> Structure:
    """A known choice as its options, which are joined one by one; an object that an iteration made as such."""
    opened = is_a(s, Known) and (is_a(s.value, Choice) or id(s.value) in context.made)
    return structure_of(session, s.value, context) if is_a(s, Known) and opened else s


def unify(session: Session, a: Structure, b: Structure, context: JoinContext) -> Structure:
    """The structure that carries what either of two carries."""
    if is_a(a, Known) and is_a(b, Known) and same_known(a.value, b.value):
        return a
    a, b = _opened(session, a, context), _opened(session, b, context)
    if is_a(a, Options) or is_a(b, Options):
        return _unify_options(session, a, b, context)
    if is_a(a, Known) and is_a(a.value, torch.Tensor):
        a = structure_of(session, a.value, context)
    if is_a(b, Known) and is_a(b.value, torch.Tensor):
        b = structure_of(session, b.value, context)
    kinds = [_number_kind(s) for s in (a, b)]
    if kinds[0] is not None and kinds[0] == kinds[1]:
        return Number(kinds[0])
    if _is_text(a) and _is_text(b) and (_is_staged_text(a) or _is_staged_text(b)):
        return Number("str")
    if is_a(a, Tensor) and is_a(b, Tensor):
        return _unify_tensors(a, b)
    if is_a(a, Made) and is_a(b, Made) and a.cell == b.cell:
        return a
    kept = a, b
    a, b = _opened_fields(session, a, context), _opened_fields(session, b, context)
    if is_a(a, Reference) and is_a(b, Reference) and a.heap is b.heap and a.kind is b.kind:
        return a
    if is_a(a, Sequence) and is_a(b, Sequence) and a.kind is b.kind and len(a.items) == len(b.items):
        return Sequence(a.kind, tuple(unify(session, x, y, context) for x, y in zip(a.items, b.items)))
    if is_a(a, Fields) and is_a(b, Fields) and a.cls is b.cls and same_keys(a.keys, b.keys):
        items = tuple(unify(session, x, y, context) for x, y in zip(a.items, b.items))
        if a.cls in BOUND:  # of tensors that differ there are two methods, or arrays
            whole = is_a(items[0], Tensor)
        else:
            whole = not issubclass(a.cls, (NumpyArray, ArrayMethod)) or not is_a(items[0], Options)
        if whole:
            return Fields(a.cls, a.keys, items)
    first, second = (carried(session, one, context) for one in kept)
    return _unify_arrays(session, a, b, context) or Options((first, second))


def _unify_arrays(session: Session, a: Structure, b: Structure, context: JoinContext) -> Structure | None:
    """Lists of different lengths become one whose length is carried, if their items have one structure.

    Tuples do if the length of one is carried already: else they stay one of several.
    """
    kind = _kind_of_items(a)
    if kind is None or kind is not _kind_of_items(b):
        return None
    if kind is tuple and not (is_a(a, Array) or is_a(b, Array)):
        return None
    lists: list[Array | Sequence] = [s for s in (a, b) if is_a(s, (Array, Sequence))]
    if not context.arrays_hold_containers and any(map(_holds_container, lists)):
        return None  # and what those of a path hold is not asked for outside it
    items: list[Structure] = []
    for one in lists:
        items += [one.item] if is_a(one, Array) else [_copied(session, item, context) for item in one.items]
    if not items:
        return None
    item = items[0]
    for other in items[1:]:
        item = unify(session, item, other, context)
    items_of_one = as_items(structure_of(session, item.value, context) if is_a(item, Known) else item)
    if is_a(items_of_one, Options) and not (context.mixed_lists or is_a(a, Array) or is_a(b, Array)):
        return None
    alias_set = AliasSet()
    for s in (a, b):
        if is_a(s, Array):
            alias_set = s.alias_set.merge(alias_set)
    return Array(items_of_one, alias_set, kind)


def _kind_of_items(s: Structure) -> type | None:
    """Whether a structure is that of a list, or of a tuple without names."""
    if is_a(s, Array):
        return s.kind
    if is_a(s, Sequence) and s.kind in (list, ListContent, tuple):
        return tuple if s.kind is tuple else list
    return None


def _holds_container(s: Structure) -> bool:
    """Whether what is joined to a list that grows holds containers, of which that would have copies."""
    return is_a(s, Sequence) and any(map(_is_container_item, s.items))


def _is_container_item(s: Structure) -> bool:
    if is_a(s, Options):
        return any(map(_is_container_item, s.options))
    if is_a(s, (Sequence, Fields)):
        return any(map(_is_container_item, s.items))
    return is_a(s, Made) or (is_a(s, Known) and _is_or_holds_container(s.value))


def _is_or_holds_container(value: Any) -> bool:
    if is_a(value, Choice):
        return any(map(_is_or_holds_container, value.options))
    if row_of(value) is not None:
        return False
    return is_container(value) or (is_a(value, tuple) and any(map(_is_or_holds_container, value)))


def _copied(session: Session, item: Structure, context: JoinContext) -> Structure:
    """The structure of an item as a list that grows holds it: containers and records by what they hold."""
    if is_a(item, Known):
        if id(item.value) in context.pictures:
            return context.pictures[id(item.value)]
        if is_container(item.value) or can_be_copied(session, item.value):
            return item_structure(session, item.value, context)
        opened = structure_of(session, item.value, context)
        return item if is_a(opened, Known) else _copied(session, opened, context)
    if is_a(item, Options):
        return one_kind(session, Options(tuple(_copied(session, option, context) for option in item.options)), context)
    if is_a(item, (Sequence, Fields)):
        return dataclasses.replace(item, items=tuple(_copied(session, inner, context) for inner in item.items))
    return item.picture if is_a(item, Made) and item.picture is not None else item


def one_kind(session: Session, options: Options, context: JoinContext) -> Structure:
    """Options of which several copies have one structure."""
    first, *rest = options.options
    return _unify_options(session, first, Options(tuple(rest)), context) if rest else options


def as_items(item: Structure) -> Structure:
    """An item's structure as an array holds it: carried by a Variable at least, so that there is an array at all."""
    made = set(_made_in(item))
    if made:
        state.current().hold_by_reference(*made)
        raise state.current().error(
            "an object that is made in a loop is put into a list that grows there, which would hold copies of it",
            hint="Append what it holds (its tensors and numbers), or give the list its final length before the loop.",
            code="D2S251",
        )
    state.current().hold_by_reference(*_with_containers(item))
    carried = _as_item(item)
    return carried if width(carried) else Options((carried,))


def _made_in(item: Structure) -> Iterator[type]:
    """The classes of objects in an item that an iteration of a loop made."""
    if is_a(item, Made):
        yield item.cls
    for inner in item.options if is_a(item, Options) else ():
        yield from _made_in(inner)
    for inner in item.items if is_a(item, (Sequence, Fields)) else ():
        yield from _made_in(inner)


def _with_containers(item: Structure) -> set[type]:
    """The classes of objects that are known to be items, and hold containers: what these hold is a path's own."""
    created = state.current().objects.created
    return {type(one) for one in known_items(Array(item, AliasSet())) if id(one) in created and row_of(one) is None
            and any(map(is_container, objects.contents(one).values()))}  # fmt: skip


def _as_item(item: Structure) -> Structure:
    """Constants inside become carried numbers."""
    if is_a(item, Options):
        return Options(tuple(map(_as_item, item.options)))
    if is_a(item, Known):
        kind = _number_kind(item)
        return Number(kind) if kind is not None else item
    if is_a(item, Sequence):
        return Sequence(item.kind, tuple(map(_as_item, item.items)))
    if is_a(item, Fields):
        return Fields(item.cls, item.keys, tuple(map(_as_item, item.items)))
    return item


def _number_kind(s: Structure) -> str | None:
    if is_a(s, Number):
        return s.kind
    kind = scalars.kind_of(s.value) if is_a(s, Known) else None
    return kind if kind in ("int", "float", "bool") else None


def _is_text(s: Structure) -> bool:
    """Whether a structure carries a string, a known one or one that is computed while the Program runs."""
    return _is_staged_text(s) or is_a(s, Known) and type(s.value) is str


def _is_staged_text(s: Structure) -> bool:
    """Whether it is one that is computed then: in a list's content it stands as itself."""
    return is_a(s, Number) and s.kind == "str" or is_a(s, Known) and is_a(s.value, scalars.StagedStr)


def _few(session: Session, options: list[Structure]) -> list[Structure]:
    """The options with one string in place of many: each part put to a string on a path doubles their number.

    Raises:
        TraceError: D2S255: there are too many of other kinds.
    """
    texts = [option for option in options if _is_text(option)]
    if len(texts) > _TEXTS or (len(texts) > 1 and any(is_a(option, Number) for option in texts)):
        place = options.index(texts[0])
        options = [option for option in options if not _is_text(option)]
        options.insert(place, Number("str"))
    require_few(session, Options(tuple(options)))
    return options


def require_few(session: Session, s: Structure) -> Structure:
    """A structure, if it is not one of too many.

    Raises:
        TraceError: D2S255.
    """
    count = _ways(s)
    if count > _OPTIONS:
        raise too_many(session, count, _known_in(s))
    if count > _CONTAINERS:
        make_rows(session, _known_in(s))
    return s


def _ways(s: Structure) -> int:
    """How many different things a value of structure ``s`` may be, and what it holds."""
    if is_a(s, Options):
        return sum(map(_ways, s.options))
    if is_a(s, (Sequence, Fields)):
        return 1 + sum(_ways(item) - 1 for item in s.items)
    return 1


def _known_in(s: Structure) -> Iterator[Any]:
    """The objects that a value may be, or have inside."""
    if is_a(s, Known):
        yield s.value
    for one in s.options if is_a(s, Options) else s.items if is_a(s, (Sequence, Fields)) else ():
        yield from _known_in(one)


def _opened_fields(session: Session, s: Structure, context: JoinContext) -> Structure:
    return structure_of(session, s.value, context) if is_a(s, Known) else s


def carried(session: Session, s: Structure, context: JoinContext) -> Structure:
    """A structure without values of the trace that are taken as known: they may belong to one path only."""
    if is_a(s, Known):
        if is_a(s.value, (torch.Tensor, Staged, Choice)) or id(s.value) in context.made:
            return structure_of(session, s.value, context)
        if row_of(s.value) is not None:
            return structure_of(session, s.value, context)
        traced = is_a(s.value, tuple) or field_items(s.value) is not None
        if not traced or is_container(s.value):
            return s
        s = structure_of(session, s.value, context)
    if is_a(s, (Sequence, Fields)):
        return dataclasses.replace(s, items=tuple(carried(session, item, context) for item in s.items))
    return s


def with_rows(session: Session, s: Structure, context: JoinContext) -> Structure:
    """A structure with references to the dicts and objects in it that are rows: what they are is known on a path."""
    if is_a(s, Known):
        if row_of(s.value) is not None:
            return structure_of(session, s.value, context)
        return carried(session, s, context) if is_a(s.value, tuple) and has_traced(s.value) else s
    if is_a(s, (Sequence, Fields)):
        return dataclasses.replace(s, items=tuple(with_rows(session, item, context) for item in s.items))
    return s


def _unify_options(session: Session, a: Structure, b: Structure, context: JoinContext) -> Structure:
    options: list[Structure] = list(a.options) if is_a(a, Options) else [carried(session, a, context)]
    for other in b.options if is_a(b, Options) else (carried(session, b, context),):
        for index, option in enumerate(options):
            joined = unify(session, option, other, context)
            if not is_a(joined, Options):
                options[index] = joined
                break
        else:
            options.append(other)
    options = _few(session, _with_one_tuple(session, options, context))
    return options[0] if len(options) == 1 else Options(tuple(options))


def _with_one_tuple(session: Session, options: list[Structure], context: JoinContext) -> list[Structure]:
    """The options with one tuple whose length is carried in place of many of other lengths: a loop makes it longer."""
    tuples = [option for option in options if _kind_of_items(option) is tuple]
    lengths = {len(s.items) for s in tuples if is_a(s, Sequence)}
    if len(tuples) < 2 or (len(lengths) == len(tuples) < _LENGTHS):
        return options
    first = tuples[0]
    joined: Structure | None = first
    if is_a(first, Sequence):
        longest = max((s for s in tuples if is_a(s, Sequence)), key=lambda s: len(s.items))
        item = as_items(_copied(session, longest.items[0], context)) if longest.items else None
        joined = None if item is None or is_a(item, Options) else Array(item, AliasSet(), tuple)
    for other in tuples:
        joined = None if joined is None else _unify_arrays(session, joined, other, context)
        if not is_a(joined, Array) or is_a(joined.item, Options):
            return options
    assert joined is not None
    place = options.index(first)
    return [joined if index == place else option for index, option in enumerate(options)
            if index == place or option not in tuples]


def fits(session: Session, inner: Structure, outer: Structure, context: JoinContext) -> bool:
    """Whether ``outer`` already carries everything ``inner`` does (so that unifying changes nothing)."""
    if is_a(outer, Known) and is_a(inner, Known) and same_known(inner.value, outer.value):
        return True
    inner = _opened(session, inner, context)
    if is_a(inner, Options):
        return all(fits(session, option, outer, context) for option in inner.options)
    if is_a(outer, Options):
        return any(fits(session, inner, target, context) for target in outer.options)
    if is_a(outer, Known):
        return False
    if is_a(outer, Made):
        return is_a(inner, Made) and inner.cell == outer.cell
    if is_a(outer, Number) and outer.kind == "str":
        return _is_text(inner)
    if is_a(outer, Number):
        return _number_kind(inner) == outer.kind
    if is_a(inner, Known):
        inner = structure_of(session, inner.value, context)
        if is_a(inner, Known):
            return False
    if is_a(outer, Reference):
        return is_a(inner, Reference) and inner.heap is outer.heap and inner.kind is outer.kind
    if is_a(outer, Array):
        if _kind_of_items(inner) is not outer.kind:
            return False
        if is_a(inner, Array):
            return fits(session, inner.item, outer.item, context)  # ``lower`` converts the arrays
        return (
            is_a(inner, Sequence)
            and (context.arrays_hold_containers or not _holds_container(inner))
            and all(fits(session, _copied(session, x, context), outer.item, context) for x in inner.items)
        )
    if is_a(outer, Tensor) and is_a(inner, Tensor):
        if inner.device != outer.device or inner.dtype != outer.dtype or len(inner.shape) != len(outer.shape):
            return False
        if (inner.grad_in_some_runs or inner.requires_grad != outer.requires_grad) and not outer.grad_in_some_runs:
            return False
        if inner.perhaps_retains and not outer.perhaps_retains:
            return False
        if outer.layout_known and not (inner.layout_known and (inner.strides is None) == (outer.strides is None)):
            return False
        return all(y is DYNAMIC or _same_size(x, y) for x, y in zip(inner.shape, outer.shape))
    if is_a(outer, Sequence) and is_a(inner, Sequence):
        return (
            inner.kind is outer.kind
            and len(inner.items) == len(outer.items)
            and all(fits(session, x, y, context) for x, y in zip(inner.items, outer.items))
        )
    if is_a(outer, Fields) and is_a(inner, Fields):
        return (
            inner.cls is outer.cls
            and same_keys(inner.keys, outer.keys)
            and all(fits(session, x, y, context) for x, y in zip(inner.items, outer.items))
        )
    return False


__all__ = ["as_items", "carried", "fits", "require_few", "unify", "with_rows"]
