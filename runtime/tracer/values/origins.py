"""Which object a tensor or tuple is that a branch or loop made anew.

Joins take tuples, frozen dataclasses and bound methods apart, so what stands after a join is a new object, whatever
the paths had, and so it is with tensors:

    if c: v = t            v = (phi(...), 1)        v came from: t on the one path, another tuple on the other
    else: v = (x, 1)

Where each came from is noted, and nothing is recorded for it. ``v is t`` then is a deferred output of the ``cond``:
True at the end of the one path, False at that of the other. What a loop carries is another object in each iteration, so
whether it is a certain one goes through the loop as a flag, from the first time somebody asks (``same_object``).
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import torch

from runtime import torch_internals
from runtime.ir import Operator
from runtime.kinds import is_a
from runtime.tracer.memory.deferred import JoinOutput, LoopValue, PathEnd
from runtime.tracer.numbers import scalars
from runtime.tracer.python_state.guards import is_plain
from runtime.tracer.values import structure

if TYPE_CHECKING:
    from runtime.tracer.control.branches import Path
    from runtime.tracer.recording.session import Scope, Session


@dataclass(eq=False)
class Origin:
    """Which object a value is; by this class itself: nobody knows."""

    number: int
    """Joins are numbered in the order in which they were traced."""


@dataclass(eq=False)
class Itself(Origin):
    """An object that no join made."""

    inside: tuple[Loop, ...] = ()
    """The loops of which an iteration made it."""
    constant: bool = False
    """It may be a constant of the code that an iteration runs: then it is the same one each time."""
    made: int = 0
    """Of a tensor that the trace made: its place in the order of creation."""


@dataclass(eq=False)
class Join:
    """A ``cond`` or ``switch``."""

    op: Operator
    scope: Scope
    """That it stands in."""
    ends: Sequence[PathEnd]
    flags: dict[tuple[Origin, Origin], JoinOutput] = field(default_factory=dict)


@dataclass(eq=False)
class Joined(Origin):
    """What a path had, by path; None where it had nothing of that kind."""

    join: Join
    by_path: list[Origin | None]


@dataclass(eq=False)
class OneOf(Origin):
    """One of several, by a number that is known while the Program runs."""

    selector: Any
    options: list[Origin | None]


@dataclass(eq=False)
class Loop:
    """A loop whose body is traced, or was."""

    number: int
    scope: Scope
    """That it stands in."""
    older: set[int]
    """What was there before it, by identity; valid while the body is traced."""
    body: Scope | None = None
    op: Operator | None = None
    end: PathEnd | None = None
    flags: dict[tuple[Origin, Origin], LoopValue] = field(default_factory=dict)


@dataclass(eq=False)
class Carried(Origin):
    """What an iteration began with: what was there before the loop, or what the iteration before left."""

    loop: Loop
    first: Origin | None
    next: Origin | None = None


@dataclass(eq=False)
class Left(Origin):
    """What stands after a loop."""

    carried: Carried


Verdict = Literal["same", "other", "unknown"]
"""Whether two are one object: always, never, or nobody knows."""


@dataclass(eq=False)
class Given(Origin):
    """A tensor that a call of a recursive function is given, or gives."""

    call: object
    """Which of the calls."""
    place: int
    """Its place among the tensors there."""
    pairs: dict[tuple[int, int], Verdict]
    """Whether those at two places are one."""
    older: list[Origin] | None = None
    """What is older than all calls, of what an argument can be; None of what a call gives."""


Pair = tuple[Any, Any]


class Origins:
    """Where the values of one trace came from."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._held: dict[int, Any] = {}
        self._known: dict[int, Origin] = {}
        self._loops: list[Loop] = []
        self._count = 0
        self.some_given = False
        """Whether any tensor is what a recursive function is given, or gives."""
        self.asked: dict[int, weakref.ref[torch.Tensor]] = {}
        """The tensors whose identity was asked for, by ``id()``, ``hash()`` or as keys."""

    def number(self) -> int:
        """The next one."""
        self._count += 1
        return self._count

    def note(self, value: Any, origin: Origin) -> None:
        """Say which object ``value`` is."""
        if is_a(value, torch.Tensor):
            self._session.info(value).origin = origin
            return
        self._held[id(value)] = value
        self._known[id(value)] = origin

    def note_unknown(self, value: Any) -> None:
        """Nobody knows which object this is, unless it is said afterwards."""
        self.note(value, Origin(0))

    def known(self, value: Any) -> Origin | None:
        """Where a value came from, if anything was said about it."""
        if is_a(value, torch.Tensor):
            found: Origin | None = self._session.info(value).origin
            return found
        return self._known.get(id(value))

    def of(self, value: Any) -> Origin:
        """Where a value came from."""
        found = self.known(value)
        if found is None:
            found = Itself(self.number())
            if is_a(value, torch.Tensor) and torch_internals.is_fake(value):
                found.made = self._session.info(value).number
            self.note(value, found)
        if is_a(found, Itself):
            made_in = [loop for loop in self._loops if loop not in found.inside and self._made_in(loop, value)]
            found.inside += (*made_in,)
            found.constant = bool(found.inside) and _is_constant(value)
        return found

    def is_made_anew(self, value: Any) -> bool:
        """Whether each iteration of the loops around here made an object of its own; so it is outside of loops."""
        return all(self._made_in(loop, value) for loop in self._loops)

    def _made_in(self, loop: Loop, value: Any) -> bool:
        """Whether an iteration made the object."""
        if is_a(value, torch.Tensor):
            return torch_internals.is_fake(value) and self._session.info(value).number > loop.number
        return id(value) not in loop.older and id(value) not in self._session.objects.externals

    def forget_unused(self) -> None:
        """Let go of what nobody else refers to: only values that came from it can be compared with it.

        This changes no answer. The program cannot ask about an object that nothing refers to, and a later one at its
        address is not taken for it, because its note goes as well. Where a debugger refers to an object, its note stays
        longer, with the same origin. A count that is too high is therefore harmless; none is too low, for notes, frames
        and containers hold real references.
        """
        while True:
            dead = [key for key, count in _references(self._held) if count <= 0]
            if not dead:
                return
            for key in dead:
                del self._held[key], self._known[key]

    @contextmanager
    def asking_apart(self) -> Iterator[None]:
        """While something is traced that nobody sees the tensors of afterwards."""
        before = dict(self.asked)
        try:
            yield
        finally:
            self.asked = before

    @contextmanager
    def inside(self, loop: Loop) -> Iterator[None]:
        """While an iteration is traced, or looked at."""
        self._loops.append(loop)
        try:
            yield
        finally:
            self._loops.pop()


