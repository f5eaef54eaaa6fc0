"""Plain numbers that change from call to call: inputs of the Program instead of guards. Here those outside the
arguments; for arguments see ``values/open_values.py``.

    self.step = self.step + 1      guarded: a Program for each number that ``self.step`` ever was
                                   a fact:  an input, read when the Program is called, and written back by its effect

A number enters as a tensor without dimensions, of 64 bits, and is taken out of it where the Program begins.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from runtime import torch_internals
from runtime.kinds import is_a
from runtime.tracer.ambient.walks import walk
from runtime.tracer.numbers.scalars import Staged
from runtime.tracer.python_state.journal import Place

if TYPE_CHECKING:
    from runtime.tracer.recording.session import Session

_DTYPES = {int: torch.int64, float: torch.float64}
_LIMIT = 2**63


@dataclass(frozen=True)
class Fact:
    """A place whose number is read at each call."""

    place: Place
    kind: type

    def tensor(self) -> torch.Tensor:
        """The number that is there now, as the Program takes it."""
        return number_tensor(self.place.get())

    def holds(self) -> bool:
        """Whether there still is such a number."""
        return can_be_fact(self.place.get(), self.kind)


def can_be_fact(value: Any, kind: type | None = None) -> bool:
    """Whether a value is a number that a Program can take in (of this kind, if one is given).

    >>> can_be_fact(3), can_be_fact(0.5), can_be_fact(True), can_be_fact(2**70), can_be_fact(3, float)
    (True, True, False, False, False)
    """
    if type(value) not in _DTYPES or (kind is not None and type(value) is not kind):
        return False
    return type(value) is float or -_LIMIT <= value < _LIMIT


def number_tensor(value: int | float) -> torch.Tensor:
    """A number as a Program takes it: a tensor of its own on the CPU, int64[] or float64[]."""
    return torch.tensor(value, dtype=_DTYPES[type(value)], device="cpu")


def number_input(session: Session, value: int | float, label: str) -> Staged:
    """Declare an input of the Program for a number; the staged number that is taken out of it."""
    with session.reopen(session.root()), torch_internals.no_modes():
        fake = session.inputs.add_input(number_tensor(value), label)
        return session.from_tensor("item", fake, kind=type(value).__name__)


def stage(session: Session, place: Place, value: Any) -> bool:
    """If the place is to be a fact, put its staged number there for the rest of the trace; whether it is one."""
    if place not in session.call.varying or not can_be_fact(value):
        return False
    fact = Fact(place, type(value))
    number = number_input(session, value, place.describe())
    session.journal.note_fact(place, value)
    place.set(number)
    session.call.facts[place] = (fact, number)
    session.guards.add_test((place, "kind"), f"the type of {place.describe()}", fact.holds)
    return True


_ITEMS, _DEPTH = 256, 4


def numbers_inside(value: Any) -> Iterator[tuple[Place, Any]]:
    """Where plain numbers are in a list or dict, and in those that it holds, and which they are.

    >>> [number for _, number in numbers_inside([{"lr": 0.1, "name": "a"}, (2, [3])])]
    [0.1, 3]
    """
    seen: set[int] = set()
    for one in walk([value], _parts, _DEPTH):
        if not _parts(one) or id(one) in seen:
            continue
        seen.add(id(one))
        for key, item in () if type(one) is tuple else one.items() if is_a(one, dict) else enumerate(one):
            if can_be_fact(item):
                yield Place("item", one, key), item


def _parts(value: Any) -> Any:
    if type(value) not in (list, dict, tuple) or len(value) > _ITEMS:
        return ()
    return dict.values(value) if is_a(value, dict) else value


def stage_items(session: Session, container: Any) -> None:
    """Stage the numbers in a list or dict from before the trace that are to be facts."""
    if type(container) in (list, dict):
        for place in session.call.varying:
            if place.kind == "item" and place.owner is container and stage(session, place, place.get()):
                session.guards.pin(container)  # another one in its place would have another number


def is_zero(session: Session, number: Any) -> bool | None:
    """Whether the number of a fact is 0, which is guarded; None for anything else.

    Code asks it of numbers that hardly ever become 0 (``if momentum != 0:``): a Program for each answer is smaller than
    one with branches for both.
    """
    place = next((place for place, (_, staged) in session.call.facts.items() if staged is number), None)
    if place is None:
        return None
    found = bool(session.journal.frames[0][place] == 0)
    session.guards.add_test(
        (place, "zero"), f"whether {place.describe()} is 0", lambda: bool(place.get() == 0) is found)
    return found


def holds_facts(session: Session, value: Any) -> bool:
    """Whether a value is, or holds, the number of a fact."""
    if is_a(value, Staged):
        return any(value is number for _, number in session.call.facts.values())
    if type(value) not in (list, dict, tuple) or not session.call.facts:
        return False
    return any(holds_facts(session, one) for one in (dict.values(value) if is_a(value, dict) else value))


__all__ = [
    "Fact", "can_be_fact", "holds_facts", "is_zero", "number_input", "number_tensor", "numbers_inside", "stage",
    "stage_items",
]  # fmt: skip
