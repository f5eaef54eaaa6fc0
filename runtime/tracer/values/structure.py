"""The structure of Python values: a picture of what Variables can carry.

``unification`` pictures values and finds the structure that fits two, ``flattening`` goes from a value in a structure
to Variables and back. ``cond``, ``while_loop`` and ``switch`` all join with these.
"""

from __future__ import annotations

import dataclasses
import types
from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NoReturn

import torch

from runtime import torch_internals
from runtime.ir import ArrayType, ObjectType, ScalarType, TensorType, Type, Variable
from runtime.ir.types import said
from runtime.kinds import is_a
from runtime.tracer.ambient import objects, state
from runtime.tracer.ambient.calls import Findings as FoundOut
from runtime.tracer.ambient.calls import Restart
from runtime.tracer.ambient.poison import Poison, keys_answer
from runtime.tracer.ambient.unasked import has_unasked, unasked
from runtime.tracer.ambient.walks import walk
from runtime.tracer.numbers.scalars import Staged, StagedInt
from runtime.tracer.numbers.staged_size import StagedSize
from runtime.tracer.python_state.guards import is_plain, same_plain
from runtime.tracer.python_state.held import Held, RowField, RowKey, held_in
from runtime.tracer.python_state.journal import MISSING, Undefined, python_kind
from runtime.tracer.values.alias_sets import AliasSet, Lost

if TYPE_CHECKING:
    from runtime.tracer.recording.session import Session
    from runtime.tracer.values.heaps import Heap
    from runtime.tracer.values.tables import Table

BOUND = (types.MethodType, types.BuiltinFunctionType, types.MethodWrapperType)
"""The types of what ``x.abs`` gives."""
CONTAINERS = (list, dict, set, deque)
DYNAMIC = "dynamic"
"""A size that differs between paths or iterations."""


class ListContent(list[Any]):
    """What a list or deque holds, as a value of its own."""


class DictContent(dict[Any, Any]):
    """What a dict holds, as a value of its own."""


class Choice:
    """A value whose structure is only known at run time: ``options[selector]``. ``choices.py`` has its operators."""

    __slots__ = ("selector", "options")

    def __init__(self, selector: StagedInt, options: tuple[Any, ...]) -> None:
        self.selector = selector
        self.options = options


Choice.__name__ = "StagedChoice"  # as Python's messages call it: see runtime.tracer.recording.faults