def _is_constant(value: Any) -> bool:
    """Whether a value may be a constant of the code."""
    return is_plain(value) or (type(value) is tuple and all(map(_is_constant, value)))


def _references(held: dict[int, Any]) -> list[tuple[int, int]]:
    """How many references there are to each value, beside that which ``held`` has."""
    probe: dict[int, Any] = {0: (object(),)}
    (mine,) = (sys.getrefcount(probe[key]) for key in list(probe))
    return [(key, sys.getrefcount(held[key]) - mine) for key in list(held)]


def is_noted(item: structure.Structure) -> bool:
    """Whether a value of this structure, or a part of it, is made anew by joins and may be asked which object it is."""
    if is_a(item, structure.Tensor):
        return True
    if is_a(item, structure.Array):
        return item.kind is tuple
    if is_a(item, structure.Options):
        return any(map(is_noted, item.options))
    if is_a(item, (structure.Sequence, structure.Fields)):
        return _has_identity(item) or any(map(is_noted, item.items))
    return False


def _has_identity(item: structure.Structure) -> bool:
    if is_a(item, structure.Tensor):
        return True
    if is_a(item, structure.Sequence):
        return issubclass(item.kind, tuple) or item.kind is structure.StagedSize
    if is_a(item, structure.Fields):
        return not issubclass(item.cls, dict)
    return is_a(item, structure.Array) and item.kind is tuple


def note_join(session: Session, op: Operator, paths: Sequence[Path], items: Sequence[tuple[Any, ...]]) -> None:
    """A ``cond`` or ``switch`` was recorded. ``items``: what each path had, the structure of that, and what stands
    for it now."""
    items = [item for item in items if is_noted(item[1])]
    if not items:
        return
    origins = session.origins
    number, join = origins.number(), Join(op, session.scope, [PathEnd(path.scope, path.ended) for path in paths])
    for position, path in enumerate(paths):
        if path.ended:
            continue
        with path.inside(session):  # where what its objects hold is there
            for values, item, made in items:
                for inside, joined in _pairs(values[position], made, item):
                    found = origins.known(joined)
                    if not is_a(found, Joined) or found.join is not join:
                        found = Joined(number, join, [None] * len(paths))
                        origins.note(joined, found)
                    if found.by_path[position] is None:
                        found.by_path[position] = _origin(session, inside, joined)


def begin_loop(session: Session, older: set[int]) -> Loop:
    """A loop's body will be traced."""
    stored = {id(place.get()) for frame in session.journal.frames for place in frame if place.kind != "content"}
    return Loop(session.origins.number(), session.scope, older | stored)


def enter_loop(
    session: Session, loop: Loop, body: Scope, items: Iterable[tuple[Any, structure.Structure, Any]]
) -> None:
    """The body begins. ``items``: what was there before the loop, the structure, what stands for it in the body."""
    loop.body = body
    for first, item, inner in items:
        for before, value in _pairs(first, inner, item):
            session.origins.note(value, Carried(loop.number, loop, _origin(session, before, value)))


