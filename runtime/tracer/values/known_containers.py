"""The containers of a trace that need more than Python's own: those that grow, are several, or stand for others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from runtime.ir import Location, Variable
from runtime.tracer.ambient.session_parts import ITEMS, KEPT, PARTS, VALUE, SessionPart, state
from runtime.tracer.values.copied_items import Copied
from runtime.tracer.values.referred import Readers

if TYPE_CHECKING:
    from runtime.tracer.recording.session import Scope
    from runtime.tracer.values.alias_sets import AliasSet
    from runtime.tracer.values.heaps import Heap
    from runtime.tracer.values.tables import Table


@dataclass(eq=False)
class KnownContainers(SessionPart):
    """Lists, dicts and objects, and what is known of them."""

    hidden: dict[int, tuple[Any, Any]] = state(ITEMS, dict)
    """Containers, by identity, that hold what another one does on some paths, with that (see ``containers``)."""
    stopped: dict[int, Any] = state(KEPT, dict)  # nothing can put them back
    """Iterators, by identity, that give no more items, as what they go over was put back at the end of a path."""
    has_growing: bool = state(VALUE, False)
    """Whether a list has come to have a length that is only known at run time."""
    has_unset: bool = state(VALUE, False)
    """Whether an object has an attribute that only some of the paths that lead here set."""
    present: list[tuple[Scope, Any, Any]] = state(ITEMS, list)
    """Where it is known that a list that grows has an item: in which Block, what the list holds, the index."""
    open_alias_sets: list[tuple[AliasSet, bool]] = state(KEPT, list)  # never changes
    """What the items of lists among the arguments are, whose length is another one in each call; whether they need
    gradients."""
    held_in_lists: dict[int, Location | None] = state(ITEMS, dict)
    """Lists, dicts and records, by identity, of which a list that grows holds copies, and since where."""
    held_owners: dict[int, Any] = state(ITEMS, dict)
    """All that ever were, so that no other object has their identity."""
    copied: Copied = state(PARTS, Copied)
    existing: dict[int, tuple[tuple[Any], Mapping[Variable, frozenset[int]]]] = state(ITEMS, dict)
    """For containers that paths made, by identity: a tuple of it, and what is so in every run in which there is one
    (see ``control.existence``)."""
    known_to_exist: dict[int, tuple[Any]] = state(ITEMS, dict)
    """The tuple of each of these: the only reference to it that is the tracer's own, wherever something is known."""
    heaps: dict[Any, Heap | Table] = state(ITEMS, dict)
    """What lists hold that lists which grow have by reference, by the kind of their items (see ``heaps``); what dicts
    and objects hold, by class and keys (see ``tables``)."""
    made_at: dict[int, Location | None] = state(KEPT, dict)  # what has one of these identities is kept alive
    """Where the dicts and sets are made that the function makes, by identity."""
    dicts_in_lists: set[Location] = state(KEPT, set)  # asked only where the trace ends
    """Where those of them are made that lists which grow were to hold by reference."""
    has_rows: bool = state(VALUE, False)
    """Whether there are such dicts and objects."""
    reads: dict[tuple[int, Variable], tuple[Any, Variable]] = state(ITEMS, dict)
    """By a tensor's number and what its memory holds: its views then, and its Variable (see ``one_view``)."""
    listed: dict[int, Any] = state(ITEMS, dict)
    """Tensors that became items of lists that grow, by identity: these refer to them, whoever else does."""
    readers: Readers = state(KEPT, Readers)  # says nothing of the trace

    @property
    def has_contents(self) -> bool:
        """Whether there is a container that stands for others, which operators open."""
        return bool(self.hidden) or self.has_rows


__all__ = ["KnownContainers"]