class Growing(Poison):
    """The content of a list, deque or tuple whose length is only known at run time; while tracing it is the only item
    there.

    ``variables`` are arrays, one for each Variable that carries an item of structure ``item``. Python that reads the
    list without our operators meets this object: all it can do with it is a located error.
    """

    __slots__ = ("arrays", "item", "alias_set", "joined", "lost", "__weakref__")
    text = "<items known while the Program runs>"

    def __init__(self, variables: tuple[Variable, ...], item: Structure, alias_set: AliasSet) -> None:
        self.arrays = variables
        self.lost: Lost | None = None
        """Set once a tensor was written that may be one of the items: they may not be read any more."""
        self.item = item
        self.alias_set = alias_set
        alias_set.hold(self)
        self.joined: tuple[list[Any], Growing] | None = None
        """A list that Python's own ``+`` made and that this is the first array of, and what it holds."""
        session = state.active()
        if session is not None:
            session.containers.has_growing = True

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The arrays, to be read.

        Raises:
            TraceError: D2S222, an item may have been written.
        """
        if self.lost is not None:
            raise self.lost.error(state.current())
        return self.arrays

    def read(self) -> Growing:
        """What is held now, as something that does not change."""
        return self

    def refuse(self, *args: Any) -> NoReturn:
        """What an operation on it raises.

        Raises:
            TraceError: D2S253.
        """
        _read_as_item()

    def __deepcopy__(self, memo: dict[int, Any]) -> Growing:
        """What a deep copy of the list holds, where the items are numbers, texts and tuples of them: nobody can change
        these.

        Raises:
            TraceError: D2S253.
        """
        if type(self) is not Growing or not is_of_plain(self.item):
            self.refuse()
        return Growing(self.variables, self.item, AliasSet())


def is_of_plain(item: Structure) -> bool:
    """Whether items are numbers and texts, None, and tuples of such."""
    if is_a(item, Known):
        return item.value is None or is_a(item.value, (int, float, str, bool))
    if is_a(item, Options):
        return all(map(is_of_plain, item.options))
    if is_a(item, Sequence):
        return item.kind is tuple and all(map(is_of_plain, item.items))
    return is_a(item, Number)


def _read_as_item() -> NoReturn:
    raise state.current().error(
        "a list whose length is only known while the Program runs is compared by order, or read by code that is not "
        "converted",
        hint="Compare lengths; read its items by index or in a for loop of the converted function.",
        code="D2S253",
    )


class Row(Growing):
    """The content of a list that others hold by reference: a row of a heap, which is read when it is asked for."""

    __slots__ = ("heap", "number")

    def __init__(self, heap: Heap, number: Any) -> None:
        self.heap = heap
        self.number = number
        """Which row: an int, or a staged one."""
        self.joined = None
        state.current().containers.has_growing = True

    def read(self) -> Growing:
        """What the row holds now."""
        return self.heap.load(state.current(), self.number)

    def visible(self, session: Session) -> bool:
        """Whether the reference may be used where the trace stands."""
        return not is_a(self.number, Staged) or session.visible(self.number.var)

    @property
    def arrays(self) -> tuple[Variable, ...]:  # type: ignore[override]
        return self.read().arrays

    @property
    def item(self) -> Structure:  # type: ignore[override]
        return self.heap.row_item(state.current())

    @property
    def alias_set(self) -> AliasSet:  # type: ignore[override]
        return self.heap.alias_set

    @property
    def lost(self) -> Lost | None:  # type: ignore[override]
        return self.read().lost


class Before(Growing):
    """What a list from outside holds in a trace that only adds to it, as its only item.

    ``added``: what the trace adds, an ordinary list. Whoever asks what the list holds begins the trace again, without.
    """

    __slots__ = ("added", "owner")
    whatever_it_is = True

    def __init__(self, owner: list[Any]) -> None:
        self.owner = owner
        self.added: list[Any] = []

    def look(self) -> NoReturn:
        """Begin the trace again."""
        raise Restart(FoundOut(looked_at=frozenset((id(self.owner),))))


def before(value: object) -> Before | None:
    """What stands in a list that the trace only adds to."""
    return value[0] if type(value) is list and len(value) == 1 and type(value[0]) is Before else None


def row_of(value: object) -> Row | Held | None:
    """The row that a list, dict or object is, if others hold it by reference."""
    if is_a(value, list):
        return list_row(value)
    return None if is_a(value, _NO_ROWS) else held_in(value)


def list_row(value: object) -> Row | None:
    """The row that a list is, if others hold it by reference."""
    if type(value) not in (list, ListContent) or len(value) != 1:  # type: ignore[arg-type]
        return None
    found = value[0]  # type: ignore[index]
    return found if type(found) is Row else None


_NO_ROWS = (torch.Tensor, Staged, Choice, tuple, str, int, float, type(None), torch.nn.Module, type)


def growing(value: object) -> Growing | None:
    """What a list, deque or tuple holds, if its length is only known at run time."""
    if not is_a(value, (list, deque)) and type(value) is not tuple:
        return None
    items = stored(value)
    if not any(is_a(item, Growing) for item in items):
        return None
    if type(items[0]) is Before:
        items[0].look()
    if len(items) > 1:  # made by Python's own +
        if any(type(item) is Row for item in items):  # it may have been changed since
            _read_as_item()

        return _join_parts[0](items)
    found = items[0]
    assert is_a(found, Growing)
    return found


_join_parts: list[Callable[[list[Any] | tuple[Any, ...]], Growing]] = []


def register(join_parts: Callable[[list[Any] | tuple[Any, ...]], Growing]) -> None:
    """``array`` says what a list holds that Python's own ``+`` made of lists that grew and others."""
    _join_parts[:] = [join_parts]


