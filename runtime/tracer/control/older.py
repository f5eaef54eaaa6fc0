"""Containers and objects that existed before a construct: what its paths bring out of them is no other one.

The bodies of a construct are functions, so what they can reach from outside is in their closure cells, or was noted as
the caller's when it was read.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from types import FunctionType, MappingProxyType, ModuleType
from typing import Any

import torch

from runtime.ir import Block, Operator, Variable
from runtime.tracer.ambient import contents
from runtime.tracer.ambient.objects import attributes, own_items
from runtime.tracer.ambient.unasked import unasked
from runtime.tracer.numbers.scalars import Staged
from runtime.tracer.recording.session import Scope, Session
from runtime.tracer.values.containers import Several, opaque_parts
from runtime.tracer.values.structure import Before, Choice, DictContent, Growing, ListContent, is_container
from runtime.tracer.values.unjournaled import NOTHING

_LEAVES = (
    torch.Tensor, str, bytes, int, float, complex, type(None), Session, Scope, Staged, Block, Operator, Variable,
    Growing,
)  # fmt: skip
"""What holds no container of the user's. Operators' functions close over the session: it is the whole trace."""
_LARGE = (torch.nn.Module, type, ModuleType)
"""What may hold half the process: only those that the trace made are looked into. What is read of others is noted as
the caller's when it is read."""
_WITH_ITEMS = (list, dict, set, deque, tuple, frozenset)
_PYTHONS = (*_WITH_ITEMS, defaultdict, ListContent, DictContent)
"""Classes that have items, and no attributes."""


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
    leaves: dict[type, bool] = {}
    while todo:
        value = todo.pop()
        kind = type(value)
        if kind is Before:  # what is added to a list from outside is a part of it
            value, kind = value.added, list
        leaf = leaves.get(kind)
        if leaf is None:
            leaf = leaves[kind] = isinstance(value, _LEAVES)
        if leaf or id(value) in seen:
            continue
        seen.add(id(value))
        if id(kind) in made:
            todo.append(kind)
        if isinstance(value, _LARGE):
            if id(value) in made:
                todo += vars(value).values()
            continue
        if kind in NOTHING and not value and id(value) not in session.containers.hidden:
            found.add(id(value))
            continue
        if is_container(value):
            found.add(id(value))
            if id(value) in session.containers.hidden:
                todo.append(session.containers.hidden[id(value)][1])
        if type(value) not in _PYTHONS and isinstance(value, _WITH_ITEMS):
            todo += attributes(value).values()
        if isinstance(value, dict):
            todo += own_items(value)
            todo += (key for key in dict.__iter__(value) if isinstance(key, Several))
        elif isinstance(value, _WITH_ITEMS):
            todo += own_items(value)
        elif is_container(value) and isinstance(value, Iterable):
            todo += value
        elif isinstance(value, Choice):
            todo += value.options
        elif isinstance(value, Several):
            todo.append(value.choice)
        else:
            if isinstance(value, FunctionType):
                todo += value.__closure__ or ()
            parts = list(opaque_parts(value))
            if contents.is_iterator(value):
                objects.kept += parts
            todo += parts
            namespace = unasked(value, "__dict__")  # some classes give that name another meaning
            if isinstance(namespace, (dict, MappingProxyType)):
                todo += namespace.values()
    objects |= seen
    return frozenset(found)


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
