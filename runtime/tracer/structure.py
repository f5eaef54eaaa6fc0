"""The structure of Python values: what two paths have in common, and the Variables that carry the rest.

``structure_of`` pictures a value; ``unify`` finds the structure that fits two; ``lower`` gives the operands that carry
a value in that structure; ``lift`` rebuilds a value from Variables.
``cond``, ``while_loop`` and ``switch`` all join with these.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn

import torch

from runtime import torch_internals
from runtime.ir import UNDEF, ArrayType, Block, ObjectType, Operand, ScalarType, TensorType, Type, Variable
from runtime.tracer import objects, scalars, state
from runtime.tracer.choices import ChoiceOperators
from runtime.tracer.guards import is_plain, same_plain
from runtime.tracer.journal import MISSING
from runtime.tracer.pools import Pool
from runtime.tracer.scalars import Staged, StagedInt
from runtime.tracer.staged_size import StagedSize

if TYPE_CHECKING:
    from runtime.tracer.session import Session

DYNAMIC = "dynamic"
"""A size that differs between paths or iterations."""


class Undefined:
    """What a name holds before it is bound. Reading it raises UnboundLocalError with the user's name."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"<unbound {self.name}>"


class Choice(ChoiceOperators):
    """A value whose structure is only known at run time: ``options[selector]``."""

    __slots__ = ("selector", "options")

    def __init__(self, selector: StagedInt, options: tuple[Any, ...]) -> None:
        self.selector = selector
        self.options = options


class Growing:
    """The content of a list whose length is only known at run time; it stands as the list's only item while tracing.

    ``variables`` are arrays, one for each Variable that carries an item of structure ``item``.
    """

    __slots__ = ("variables", "item", "pool", "joined", "__weakref__")

    def __init__(self, variables: tuple[Variable, ...], item: Structure, pool: Pool) -> None:
        self.variables = variables
        self.item = item
        self.pool = pool
        pool.hold(self)
        self.joined: tuple[list[Any], Growing] | None = None
        """A list that Python's own ``+`` made and that this is the first array of, and what it holds."""

    def __repr__(self) -> str:
        return "<items known while the Program runs>"

    def __lt__(self, other: object) -> NoReturn:
        raise state.current().error(
            "lists are compared by order, and one has a length that is only known while the Program runs",
            hint="Compare their lengths, or their items in a loop.", code="D2S253")  # fmt: skip

    __le__ = __gt__ = __ge__ = __lt__


def growing(value: object) -> Growing | None:
    """What a list holds, if its length is only known at run time."""
    if type(value) is not list or not any(isinstance(item, Growing) for item in value):
        return None
    if len(value) > 1:  # made by Python's own +
        from runtime.tracer.array import parts_joined

        return parts_joined(value)
    found = value[0]
    assert isinstance(found, Growing)
    return found


@dataclass(frozen=True, eq=False)
class Known:
    """A value that needs no Variable: a plain constant, or one and the same object.

    ``picture``: for a list or dict older than the construct, how to carry a copy of it where one must be made.
    """

    value: Any
    picture: Structure | None = None


@dataclass(frozen=True, eq=False)
class Number:
    """A Python number or string carried by a scalar Variable."""

    kind: str


@dataclass(frozen=True, eq=False)
class Tensor:
    """A tensor carried by a Variable. Sizes: ints, SymInts or DYNAMIC. ``strides`` None: contiguous."""

    shape: tuple[Any, ...]
    strides: tuple[Any, ...] | None
    dtype: torch.dtype
    device: torch.device
    requires_grad: bool
    layout_known: bool
    sometimes: bool = False


@dataclass(frozen=True, eq=False)
class Sequence:
    """A list or tuple, item by item."""

    kind: type
    items: tuple[Structure, ...]


@dataclass(frozen=True, eq=False)
class Fields:
    """A dict, namedtuple, dataclass or other mapping with fixed keys."""

    cls: type
    keys: tuple[Any, ...]
    items: tuple[Structure, ...]


@dataclass(frozen=True, eq=False)
class Array:
    """A list whose length differs between paths or iterations: one array Variable for each Variable of an item."""

    item: Structure
    pool: Pool = field(default_factory=Pool)


