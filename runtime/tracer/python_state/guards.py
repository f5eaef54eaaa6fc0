"""Guards: the Python facts a trace depended on. A cached Program is used only while all of them still hold.

They are checked at every call, so a fact is turned into a quick test once, when it is recorded.
"""

from __future__ import annotations

import array
import contextlib
import functools
import math
import operator
import types
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy
import torch

from runtime.ir import Location
from runtime.kinds import is_a
from runtime.tracer.ambient.objects import kind_of_items, own_items, own_length
from runtime.tracer.ambient.pinned import pins
from runtime.tracer.ambient.poison import Poison
from runtime.tracer.ambient.unasked import unasked
from runtime.tracer.numbers.scalars import Staged
from runtime.tracer.python_state.facts import can_be_fact, numbers_inside
from runtime.tracer.python_state.journal import Place

if TYPE_CHECKING:
    from runtime.tracer.python_state.guard_code import CheckWriter

_PLAIN = (
    bool,
    int,
    float,
    complex,
    str,
    bytes,
    type(None),
    torch.dtype,
    torch.device,
    torch.layout,
    torch.memory_format,
)
_BUFFERS = (bytearray, array.array)
_VIEWS: tuple[Any, ...] = (type({}.keys()), type({}.values()), type({}.items()))
_BY_CONTENT: tuple[Any, ...] = (
    list, tuple, deque, dict, set, frozenset, numpy.ndarray, numpy.generic, slice, range, *_BUFFERS, memoryview,
    types.MappingProxyType, *_VIEWS,
)  # fmt: skip
_SIZED = (list, tuple, deque, dict, types.MappingProxyType, set, frozenset)
_HEAP_TYPE = 1 << 9
"""The flag of classes that are written in Python."""
_ITEMS = 4096
"""Beyond so many items, a container is compared by identity and length."""
_DEPTH = 32

READ_ERRORS = (AttributeError, KeyError, IndexError, NameError, ValueError, RuntimeError)
"""What reading a fact may raise when it is gone."""

Test = Callable[[Any], bool]


def is_plain(value: object) -> bool:
    """Whether a value is compared by type and value (a number, string, dtype...)."""
    return type(value) in _PLAIN


def same_plain(a: object, b: object) -> bool:
    """Whether two plain values are the same: 1, True and 1.0 differ, so do 0.0 and -0.0; nan equals nan."""
    if type(a) is not type(b):
        return False
    if is_a(a, float):
        assert is_a(b, float)
        return (a == b and math.copysign(1.0, a) == math.copysign(1.0, b)) or (a != a and b != b)
    if is_a(a, complex):
        assert is_a(b, complex)
        return same_plain(a.real, b.real) and same_plain(a.imag, b.imag)
    return a == b


def by_identity(value: object) -> bool:
    """Whether ``is_like`` compares a value by identity."""
    return not is_plain(value) and not is_a(value, _BY_CONTENT)


def has_other_classes(value: object) -> bool:
    """Whether Python lets an object be given another class (``value.__class__ = Other``)."""
    return bool(type(value).__flags__ & _HEAP_TYPE) or is_a(value, types.ModuleType)