def stored(value: list[Any] | deque[Any] | tuple[Any, ...]) -> list[Any] | tuple[Any, ...]:
    """What is stored in a list or deque, whatever methods its class has; a tuple."""
    if type(value) is list or type(value) is tuple:
        return value
    return list(list.__iter__(value) if is_a(value, list) else deque.__iter__(value))


@dataclass(frozen=True, eq=False)
class Known:
    """A value that needs no Variable: a plain constant, or one and the same object.

    Lists, dicts, sets and deques are joined so, by reference, like other objects that can be changed; what they hold
    is joined where their content is (see ``containers``).
    """

    value: Any


@dataclass(frozen=True, eq=False)
class Number:
    """A Python number or string carried by a scalar Variable."""

    kind: str


@dataclass(frozen=True, eq=False)
class Tensor:
    """A tensor carried by a Variable. Sizes: ints, SymInts or DYNAMIC. ``strides`` None: contiguous.

    ``grad_in_some_runs``, ``perhaps_retains``: as of ``TensorInfo``.
    """

    shape: tuple[Any, ...]
    strides: tuple[Any, ...] | None
    dtype: torch.dtype
    device: torch.device
    requires_grad: bool
    layout_known: bool
    grad_in_some_runs: bool = False
    perhaps_retains: bool = False


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
    """A list or tuple whose length differs between paths or iterations: one array Variable for each Variable of an
    item."""

    item: Structure
    alias_set: AliasSet = field(default_factory=AliasSet)
    kind: type = list


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


@dataclass(frozen=True, eq=False)
class Reference:
    """A list that is a row of a heap, a dict or object that is one of a table, or such a list's or dict's content
    (``kind``): carried by the number of the row."""

    heap: Heap | Table
    kind: type = list


Structure = Known | Number | Tensor | Sequence | Fields | Array | Options | Made | Reference


@dataclass(frozen=True, eq=False)
class JoinContext:
    """What is asked of a structure depends on besides the values: on the join, and the place in it, that asks."""

    made: Mapping[int, Made] = field(default_factory=dict)
    """Objects that become one with others here, or that the iteration made, by identity."""
    stand_ins: Mapping[Hashable, Any] = field(default_factory=dict)
    """What stands for such objects, by their cell, where structures are lifted."""
    mixed_lists: bool = False
    """Whether lists of other lengths whose items differ in structure become one whose length is carried."""
    arrays_hold_containers: bool = True
    """Whether lists of other lengths become one whose length is carried where that would copy containers."""
    pictures: dict[int, Structure] = field(default_factory=dict)
    """How a list that grows holds copies of instances of dataclasses, by identity: what those of a path hold is known
    inside it."""
    copying: bool = False
    """Whether instances of dataclasses are pictured by their fields: what a list that grows holds of them."""

    def copies(self) -> JoinContext:
        """The same for the items of a list that grows, which has copies."""
        return self if self.copying else replace(self, copying=True)

    def mixing(self, mixed_lists: bool) -> JoinContext:
        """The same for a place where lists may, or may not, hold items that differ in structure."""
        return self if self.mixed_lists == mixed_lists else replace(self, mixed_lists=mixed_lists)


PLAIN = JoinContext()
"""Where nothing is joined, or nothing but values whose parts the join did not make."""


def is_namedtuple(value: object) -> bool:
    """Whether a value is an instance of a namedtuple class, torch's own (``torch.return_types``) included."""
    return is_a(value, tuple) and (hasattr(type(value), "_fields") or _is_return_type(type(value)))


def _is_return_type(cls: type) -> bool:
    return cls.__module__ == "torch.return_types"


@dataclass(frozen=True)
class Attribute:
    """The key of an attribute that a namedtuple or a dict has beside its items."""

    name: str


