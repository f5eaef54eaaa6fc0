"""Items that go into lists that grow and come out of them: their memory joins the lists' item alias set."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch

from runtime.kinds import is_a
from runtime.tracer.ambient import objects
from runtime.tracer.memory import cached_results
from runtime.tracer.memory.aliases import few_roots
from runtime.tracer.python_state import shared_items
from runtime.tracer.values import copied_items, one_view, structure

if TYPE_CHECKING:
    from runtime.tracer.memory.storage_table import Storage
    from runtime.tracer.recording.session import Session
    from runtime.tracer.values.alias_sets import AliasSet


def put(session: Session, alias_set: AliasSet, value: Any, place: copied_items.Place | None = None) -> None:
    """A value becomes an item. ``place``: where it is in a list that only comes to grow."""
    seen: set[int] = set()
    for part in _parts(value):
        if is_a(part, torch.Tensor):
            one_view.note_listed(session, part)
            known = alias_set.find()
            known.cached_by = known.cached_by or cached_results.of(session.info(part))
            alias_set.note_put(_memory(session, part, alias_set))
        elif is_a(part, structure.Growing):
            alias_set.merge(part.alias_set)
        elif _is_copied(session, part):
            copied_items.put(session, part, place, id(part) in seen)
            seen.add(id(part))


def got(session: Session, alias_set: AliasSet, value: Any) -> None:
    """A value is one of the items."""
    for part in _parts(value):
        if is_a(part, torch.Tensor):
            storage = _storage(session, part, alias_set)
            cached_results.hand_on(storage, alias_set.find().cached_by)
            alias_set.note_got(storage)
            session.origins.note_unknown(part)  # one of those that were put in: which one nobody says
        elif (is_a(part, (list, dict)) or objects.is_record(part)) and _is_copied(session, part):
            shared_items.hold(session, part)


def _parts(value: Any) -> Iterator[Any]:
    """The tensors, lists that grow, lists, dicts and instances of dataclasses inside a value."""
    if is_a(value, (torch.Tensor, structure.Growing)):
        yield value
    elif is_a(value, structure.Choice):
        for option in value.options:
            yield from _parts(option)
    elif is_a(value, (list, tuple)):
        if type(value) is list:
            yield value
        for item in objects.own_items(value):
            yield from _parts(item)
    elif (fields := structure.field_items(value)) is not None:
        if is_a(value, dict) or objects.is_record(value):
            yield value
        for item in fields[1]:
            yield from _parts(item)


def _is_copied(session: Session, part: Any) -> bool:
    """Whether items are copies of the list, dict or record: then it must not be changed."""
    if structure.row_of(part) is not None or id(part) in session.objects.externals:
        return False
    return is_a(part, (list, dict)) or structure.can_be_copied(session, part)


def _storage(session: Session, tensor: torch.Tensor, alias_set: AliasSet) -> Storage:
    storage = session.info(tensor).storage
    _note(session, storage, alias_set)
    return storage


def _memory(session: Session, tensor: torch.Tensor, alias_set: AliasSet) -> set[Storage]:
    """All memory that a tensor may be: once it is only in the list, nothing else tells."""
    roots, reached = few_roots(session.info(tensor), ())
    found = {*reached, *(root.storage for root in roots)}
    for storage in found:
        _note(session, storage, alias_set)
    return found


def _note(session: Session, storage: Storage, alias_set: AliasSet) -> None:
    if all(known.find() is not alias_set.find() for known, _ in storage.alias_sets):
        storage.alias_sets.append((alias_set, session.location()))


__all__ = ["got", "put"]
