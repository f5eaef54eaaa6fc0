"""Containers and objects that existed before a construct: what its paths bring out of them is no other one.

The bodies of a construct are functions, so what they can reach from outside is in their closure cells, or was noted as
the caller's when it was read.
"""

from __future__ import annotations

import logging
from collections import defaultdict, deque
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import suppress
from dataclasses import is_dataclass
from types import CellType, ModuleType
from typing import Any, NamedTuple

import torch

from runtime.ir import Block, Operator, Variable
from runtime.tracer.ambient import contents
from runtime.tracer.ambient.objects import attributes, own_items
from runtime.tracer.ambient.unasked import unasked
from runtime.tracer.numbers.scalars import Staged
from runtime.tracer.recording.session import Scope, Session
from runtime.tracer.values.containers import Several
from runtime.tracer.values.referred import Reader
from runtime.tracer.values.structure import CONTAINERS, Before, Choice, DictContent, Growing, ListContent
from runtime.tracer.values.unjournaled import NOTHING

_LEAVES = (
    torch.Tensor, str, bytes, int, float, complex, type(None), Session, Scope, Staged, Block, Operator, Variable,
    Growing,
)  # fmt: skip
"""What holds no container of the user's. Operators' functions close over the session: it is the whole trace."""
_LARGE = (torch.nn.Module, type, ModuleType, logging.Logger, logging.Manager, logging.PlaceHolder)
"""What may hold half the process (each logger leads to all others): only those that the trace made are looked into.
What is read of others is noted as the caller's when it is read."""
_WITH_ITEMS = (list, dict, set, deque, tuple, frozenset)
_PYTHONS = (*_WITH_ITEMS, defaultdict, ListContent, DictContent)
"""Classes that have items, and no attributes."""


class _Kind(NamedTuple):
    """What is to be done with objects of a class. It is asked of the class: ``isinstance()`` would ask each object for
    its ``__class__``, which a user's ``__getattribute__`` may answer."""

    large: bool
    emptied: bool
    container: bool
    has_attributes: bool
    items: bool
    keys: bool
    choice: bool
    several: bool
    is_made: bool


def _kind(kind: type, made: Container[int]) -> _Kind:
    items = issubclass(kind, _WITH_ITEMS)
    container = issubclass(kind, CONTAINERS) and kind not in (ListContent, DictContent) and not is_dataclass(kind)
    return _Kind(
        issubclass(kind, _LARGE), kind in NOTHING, container, items and kind not in _PYTHONS, items,
        issubclass(kind, dict), issubclass(kind, Choice), issubclass(kind, Several), id(kind) in made,
    )  # fmt: skip


class Identities(set[int]):
    """Identities of objects, valid while the construct is traced: its entry values and the journal keep those objects
    alive, ``kept`` what was made by asking for it (an iterator says what it would be rebuilt from). Without that an
    object of the construct could be made in the place of one of those, and be taken for it."""

    def __init__(self, found: Iterable[int] = ()) -> None:
        super().__init__(found)
        self.kept: list[Any] = []


def older(
    session: Session, functions: Iterable[Callable[..., Any]], values: Iterable[Any], objects: Identities
) -> frozenset[int]:
    """Identities of the lists, dicts, sets and deques that there are before a construct: those reachable from its
    functions' closures, from some values, and from what the trace has met, made or stored to.

    ``objects`` gets those of everything else, closure cells included.
    """
    found: set[int] = set()
    seen: set[int] = set()
    made = session.objects.created.keys() | session.code.given_classes.keys()
    todo: list[Any] = [*functions, *values, *_known(session)]
    kinds: dict[int, _Kind | None] = {}
    hidden, readers = session.containers.hidden, session.containers.readers
    supers: set[int] = set()
    ways: dict[int, tuple[bool, Reader]] = {}
    """Whether objects of a class may be iterators, and how to read what else they refer to."""
    while todo:
        value = todo.pop()
        cls = type(value)
        if cls is Before:  # what is added to a list from outside is a part of it
            value, cls = value.added, list
        try:
            kind = kinds[id(cls)]
        except KeyError:
            kind = kinds[id(cls)] = None if issubclass(cls, _LEAVES) else _kind(cls, made)
        if kind is None or id(value) in seen:
            continue
        seen.add(id(value))
        if kind.is_made:
            todo.append(cls)
        if kind.large:
            if id(value) in made:
                todo += vars(value).values()
            continue
        if kind.emptied and not value and id(value) not in hidden:
            found.add(id(value))
            continue
        if kind.container:
            found.add(id(value))
            if id(value) in hidden:
                todo.append(hidden[id(value)][1])
        if kind.has_attributes:
            todo += attributes(value).values()
        if kind.items:
            todo += own_items(value)
            if kind.keys:
                todo += [key for key in dict.__iter__(value) if issubclass(type(key), Several)]
        elif kind.choice:
            todo += value.options
        elif kind.several:
            todo.append(value.choice)
        elif cls is CellType:
            with suppress(ValueError):  # not bound yet
                todo.append(value.cell_contents)
        elif cls is super:
            todo += _of_super(value, supers)
        else:
            way = ways.get(id(cls))
            if way is None:
                way = ways[id(cls)] = contents.may_be_iterator(cls), readers.of(cls, namespaces=True)
            parts = way[1](value)
            if way[0] and contents.is_iterator(value):
                parts = list(parts)
                objects.kept += parts
            todo += parts
    objects |= seen
    return frozenset(found)


_SELF: Callable[[super], Any] = vars(super)["__self__"].__get__
"""An attribute of ``super()`` itself: others are those of the object that it is about."""


def _of_super(value: Any, known: set[int]) -> Iterable[Any]:
    """The object that a ``super()`` is about, and its attributes, once: each call of a method may have made another."""
    about = _SELF(value)
    if about is None or id(about) in known or issubclass(type(about), type):
        return ()
    namespace = unasked(value, "__dict__")
    if type(namespace) is not dict:
        return (about,)
    known.add(id(about))
    return (about, *namespace.values())


def _known(session: Session) -> Iterator[Any]:
    """What the trace knows by itself: the caller's objects, those that it made or keeps, the owners of what was stored,
    what hangs on tensors."""
    yield from (owner for owner, _ in session.objects.externals.values())
    yield from session.objects.created.values()
    yield from session.objects.kept.values()
    yield from session.code.given_classes.values()
    for frame in session.journal.frames:
        yield from (place.get() if place.kind == "global" else place.owner for place in frame)
    for tensor, names in session.objects.hung.values():
        yield from (tensor.__dict__.get(name) for name in names)