def field_items(value: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]] | None:
    """Keys and items of a dict, namedtuple or dataclass instance; None for anything else.

    The items of a tuple of a user's class are named as well, by their places.

    Attributes that are no fields come after these. A method that is bound to a tensor of the trace holds the tensor;
    its only key is its name.
    """
    if is_a(value, dict):
        own_keys = tuple(objects.kind_of_items(type(value)).__iter__(value))  # a user's class may say others
        if type(value) is not DictContent and not all(map(is_plain, own_keys)):
            return None
        return _with_attributes(value, own_keys, tuple(objects.own_items(value)))
    if is_namedtuple(value):
        cls: Any = type(value)
        names = tuple(cls.__match_args__ if _is_return_type(cls) else cls._fields)
        return _with_attributes(value, names, tuple(tuple.__iter__(value)))
    if objects.is_users_tuple(value):
        if objects.attributes(value):  # what is made of the items would not have them
            return None
        items = tuple(tuple.__iter__(value))
        return tuple(f"item{place}" for place in range(len(items))), items
    if dataclasses.is_dataclass(type(value)):
        names = tuple(field.name for field in dataclasses.fields(type(value)) if has_unasked(value, field.name))
        names += tuple(name for name in objects.attributes(value) if name not in names)
        return names, tuple(unasked(value, name) for name in names)
    if type(value) in BOUND:
        of_number = is_a(value.__self__, Staged)
        name = value.__name__ if of_number else torch_internals.name_of_method(value)
        return None if name is None else ((name,), (value.__self__,))
    return None