def leave_loop(
    session: Session, loop: Loop, op: Operator, path: Path,
    items: Iterable[tuple[Any, structure.Structure, Any, Any]],
) -> None:  # fmt: skip
    """The loop is recorded. ``items``: what the iteration left, the structure, what stood for it in the body, and what
    does after the loop."""
    origins = session.origins
    for out, item, inner, after in items:
        if not is_noted(item):
            continue
        with path.inside(session), origins.inside(loop):
            for left, value in _pairs(out, inner, item) if not path.ended else ():
                carried = origins.known(value)
                if is_a(carried, Carried):
                    carried.next = _origin(session, left, value)
        for value, result in zip(_made(inner, item), _made(after, item)):
            carried = origins.known(value)
            if is_a(carried, Carried):
                origins.note(result, Left(loop.number, carried))
    loop.op, loop.end = op, end = op, PathEnd(path.scope, path.ended)
    for flag in [*loop.flags.values()]:
        flag.finish(session, op, end)


@dataclass(frozen=True)
class _Part:
    """The same part of each of several values."""

    selector: Any
    options: tuple[Any, ...]


def _pairs(inside: Any, made: Any, item: structure.Structure) -> Iterator[Pair]:
    """Values beside what was made for them, parts included; None where there is nothing of that kind."""
    if is_a(item, structure.Options):
        for number, (option, inner) in enumerate(zip(made.options, item.options)):
            if is_noted(inner):
                yield from _pairs(_carried_as(inside, item, number), option, inner)
    elif _has_identity(item):
        yield inside, made
    if is_a(item, (structure.Sequence, structure.Fields)):
        for position, inner in enumerate(item.items):
            if is_noted(inner):
                yield from _pairs(_part(inside, item, position), _part(made, item, position), inner)


def _made(value: Any, item: structure.Structure) -> Iterator[Any]:
    """The objects that were made for a structure."""
    if is_a(item, structure.Options):
        for option, inner in zip(value.options, item.options):
            yield from _made(option, inner)
        return
    if _has_identity(item):
        yield value
    if is_a(item, (structure.Sequence, structure.Fields)):
        for position, inner in enumerate(item.items):
            if is_noted(inner):
                yield from _made(_part(value, item, position), inner)


def _part(value: Any, item: structure.Sequence | structure.Fields, position: int) -> Any:
    if is_a(value, (structure.Choice, _Part)):
        return _Part(value.selector, tuple(_part(option, item, position) for option in value.options))
    if is_a(item, structure.Sequence):
        items: Any = value
        return list(items)[position] if type(value) is item.kind and len(items) == len(item.items) else None
    fields = structure.field_items(value) if type(value) is item.cls else None
    return fields[1][position] if fields is not None and structure.same_keys(fields[0], item.keys) else None


_UNKNOWN = object()
"""A value that is found in none of the structures that it may be carried in."""


def _carried_as(value: Any, item: structure.Options, number: int) -> Any:
    """The value, if it is carried as this one of the options; of several, those that are."""
    if is_a(value, (structure.Choice, _Part)):
        return _Part(value.selector, tuple(_carried_as(option, item, number) for option in value.options))
    first = next((place for place, inner in enumerate(item.options) if _fits(value, inner)), None)
    return _UNKNOWN if first is None and value is not None else value if first == number else None


def _fits(value: Any, item: structure.Structure) -> bool:
    """Whether a structure that a value was unified into, with others, carries it; as ``unification.fits``, but for what
    is the same of all options."""
    if is_a(value, (structure.Choice, _Part)):
        return all(_fits(option, item) for option in value.options)
    if is_a(item, structure.Options):
        return any(_fits(value, option) for option in item.options)
    if is_a(item, structure.Tensor):
        return is_a(value, torch.Tensor) and (
            (value.dtype, value.dim(), value.device) == (item.dtype, len(item.shape), item.device))
    if is_a(item, structure.Sequence):
        items: Any = value
        return type(value) is item.kind and len(items) == len(item.items) and all(map(_fits, items, item.items))
    if is_a(item, structure.Fields):
        keys, held = (structure.field_items(value) if type(value) is item.cls else None) or (None, ())
        return keys is not None and structure.same_keys(keys, item.keys) and all(map(_fits, held, item.items))
    if is_a(item, structure.Array):
        return type(value) is item.kind
    if is_a(item, structure.Number):
        return scalars.kind_of(value) == item.kind
    return not is_a(item, structure.Known) or structure.same_known(value, item.value)


def _origin(session: Session, inside: Any, made: Any) -> Origin | None:
    if is_a(inside, (structure.Choice, _Part)):
        return OneOf(0, inside.selector, [_origin(session, option, made) for option in inside.options])
    if inside is None:
        return None
    if is_a(made, torch.Tensor) and is_a(inside, torch.Tensor):
        return session.origins.of(session.itself(inside))
    return session.origins.of(inside) if type(inside) is type(made) else Origin(0)


__all__ = [
    "Carried", "Given", "Itself", "Join", "Joined", "Left", "Loop", "OneOf", "Origin", "Origins", "Verdict",
    "begin_loop", "enter_loop", "leave_loop", "note_join",
]  # fmt: skip