def is_like(value: Any, around: tuple[Any, ...] = ()) -> Test:
    """A test for what looks like ``value`` does now.

    Plain values are compared by type and value, containers item by item, arrays by content, others by identity and
    class. So is a container that is inside itself; ``around``: the containers that ``value`` is in.

    >>> test = is_like([1, {"a": (0.0, "s")}])
    >>> test([1, {"a": (0.0, "s")}]), test([True, {"a": (0.0, "s")}]), test([1, {"a": (-0.0, "s")}])
    (True, False, False)
    """
    if is_plain(value):
        return _is_plainly(value)
    if is_a(value, Staged):  # a number that each call reads anew
        return functools.partial(can_be_fact, kind=value.python_type)
    if type(value) is list and value and is_a(value[0], Poison) and value[0].whatever_it_is:
        return lambda other: other is value
    if len(around) < _DEPTH and not any(one is value for one in around):
        inside = (*around, value)
        if is_a(value, _SIZED) and _length(value) > _ITEMS:
            return _is_long(value)
        if is_a(value, deque):
            return _with_own(value, "maxlen", _is_sequence(value, inside))
        if is_a(value, defaultdict):
            return _with_own(value, "default_factory", _is_mapping(value, inside))
        if is_a(value, (list, tuple, set, frozenset)):  # sets in their order: code that goes over them has it
            return _is_sequence(value, inside)
        if is_a(value, _VIEWS):
            kind, items = type(value), is_like(list(value), inside)
            return lambda other: type(other) is kind and items(list(other))
        if is_a(value, (dict, types.MappingProxyType)) and _has_items(value):
            return _is_mapping(value, inside)
        if is_a(value, numpy.ndarray):
            return _is_objects(value, inside) if value.dtype.hasobject else _is_array(value)
        if is_a(value, _BUFFERS):
            kind, typecode, data = type(value), unasked(value, "typecode", ""), bytes(value)
            return lambda other: (
                type(other) is kind and unasked(other, "typecode", "") == typecode and bytes(other) == data
            )
        if is_a(value, memoryview):
            format_, shape, data = value.format, value.shape, value.tobytes()
            return lambda other: (
                type(other) is memoryview
                and other.format == format_
                and other.shape == shape
                and other.tobytes() == data
            )
        if is_a(value, numpy.generic):
            number, content = type(value), value.tobytes()
            return lambda other: type(other) is number and other.tobytes() == content
        if is_a(value, slice):
            parts = is_like((value.start, value.stop, value.step), inside)
            return lambda other: type(other) is slice and parts((other.start, other.stop, other.step))
        if is_a(value, range):
            return lambda other: type(other) is range and repr(other) == repr(value)
    if not has_other_classes(value):
        return lambda other: other is value
    cls = type(value)
    return lambda other: other is value and type(value) is cls


def _is_plainly(value: Any) -> Test:
    kind = type(value)
    if kind in (float, complex):
        return lambda other: other is value or same_plain(other, value)
    return lambda other: other is value or (type(other) is kind and other == value)


def _length(value: Any) -> int:
    return own_length(value) if is_a(value, (list, dict, tuple, set, frozenset, deque)) else len(value)


def _is_sequence(value: Any, inside: tuple[Any, ...]) -> Test:
    kind, own, length = type(value), kind_of_items(type(value)), own_length(value)
    if kind is tuple and all(is_plain(item) for item in value):
        plain = [_is_plainly(item) for item in value]
        return lambda other: (
            other is value
            or (type(other) is kind and len(other) == length and all(test(item) for test, item in zip(plain, other)))
        )
    tests, items = [is_like(item, inside) for item in own_items(value)], _are(own_items(value))
    if kind is own:
        return lambda other: (
            type(other) is kind
            and len(other) == length
            and (items(other) or all(test(item) for test, item in zip(tests, other)))
        )
    return lambda other: (
        type(other) is kind and own.__len__(other) == length
        and all(test(item) for test, item in zip(tests, own.__iter__(other)))
    )


def _has_items(value: Any) -> bool:
    """Whether a dict or a proxy has items: a proxy may be of anything that can be indexed."""
    if is_a(value, dict):
        return True
    try:
        value.items()
    except AttributeError:
        return False
    return True


def _is_mapping(value: Mapping[Any, Any], inside: tuple[Any, ...]) -> Test:
    kind, length = type(value), _length(value)
    own: Any = kind_of_items(kind) if is_a(value, dict) else kind
    tests = [(is_like(key, inside), is_like(item, inside)) for key, item in own.items(value)]
    keys, items = (_are(own.keys(value)), _are(own.values(value))) if is_a(value, dict) else (_never, _never)
    return lambda other: (
        type(other) is kind
        and own.__len__(other) == length
        and (
            keys(own.keys(other)) and items(own.values(other))
            or all(one(key) and two(item) for (one, two), (key, item) in zip(tests, own.items(other)))
        )
    )  # fmt: skip