def _with_attributes(
    value: Any, keys: tuple[Any, ...], items: tuple[Any, ...]
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Keys and items, with those attributes that what is made of the items does not have by itself."""
    if type(value) in (dict, DictContent):
        return keys, items
    held = objects.attributes(value)
    if is_a(value, dict) and held:
        itself = {**{one.name: one.default for one in _fields(type(value))}, **dict(zip(keys, items))}
        held = {name: item for name, item in held.items() if itself.get(name, MISSING) is not item}
    if is_a(value, defaultdict):
        held = {**held, "default_factory": value.default_factory}
    return (*keys, *map(Attribute, held)), (*items, *held.values())


def _fields(cls: type) -> tuple[dataclasses.Field[Any], ...]:
    return dataclasses.fields(cls) if dataclasses.is_dataclass(cls) else ()


def rebuild_fields(cls: type, keys: tuple[Any, ...], items: tuple[Any, ...]) -> Any:
    """The inverse of ``field_items``."""
    if keys and is_a(keys[-1], Attribute):
        count = next(number for number, key in enumerate(keys) if is_a(key, Attribute))
        made = rebuild_fields(cls, keys[:count], items[:count])
        for key, item in zip(keys[count:], items[count:]):
            if item is not MISSING:
                object.__setattr__(made, key.name, item)
        return made
    if issubclass(cls, tuple):
        if _is_return_type(cls):
            return cls(items)
        return tuple.__new__(cls, items)  # its own __new__ ran when the one was made that this is like
    if issubclass(cls, dict):
        if cls is dict:
            return dict(zip(keys, items))
        kind = python_kind(cls)
        mapping = kind.__new__(cls)
        for key, item in zip(keys, items):  # the user's methods ran when the one was made that this is like
            kind.__setitem__(mapping, key, item)
        for one in _fields(cls):
            item = kind.get(mapping, one.name, one.default)
            if item is not dataclasses.MISSING:
                object.__setattr__(mapping, one.name, item)
        return mapping
    if cls in BOUND:
        return torch_internals.method_of(items[0], keys[0])
    result: Any = object.__new__(cls)
    for key, item in zip(keys, items):
        if item is not MISSING:
            object.__setattr__(result, key, item)
    return result


def is_container(value: Any) -> bool:
    """Whether a value is a list, dict, set or deque, or of a class derived from one.

    Instances of dataclasses that are dicts as well (transformers' model outputs) are taken apart field by field.
    """
    if not is_a(value, CONTAINERS) or type(value) in (ListContent, DictContent):
        return False
    return not dataclasses.is_dataclass(value)


def same_keys(a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
    """Whether two dicts have the same keys in the same order; tensors are keys by identity."""
    tensors = torch.Tensor
    with keys_answer():
        return len(a) == len(b) and all(
            x is y or (not is_a(x, tensors) and not is_a(y, tensors) and bool(x == y)) for x, y in zip(a, b)
        )


def same_known(a: Any, b: Any) -> bool:
    """Whether two values are one constant: the same object, or equal plain values of one type."""
    if a is b:
        return True
    if is_a(a, Undefined) and is_a(b, Undefined):
        return True
    if type(a) is frozenset and type(b) is frozenset:  # what sets hold
        return all(map(is_plain, (*a, *b))) and set(map(_told_apart, a)) == set(map(_told_apart, b))
    return is_plain(a) and is_plain(b) and same_plain(a, b)


def _told_apart(item: Any) -> tuple[Any, ...]:
    """A plain value with its type, and of a zero or a nan its text, which says what ``==`` does not."""
    return type(item), str(item) if item == 0 or item != item else item


def has_traced(value: Any) -> bool:
    """Whether a tensor or staged value is inside."""
    return any(map(_is_traced, walk([value], _traced_parts, _DEEPEST)))


_DEEPEST = 1_000
"""As deep as Python lets most things be nested."""


def _is_traced(value: Any) -> bool:
    if is_a(value, (torch.Tensor, Staged, Choice, Growing, RowField, RowKey)):
        return True
    return type(value) not in (list, tuple, StagedSize, ListContent) and row_of(value) is not None


def _traced_parts(value: Any) -> Any:
    if type(value) in (list, tuple, StagedSize, ListContent):
        return value
    fields = field_items(value)
    return () if fields is None else fields[1]


def can_be_copied(session: Session, value: Any) -> bool:
    """Whether a list that grows holds an object by its attributes: an instance of a dataclass.

    One of the caller's is held as itself.
    """
    return objects.is_record(value) and id(value) not in session.objects.externals


def known_items(s: Structure, inside: bool = False) -> Iterator[Any]:
    """The objects that are known to be items of lists whose length only the run knows. ``inside``: of such a list."""
    if is_a(s, Known) and inside:
        yield s.value
    elif is_a(s, Array):
        yield from known_items(s.item, True)
    elif is_a(s, (Options, Sequence, Fields)):
        for one in s.options if is_a(s, Options) else s.items:
            yield from known_items(one, inside)


def types_of(session: Session, s: Structure) -> list[Type]:
    """The types of the Variables that carry ``s``; sizes are filled in by ``lift``."""
    if is_a(s, (Known, Made)):
        return []
    if is_a(s, Number):
        return [ScalarType(s.kind)]  # type: ignore[arg-type]
    if is_a(s, Reference):
        return [ScalarType("int")]
    if is_a(s, Tensor):
        return [TensorType(s.dtype, None, said(s.device))]
    if is_a(s, Array):
        return [ArrayType(type_) for type_ in types_of(session, s.item)]
    if is_a(s, Options):
        return [ScalarType("int"), *(t for option in s.options for t in types_of(session, option))]
    return [t for item in s.items for t in types_of(session, item)]


def width(s: Structure) -> int:
    """How many Variables carry a value of structure ``s``."""
    if is_a(s, (Known, Made)):
        return 0
    if is_a(s, (Number, Tensor, Reference)):
        return 1
    if is_a(s, Array):
        return width(s.item)
    if is_a(s, Options):
        return 1 + sum(map(width, s.options))
    return sum(map(width, s.items))


__all__ = [
    "CONTAINERS",
    "DYNAMIC",
    "Array",
    "Attribute",
    "Growing",
    "growing",
    "MISSING",
    "Choice",
    "Fields",
    "Known",
    "JoinContext",
    "Made",
    "Number",
    "ObjectType",
    "Options",
    "PLAIN",
    "Reference",
    "Row",
    "Sequence",
    "Structure",
    "Tensor",
    "Undefined",
    "can_be_copied",
    "field_items",
    "has_traced",
    "is_of_plain",
    "is_container",
    "known_items",
    "list_row",
    "is_namedtuple",
    "rebuild_fields",
    "row_of",
    "same_keys",
    "stored",
    "same_known",
    "types_of",
    "width",
]
