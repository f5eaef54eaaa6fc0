"""What the path that the trace is on says of a number that tells which of several a value is.

    if mask is not None:               mask: None or a tensor, as %which says
        mask = mask + 1                here %which is 1: the value is the tensor, and nothing is asked about None
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from runtime.ir import Variable
from runtime.kinds import is_a
from runtime.tracer.numbers.scalars import Staged, StagedBool, StagedInt

if TYPE_CHECKING:
    from runtime.tracer.recording.session import Scope, Session

CHOSEN = "chosen"
"""The meaning of a bool or int that is one plain one or another, by a number: the number, and what it is for each
value."""


def note_result(session: Session, result: Any, selector: Staged, results: Sequence[Any]) -> None:
    """``result`` is what a ``switch`` gives; ``results``: what its branches do, None for those that end."""
    kind = bool if is_a(result, StagedBool) else int
    if is_a(result, (StagedBool, StagedInt)) and all(one is None or type(one) is kind for one in results):
        session.sizes.note_meaning(result, CHOSEN, (selector.var, tuple(results)))


def hold(session: Session, selector: Variable, values: frozenset[int]) -> None:
    """In the Block that is open, a number is one of these."""
    known = session.scope.selected.get(selector)
    session.scope.selected[selector] = values if known is None else known & values


def hold_compared(session: Session, name: str, left: Any, right: Any, truth: bool) -> None:
    """In the Block that is open, such a comparison is true or false: of a number that another one chooses, with a plain
    one, it says what the other one is."""
    if not is_a(left, Staged):
        left, right, name = right, left, _SWAPPED.get(name, name)
    meaning = session.sizes.meaning(left) if is_a(left, StagedInt) and type(right) is int else None
    if meaning is not None and meaning[0] == CHOSEN:
        selector, results = meaning[1]
        compare = getattr(operator, name)
        hold(session, selector, frozenset(n for n, one in enumerate(results)
                                          if one is not None and compare(one, right) is truth))  # fmt: skip


_SWAPPED = {"gt": "lt", "lt": "gt", "ge": "le", "le": "ge"}


def possible(scope: Scope, selector: Variable) -> frozenset[int] | None:
    """The values that a number may have where a Block is recorded; None: nothing is known of it."""
    found: frozenset[int] | None = None
    for one in scope.chain():
        known = one.selected.get(selector)
        if known is not None:
            found = known if found is None else found & known
    return found


def only(session: Session, selector: Variable) -> int | None:
    """The one value that a number has on the path that the trace is on; None if there are several, or none is known."""
    found = possible(session.scope, selector)
    return next(iter(found)) if found is not None and len(found) == 1 else None


__all__ = ["CHOSEN", "hold", "note_result", "only", "possible"]