def _are(values: Iterable[Any]) -> Test:
    """The quick answer to whether as many values are these very objects, none of which can have changed since."""
    same, kinds = list(values), list(map(type, values))
    if not all(is_plain(one) or by_identity(one) for one in same):
        return _never
    if not any(has_other_classes(one) for one in same):
        return lambda others: all(map(operator.is_, others, same))
    return lambda others: all(map(operator.is_, others, same)) and [*map(type, others)] == kinds


def _never(others: Any) -> bool:
    return False


def _with_own(value: Any, name: str, test: Test) -> Test:
    """The test of the content, and of what a container keeps beside it."""
    own = is_like(getattr(value, name))
    return lambda other: test(other) and own(getattr(other, name))


def _is_long(value: Any) -> Test:
    length = _length(value)
    return lambda other: other is value and _length(other) == length


def _is_array(value: Any) -> Test:
    kind, data, layout = type(value), value.tobytes(), _layout(value)
    return lambda other: type(other) is kind and _layout(other) == layout and other.tobytes() == data


def _layout(value: Any) -> tuple[Any, ...]:
    """What an array is beside its content: a tensor made of it has its strides, and is not written if it may not be."""
    return value.dtype, value.shape, value.strides, value.flags.writeable


def _is_objects(value: Any, inside: tuple[Any, ...]) -> Test:
    if value.size > _ITEMS:
        return lambda other: other is value
    kind, layout, items = type(value), _layout(value), is_like(value.ravel().tolist(), inside)
    return lambda other: type(other) is kind and _layout(other) == layout and items(other.ravel().tolist())


@dataclass(eq=False)
class Guard:
    """One fact: ``read()`` still gives what passes ``test``."""

    description: str
    read: Callable[[], Any]
    test: Test
    covers: Any = None
    """An object whose tensors' dtypes, shapes, strides, devices and ``requires_grad`` are part of the fact."""
    place: Place | None = None
    """Where the value is, if it is a plain number that could be an input of the Program."""
    where: Place | None = None
    """What ``read`` reads: an attribute or an item of a namespace that was like ``value``."""
    value: Any = None
    write: Callable[[CheckWriter], None] | None = None
    """Writes the same test as straight-line code."""
    location: Location | None = None
    """Where in the user's code the fact was read first."""
    numbers: tuple[tuple[Place, Any], ...] = ()
    """Plain numbers in the lists and dicts that ``read`` gave, which could be inputs of the Program."""
    once: bool = False
    """Whether it never holds: the Program is for one call alone."""

    def holds(self) -> bool:
        """Whether the fact is still true; reading that fails counts as changed."""
        try:
            return self.test(self.read())
        except READ_ERRORS:
            return False


def _both(one: Test, two: Test, value: Any) -> bool:
    return one(value) and two(value)


@dataclass(frozen=True, eq=False)
class Looked:
    """Something that was looked up, and may be another thing by the time it is looked up again."""

    description: str
    get: Callable[[], Any]
    value: Any
    location: Location | None


@dataclass(frozen=True)
class LookedUp:
    """What a part of the trace has looked up: facts, and what is no guard, as each call has another one there: tensors,
    numbers that are inputs, what the function itself has stored."""

    guards: dict[Any, Guard] = field(default_factory=dict)
    others: list[Looked] = field(default_factory=list)


