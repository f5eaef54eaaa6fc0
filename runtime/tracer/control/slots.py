"""What a loop may carry: local names and places in Python state, one slot each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from runtime.ir import Location
from runtime.kinds import is_a
from runtime.tracer.ambient.poison import keys_answer
from runtime.tracer.control.branches import Names
from runtime.tracer.control.loop_objects import Cell
from runtime.tracer.python_state.journal import Place
from runtime.tracer.recording.session import Session
from runtime.tracer.values import alias_set_items, containers, heaps, structure
from runtime.tracer.values.describing import describe
from runtime.tracer.values.loop_sizes import with_sizes

TRIES = 12
"""So often a body is traced to find what the loop carries."""


@dataclass(eq=False)
class Slot:
    """One thing the loop may carry: a local name or a place in Python state."""

    label: str
    init: Any
    carried: structure.Structure
    place: Place | None = None
    cell: Cell | None = None
    """What a stand-in holds is carried as a tuple."""

    def describe(self) -> str:
        """How the user would call it."""
        if self.cell is not None:
            return f"what a {self.cell.cls.__name__} made in the loop holds"
        return self.place.describe() if self.place is not None else f"'{self.label}'"


def first_slots(session: Session, names: Names, invariants: dict[str, Any]) -> list[Slot]:
    """One for each variable, with what it holds before the loop."""
    return [
        Slot(name, value, with_sizes(session, name, value, invariants))
        for name, value in zip(names.names, names.get())
    ]


def moved_lists(session: Session, slots: list[Slot]) -> bool:
    """Make ready what a list that comes to grow in the loop holds; whether that is new, so that the loop begins anew.

    The list holds the lists inside by reference, which they must be before the body is traced, or copies of them, and
    then the body must not change them.
    """
    kinds = list, structure.Choice
    growing = [slot for slot in slots if _holds_arrays(slot.carried) and is_a(slot.init, kinds)]
    if session.call.known.by_reference:
        moved = heaps.move_inside(session, [_whole(slot) for slot in slots if _has_rows(slot.carried)])
        return heaps.settle(session, [slot.init for slot in growing]) or moved
    for slot in growing:
        if is_a(slot.carried, structure.Array) and structure.growing(slot.init) is None:
            for position, item in enumerate(slot.init):
                alias_set_items.put(session, slot.carried.alias_set, item, (slot.init, position))
    return False


def _has_rows(s: structure.Structure) -> bool:
    """Whether the body has let a list or dict be held by reference, or one inside of a value."""
    if is_a(s, structure.Options):
        return any(map(_has_rows, s.options))
    if is_a(s, (structure.Sequence, structure.Fields)):
        return any(map(_has_rows, s.items))
    return is_a(s, structure.Reference)


def _is_row(s: structure.Structure) -> bool:
    return any(map(_is_row, s.options)) if is_a(s, structure.Options) else is_a(s, structure.Reference)


def _whole(slot: Slot) -> Any:
    """What a slot has before the loop; for what a list or dict holds that has become a row, that."""
    of_content = slot.place is not None and slot.place.kind == "content" and type(slot.place.owner) in (list, dict)
    return slot.place.owner if slot.place is not None and of_content and _is_row(slot.carried) else slot.init


def _holds_arrays(s: structure.Structure) -> bool:
    if is_a(s, structure.Options):
        return any(map(_holds_arrays, s.options))
    if is_a(s, (structure.Sequence, structure.Fields)):
        return any(map(_holds_arrays, s.items))
    return is_a(s, structure.Array)


def never_fixed(session: Session, changing: list[Slot], location: Location | None) -> Exception:
    """The located error that says which variable never gets a structure that stays, and what it was last."""
    named = [slot for slot in changing if slot.label or slot.place is not None]
    cells = [slot for slot in changing if slot.cell is not None]
    session.hold_by_reference(*(slot.cell.cls for slot in cells if slot.cell and not slot.cell.is_container))
    found = named or cells
    names = [slot.describe() for slot in found]
    lasts = [f"{name} was {describe(slot.carried)}" for name, slot in zip(names, found)]
    return session.error(
        f"{' and '.join(names) or 'what this loop changes'} never reach{'es' if len(names) == 1 else ''} a fixed "
        f"structure: after {TRIES} iterations {', '.join(lasts) or 'it still changes'}",
        hint="Give it its final kind before the loop: the same number of items and dimensions in every iteration, or a "
        "list that grows by append.",
        code="D2S250",
        location=location,
    )


def store(session: Session, place: Place | None, value: Any) -> None:
    """Let a place hold what a slot does."""
    if place is not None:
        containers.store(session, place, value)


def held(place: Place) -> Any:
    return containers.content(place.owner) if place.kind == "content" else place.get()


def same_items(a: Any, b: Any) -> bool:
    """Whether a container's content did not change."""
    if is_a(a, list) and is_a(b, list):
        return len(a) == len(b) and all(structure.same_known(x, y) for x, y in zip(a, b))
    if is_a(a, dict) and is_a(b, dict):
        with keys_answer():
            return list(a) == list(b) and all(structure.same_known(a[key], b[key]) for key in a)
    return is_a(a, frozenset) and is_a(b, frozenset) and a == b  # one of several is no set


def only_tensors_differ(a: Any, b: Any) -> bool:
    """Whether two contents of a container have the same keys or length, and tensors where they differ: the first
    iteration tells what changes then. Other items may be those of the first iteration only."""
    if is_a(a, dict) and is_a(b, dict):
        with keys_answer():
            if list(a) != list(b):
                return False
            a, b = list(a.values()), list(b.values())
    if not is_a(a, list) or not is_a(b, list) or len(a) != len(b):
        return False
    differing = [(x, y) for x, y in zip(a, b) if not structure.same_known(x, y)]
    return all(_is_tensors(one) for pair in differing for one in pair)


def _is_tensors(value: Any) -> bool:
    """Whether a value is a tensor, or one of several tensors and None."""
    if is_a(value, structure.Choice):
        return all(option is None or _is_tensors(option) for option in value.options)
    return is_a(value, torch.Tensor)


__all__ = [
    "TRIES", "Slot", "first_slots", "held", "moved_lists", "never_fixed",
    "only_tensors_differ", "same_items", "store",
]  # fmt: skip