@dataclass(frozen=True, eq=False)
class Options:
    """One of several structures, chosen at run time: carried by a selector and every option's Variables."""

    options: tuple[Structure, ...]


@dataclass(frozen=True, eq=False)
class Made:
    """An object that an iteration made: the loop carries what it holds, once for all that know it (loop_objects).

    ``picture``: how a list that grows holds a copy of it, where it may.
    """

    cell: Hashable
    cls: type
    picture: Structure | None = None


Structure = Known | Number | Tensor | Sequence | Fields | Array | Options | Made


def is_namedtuple(value: object) -> bool:
    """Whether a value is an instance of a namedtuple class, torch's own (``torch.return_types``) included."""
    return isinstance(value, tuple) and (hasattr(type(value), "_fields") or _is_return_type(type(value)))


def _is_return_type(cls: type) -> bool:
    return cls.__module__ == "torch.return_types"


def field_items(value: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]] | None:
    """Keys and items of a dict, namedtuple or dataclass instance; None for anything else."""
    if isinstance(value, dict):
        if not all(is_plain(key) for key in value):
            return None
        return tuple(value.keys()), tuple(value.values())
    if is_namedtuple(value):
        cls: Any = type(value)
        return tuple(cls.__match_args__ if _is_return_type(cls) else cls._fields), tuple(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = tuple(field.name for field in dataclasses.fields(value) if hasattr(value, field.name))
        return names, tuple(getattr(value, name) for name in names)
    return None


def rebuild_fields(cls: type, keys: tuple[Any, ...], items: tuple[Any, ...]) -> Any:
    """The inverse of ``field_items``."""
    if issubclass(cls, tuple):
        return cls(items) if _is_return_type(cls) else cls(*items)
    if issubclass(cls, dict):
        if cls is dict:
            return dict(zip(keys, items))
        if dataclasses.is_dataclass(cls):
            return cls(**dict(zip(keys, items)))
        mapping = cls()
        for key, item in zip(keys, items):  # update() of a Counter would count
            mapping[key] = item
        return mapping
    result: Any = object.__new__(cls)
    for key, item in zip(keys, items):
        if item is not MISSING:
            object.__setattr__(result, key, item)
    return result


def same_known(a: Any, b: Any) -> bool:
    """Whether two values are one constant: the same object, or equal plain values of one type."""
    if a is b:
        return True
    if isinstance(a, Undefined) and isinstance(b, Undefined):
        return True
    return is_plain(a) and is_plain(b) and same_plain(a, b)


def has_traced(value: Any, depth: int = 0) -> bool:
    """Whether a tensor or staged value is inside."""
    if isinstance(value, (torch.Tensor, Staged, Choice, Growing)):
        return True
    if depth > 8:
        return False
    if type(value) in (list, tuple, StagedSize):
        return any(has_traced(item, depth + 1) for item in value)
    fields = field_items(value)
    return fields is not None and any(has_traced(item, depth + 1) for item in fields[1])


def structure_of(session: Session, value: Any) -> Structure:
    """The structure in which ``value`` is carried by Variables."""
    copied = session.copying and can_be_copied(session, value)
    if id(value) in session.made and not copied:
        return session.made[id(value)]
    if isinstance(value, Staged):
        return Number(value.kind)
    if isinstance(value, torch.Tensor):
        return _tensor_structure(session, value)
    if isinstance(value, Choice):
        options = Options(tuple(_option(session, option) for option in value.options))
        return _one_kind(session, options) if session.copying else options
    grown = growing(value)
    if grown is not None:
        return Array(grown.item, grown.pool)
    if type(value) in (list, tuple, StagedSize):
        return Sequence(type(value), tuple(structure_of(session, item) for item in value))
    if objects.is_record(value) and not copied:
        return Known(value)
    fields = field_items(value)
    if fields is not None and (copied or isinstance(value, (dict, tuple)) or has_traced(value)):
        return Fields(type(value), fields[0], tuple(structure_of(session, item) for item in fields[1]))
    return Known(value)


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
    strides = None if contiguous else tuple(fake.stride())
    return Tensor(
        tuple(fake.shape),
        strides,
        fake.dtype,
        fake.device,
        info.requires_grad,
        info.layout_known and known,
        info.sometimes,
    )


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
    sometimes = a.sometimes or b.sometimes or a.requires_grad != b.requires_grad
    return Tensor(shape, strides, a.dtype, a.device, needs, known, sometimes)


def _opened(session: Session, s: Structure) -> Structure:
    """A known choice as its options, which are joined one by one; an object that an iteration made as such."""
    opened = isinstance(s, Known) and (isinstance(s.value, Choice) or id(s.value) in session.made)
    return structure_of(session, s.value) if isinstance(s, Known) and opened else s


def unify(session: Session, a: Structure, b: Structure) -> Structure:
    """The structure that carries what either of two carries."""
    if isinstance(a, Known) and isinstance(b, Known) and same_known(a.value, b.value):
        return a
    a, b = _opened(session, a), _opened(session, b)
    if isinstance(a, Options) or isinstance(b, Options):
        return _unify_options(session, a, b)
    if isinstance(a, Known) and isinstance(a.value, torch.Tensor):
        a = structure_of(session, a.value)
    if isinstance(b, Known) and isinstance(b.value, torch.Tensor):
        b = structure_of(session, b.value)
    kinds = [_number_kind(s) for s in (a, b)]
    if kinds[0] is not None and kinds[0] == kinds[1]:
        return Number(kinds[0])
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        return _unify_tensors(a, b)
    if isinstance(a, Made) and isinstance(b, Made) and a.cell == b.cell:
        return a
    kept = a, b
    a, b = _pictured(session, a), _pictured(session, b)
    if isinstance(a, Sequence) and isinstance(b, Sequence) and a.kind is b.kind and len(a.items) == len(b.items):
        return Sequence(a.kind, tuple(unify(session, x, y) for x, y in zip(a.items, b.items)))
    if isinstance(a, Fields) and isinstance(b, Fields) and a.cls is b.cls and a.keys == b.keys:
        return Fields(a.cls, a.keys, tuple(unify(session, x, y) for x, y in zip(a.items, b.items)))
    return _unify_arrays(session, a, b) or Options((_carried(session, kept[0]), _carried(session, kept[1])))


def _unify_arrays(session: Session, a: Structure, b: Structure) -> Structure | None:
    """Lists of different lengths become one whose length is carried, if their items have one structure."""
    items: list[Structure] = []
    pool = Pool()
    for s in (a, b):
        if isinstance(s, Array):
            items.append(s.item)
            pool = s.pool.merge(pool)
        elif isinstance(s, Sequence) and s.kind is list:
            items += [_copied(session, item) for item in s.items]
        else:
            return None
    if not items:
        return None
    item = items[0]
    for other in items[1:]:
        item = unify(session, item, other)
    items_of_one = as_items(structure_of(session, item.value) if isinstance(item, Known) else item)
    if isinstance(items_of_one, Options) and not (session.mixed_lists or isinstance(a, Array) or isinstance(b, Array)):
        return None
    return Array(items_of_one, pool)


def as_items(item: Structure) -> Structure:
    """An item's structure as an array holds it: carried by a Variable at least, so that there is an array at all."""
    if _has_made(item):
        raise state.current().error(
            "an object that is made in a loop is put into a list that grows there, which would hold copies of it",
            hint="Append what it holds (its tensors and numbers), or give the list its final length before the loop.",
            code="D2S251",
        )
    carried = _as_item(item)
    return carried if width(carried) else Options((carried,))


def _copied(session: Session, item: Structure) -> Structure:
    """The structure of an item as a list that grows holds it: instances of dataclasses by their fields."""
    if isinstance(item, Options):
        return _one_kind(session, Options(tuple(_copied(session, option) for option in item.options)))
    if isinstance(item, (Sequence, Fields)):
        return dataclasses.replace(item, items=tuple(_copied(session, inner) for inner in item.items))
    if isinstance(item, Known) and can_be_copied(session, item.value):
        return item_structure(session, item.value)
    return item.picture if isinstance(item, Made) and item.picture is not None else item


def _one_kind(session: Session, options: Options) -> Structure:
    """Options of which several copies have one structure."""
    first, *rest = options.options
    return _unify_options(session, first, Options(tuple(rest))) if rest else options


def can_be_copied(session: Session, value: Any) -> bool:
    """Whether a list that grows holds an object by its fields: an instance of a dataclass with nothing more.

    One of the caller's is held as itself.
    """
    if not objects.is_record(value) or id(value) in session.externals:
        return False
    return objects.attributes(value).keys() <= {field.name for field in dataclasses.fields(value)}


def item_structure(session: Session, value: Any) -> Structure:
    """The structure in which a list that grows holds ``value``."""
    with _copying(session):
        return structure_of(session, value)


@contextlib.contextmanager
def _copying(session: Session) -> Iterator[None]:
    before, session.copying = session.copying, True
    try:
        yield
    finally:
        session.copying = before


def _has_made(item: Structure) -> bool:
    if isinstance(item, Options):
        return any(map(_has_made, item.options))
    return isinstance(item, Made) or (isinstance(item, (Sequence, Fields)) and any(map(_has_made, item.items)))


def _as_item(item: Structure) -> Structure:
    """Constants inside become carried numbers."""
    if isinstance(item, Options):
        return Options(tuple(map(_as_item, item.options)))
    if isinstance(item, Known):
        kind = _number_kind(item)
        return Number(kind) if kind is not None else item
    if isinstance(item, Sequence):
        return Sequence(item.kind, tuple(map(_as_item, item.items)))
    if isinstance(item, Fields):
        return Fields(item.cls, item.keys, tuple(map(_as_item, item.items)))
    return item


def _number_kind(s: Structure) -> str | None:
    if isinstance(s, Number):
        return s.kind
    kind = scalars.kind_of(s.value) if isinstance(s, Known) else None
    return kind if kind in ("int", "float", "bool") else None


def _option(session: Session, value: Any) -> Structure:
    mine = known(session, value, session.older)
    return mine if mine.picture is not None else structure_of(session, value)


def known(session: Session, value: Any, older: frozenset[int]) -> Known:
    """A value taken as it is; ``older`` are the containers that existed before the construct."""
    return Known(value, structure_of(session, value) if id(value) in older else None)


def _pictured(session: Session, s: Structure) -> Structure:
    if not isinstance(s, Known):
        return s
    return s.picture if s.picture is not None else structure_of(session, s.value)


def _carried(session: Session, s: Structure) -> Structure:
    """The structure of an option: what is traced in it is carried, for it may belong to one path only."""
    if isinstance(s, Known) and s.picture is not None:
        return s
    traced = isinstance(s, Known) and (has_traced(s.value) or _holds_made(session, s.value))
    return structure_of(session, s.value) if isinstance(s, Known) and traced else s


def _holds_made(session: Session, value: Any) -> bool:
    """Whether a container holds an object that an iteration made."""
    if id(value) in session.made:
        return True
    if not session.made or not isinstance(value, (list, tuple, dict)):
        return False
    return any(_holds_made(session, item) for item in (value.values() if isinstance(value, dict) else value))


def _unify_options(session: Session, a: Structure, b: Structure) -> Structure:
    options: list[Structure] = list(a.options) if isinstance(a, Options) else [_carried(session, a)]
    for other in b.options if isinstance(b, Options) else (_carried(session, b),):
        for index, option in enumerate(options):
            joined = unify(session, option, other)
            if not isinstance(joined, Options):
                options[index] = joined
                break
        else:
            options.append(other)
    return options[0] if len(options) == 1 else Options(tuple(options))


def fits(session: Session, inner: Structure, outer: Structure) -> bool:
    """Whether ``outer`` already carries everything ``inner`` does (so that unifying changes nothing)."""
    if isinstance(outer, Known):
        return isinstance(inner, Known) and same_known(inner.value, outer.value)
    inner = _opened(session, inner)
    if isinstance(outer, Options):
        options = inner.options if isinstance(inner, Options) else (inner,)
        return all(any(fits(session, option, target) for target in outer.options) for option in options)
    if isinstance(outer, Made):
        options = inner.options if isinstance(inner, Options) else (inner,)
        return all(isinstance(option, Made) and option.cell == outer.cell for option in options)
    if isinstance(inner, Options):
        return False
    if isinstance(outer, Number):
        return _number_kind(inner) == outer.kind
    if isinstance(inner, Known):
        if not isinstance(inner.value, (torch.Tensor, list, tuple, dict)) and field_items(inner.value) is None:
            return False
        inner = structure_of(session, inner.value)
    if isinstance(outer, Array):
        if isinstance(inner, Array):
            return fits(session, inner.item, outer.item)  # ``lower`` converts the arrays
        return (
            isinstance(inner, Sequence)
            and inner.kind is list
            and all(fits(session, _copied(session, x), outer.item) for x in inner.items)
        )
    if isinstance(outer, Tensor) and isinstance(inner, Tensor):
        if inner.device != outer.device or inner.dtype != outer.dtype or len(inner.shape) != len(outer.shape):
            return False
        if (inner.sometimes or inner.requires_grad != outer.requires_grad) and not outer.sometimes:
            return False
        if outer.layout_known and not (inner.layout_known and (inner.strides is None) == (outer.strides is None)):
            return False
        return all(y is DYNAMIC or _same_size(x, y) for x, y in zip(inner.shape, outer.shape))
    if isinstance(outer, Sequence) and isinstance(inner, Sequence):
        return (
            inner.kind is outer.kind
            and len(inner.items) == len(outer.items)
            and all(fits(session, x, y) for x, y in zip(inner.items, outer.items))
        )
    if isinstance(outer, Fields) and isinstance(inner, Fields):
        return (
            inner.cls is outer.cls
            and inner.keys == outer.keys
            and all(fits(session, x, y) for x, y in zip(inner.items, outer.items))
        )
    return False


def lower(session: Session, value: Any, s: Structure) -> list[Operand]:
    """The operands that carry ``value`` in structure ``s``, read in the current Block."""
    if isinstance(value, Choice) and session.copying and not isinstance(s, (Known, Options)):
        return _lower_options(session, value, Options((s,)))[1:]
    if isinstance(s, (Known, Made)):
        return []
    if isinstance(s, Number):
        return [session.operand(value)]
    if isinstance(s, Tensor):
        return [session.read(value)]
    if isinstance(s, Sequence):
        return [operand for item, inner in zip(value, s.items) for operand in lower(session, item, inner)]
    if isinstance(s, Fields):
        fields = field_items(value)
        assert fields is not None
        return [operand for item, inner in zip(fields[1], s.items) for operand in lower(session, item, inner)]
    if isinstance(s, Array):
        return _lower_array(session, value, s)
    return _lower_options(session, value, s)


def _lower_array(session: Session, value: Any, s: Array) -> list[Operand]:
    """Arrays for a list: its own where it has grown already, new ones from the items of a plain list."""
    grown = growing(value)
    if grown is not None:
        from runtime.tracer.array import with_items

        s.pool.merge(grown.pool)
        grown = with_items(session, grown, s.item)
        return [session.require_visible(var, "a list") for var in grown.variables]
    rows = [lower_item(session, item, s.item) for item in value]
    for item in value:
        s.pool.put(session, item)
    arrays: list[Operand] = []
    for position, type_ in enumerate(types(session, s.item)):
        arrays += session.emit("array.new", [[row[position] for row in rows]], types=[ArrayType(type_)])
    return arrays


def lower_item(session: Session, value: Any, s: Structure) -> list[Operand]:
    """The operands that carry an item of an array: None where they stand for an option that the item is not."""
    with _copying(session):
        return [None if operand is UNDEF else operand for operand in lower(session, value, s)]


def _lower_options(session: Session, value: Any, s: Options) -> list[Operand]:
    def target(option: Any) -> int:
        pictured = structure_of(session, option)
        for index, candidate in enumerate(s.options):
            if fits(session, pictured, candidate) or fits(session, Known(option), candidate):
                return index
        raise AssertionError("a value does not fit the structure it was unified into")

    slots: list[list[Operand] | None] = [None] * len(s.options)
    selector: Operand
    if isinstance(value, Choice):
        targets = [target(option) for option in value.options]
        selector = session.operand(value.selector)
        if targets != list(range(len(targets))):
            chosen: Any = targets[-1]
            for index in range(len(targets) - 2, -1, -1):
                chosen = session.scalar("select", value.selector == index, targets[index], chosen)
            selector = session.operand(chosen)
        for number, (option, index) in enumerate(zip(value.options, targets)):
            operands = lower(session, option, s.options[index])
            before = slots[index]
            slots[index] = (
                operands
                if before is None
                else _one_of(session, value.selector == number, operands, before, s.options[index])
            )
    else:
        index = target(value)
        selector = index
        slots[index] = lower(session, value, s.options[index])
    result: list[Operand] = [selector]
    for operands_or_none, option in zip(slots, s.options):
        result += operands_or_none if operands_or_none is not None else [UNDEF] * width(option)
    return result


def _one_of(session: Session, flag: Any, a: list[Operand], b: list[Operand], s: Structure) -> list[Operand]:
    """Operands that are ``a`` where a flag is true, else ``b``; both carry a value of structure ``s``."""
    if not a:
        return a
    first, second = Block(yields=list(a)), Block(yields=list(b))
    return list(session.emit("cond", [session.operand(flag)], types=types(session, s), blocks=[first, second]))


def width(s: Structure) -> int:
    """How many Variables carry a value of structure ``s``."""
    if isinstance(s, (Known, Made)):
        return 0
    if isinstance(s, (Number, Tensor)):
        return 1
    if isinstance(s, Array):
        return width(s.item)
    if isinstance(s, Options):
        return 1 + sum(map(width, s.options))
    return sum(map(width, s.items))


def types(session: Session, s: Structure) -> list[Type]:
    """The types of the Variables that carry ``s``; sizes are filled in by ``lift``."""
    if isinstance(s, (Known, Made)):
        return []
    if isinstance(s, Number):
        return [ScalarType(s.kind)]  # type: ignore[arg-type]
    if isinstance(s, Tensor):
        return [TensorType(s.dtype, None)]
    if isinstance(s, Array):
        return [ArrayType(type_) for type_ in types(session, s.item)]
    if isinstance(s, Options):
        return [ScalarType("int"), *(t for option in s.options for t in types(session, option))]
    return [t for item in s.items for t in types(session, item)]


def lift(session: Session, s: Structure, variables: Iterator[Variable]) -> Any:
    """A value of structure ``s`` carried by the next Variables (which belong to the current Block)."""
    if isinstance(s, Known):
        return s.value
    if isinstance(s, Made):
        return session.stand_ins[s.cell]
    if isinstance(s, Number):
        return scalars.wrap(next(variables))
    if isinstance(s, Tensor):
        return _lift_tensor(session, s, next(variables))
    if isinstance(s, Sequence):
        return s.kind(lift(session, item, variables) for item in s.items)
    if isinstance(s, Fields):
        made = rebuild_fields(s.cls, s.keys, tuple(lift(session, item, variables) for item in s.items))
        if not isinstance(made, (dict, tuple)):
            session.created[id(made)] = made
            session.journal.note_made(made)
        return made
    if isinstance(s, Array):
        return [Growing(tuple(next(variables) for _ in range(width(s.item))), s.item, s.pool)]
    selector = StagedInt(next(variables))
    return Choice(selector, tuple(lift(session, option, variables) for option in s.options))


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
    info.sometimes = s.sometimes
    return fake


__all__ = [
    "DYNAMIC",
    "Array",
    "Growing",
    "growing",
    "MISSING",
    "Choice",
    "Fields",
    "Known",
    "Made",
    "Number",
    "ObjectType",
    "Options",
    "Sequence",
    "Structure",
    "Tensor",
    "Undefined",
    "can_be_copied",
    "field_items",
    "fits",
    "has_traced",
    "item_structure",
    "is_namedtuple",
    "lift",
    "lower",
    "rebuild_fields",
    "same_known",
    "structure_of",
    "types",
    "unify",
    "width",
]