class GuardSet:
    """The guards of one trace, each fact once."""

    def __init__(self, locate: Callable[[], Location | None] = lambda: None) -> None:
        self._guards: dict[Any, Guard] = {}
        self._apart: LookedUp | None = None
        self._pinned: dict[int, Any] = {}
        self._locate = locate

    @contextlib.contextmanager
    def located(self, locate: Callable[[], Location]) -> Iterator[None]:
        """Facts that are recorded in here are read at a place of the user's, wherever the trace is."""
        before, self._locate = self._locate, locate
        try:
            yield
        finally:
            self._locate = before

    @contextlib.contextmanager
    def apart(self) -> Iterator[LookedUp]:
        """Also record on its own what is looked up in here, though it may have been looked up before."""
        before, outer = self._guards, self._apart
        self._guards, self._apart = {}, LookedUp()
        try:
            yield self._apart
        finally:
            self._apart.guards.update(self._guards)
            if outer is not None:
                outer.others.extend(self._apart.others)
            self._guards, self._apart = {**before, **{key: one for key, one in self._guards.items()
                                                      if key not in before}}, outer  # fmt: skip

    @property
    def is_apart(self) -> bool:
        """Whether what is looked up is also recorded on its own."""
        return self._apart is not None

    def looked_up(self, description: str, get: Callable[[], Any], value: Any) -> None:
        """Record, for those who record on their own, what was found where each call has something else."""
        if self._apart is not None:
            self._apart.others.append(Looked(description, get, value, self._locate()))

    def add(
        self, key: Any, description: str, read: Callable[[], Any], value: Any, place: Place | None = None
    ) -> None:
        """Record that ``read()`` gave ``value``. ``key`` identifies the fact; the first record of a fact counts.

        ``place``: what ``read`` reads, if that is ``owner.name`` or ``namespace[name]``.
        """
        if key not in self._guards:
            number = place if can_be_fact(value) else None
            self._guards[key] = Guard(
                description, read, is_like(value), None, number, place, value, location=self._locate(),
                numbers=tuple(numbers_inside(value)))

    def has(self, key: Any) -> bool:
        """Whether a fact is recorded."""
        return key in self._guards

    def add_test(
        self, key: Any, description: str, test: Callable[[], bool], covers: Any = None,
        write: Callable[[CheckWriter], None] | None = None,
    ) -> None:
        """Record a fact that has a test of its own; ``write`` writes the same one as code."""
        if key not in self._guards:
            self._guards[key] = Guard(description, test, bool, covers, write=write, location=self._locate())

    def pin(self, value: Any) -> None:
        """Record that facts which gave ``value``, or a container of it, still give this very object: it is returned,
        stored or written as what it is, or a fact is about it."""
        if not is_plain(value) and not by_identity(value):
            self._pinned[id(value)] = value

    def add_once(self, why: str) -> None:
        """Record that the Program is for the call at hand alone."""
        if ("once", why) not in self._guards:
            never: Callable[[], bool] = lambda: False  # noqa: E731
            self._guards["once", why] = Guard(why, never, bool, location=self._locate(), once=True)

    def are_for_one_call(self) -> bool:
        """Whether the Program is for the call at hand alone."""
        return any(guard.once for guard in self._guards.values())

    def reads_any(self, owners: set[int]) -> bool:
        """Whether a fact is about one of some objects, given by ``id``: an attribute, an item, or all it contains."""
        return any(
            (is_a(key, tuple) and key[0] in owners)
            or (is_a(guard.value, (list, dict, set, deque)) and id(guard.value) in owners)
            for key, guard in self._guards.items()
        )

    def __contains__(self, key: Any) -> bool:
        return key in self._guards

    def discard(self, key: Any) -> None:
        """Forget a fact (its place is written by the Program itself and handled otherwise)."""
        self._guards.pop(key, None)

    def copy(self) -> dict[Any, Guard]:
        """What is recorded now."""
        return dict(self._guards)

    def put_back(self, before: dict[Any, Guard]) -> None:
        """Record again what was recorded before; what came since stays."""
        self._guards = {**before, **self._guards}

    def freeze(self) -> tuple[Guard, ...]:
        """All guards, in the order they were recorded, when what they read is again as it was before the call."""
        for guard in self._guards.values():
            if guard.where is not None and guard.where.kind == "attribute":
                self.pin(guard.where.owner)
        return tuple(map(self._with_pins, self._guards.values()))

    def _with_pins(self, guard: Guard) -> Guard:
        found = pins(guard.value, self._pinned) if self._pinned else None
        return guard if found is None else replace(guard, test=functools.partial(_both, guard.test, found))
