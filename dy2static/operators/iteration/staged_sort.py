"""``sorted`` by keys that are only known while the Program runs: neighbours change places under a staged comparison."""

from __future__ import annotations

import operator
from typing import Any

import torch

from dy2static.operators.calls.call import traced
from dy2static.operators.calls.truth import truth_of
from dy2static.operators.shared.staging import NO_NAMES, Session, Staged
from runtime.kinds import is_a
from runtime.tracer.control import cond as tracer_cond
from runtime.tracer.recording.attempt import Attempt

_AT_MOST = 32


def in_order(session: Session, pairs: list[tuple[Any, Any]], reverse: bool) -> list[Any]:
    """The second items of ``(key, item)`` pairs, by their keys; equal ones keep their order, as in Python.

    Errors raised: TraceError (D2S263) for more than 32 items, whose comparisons would fill the Program.
    """
    if len(pairs) > _AT_MOST:
        raise session.error(f"sorted() of {len(pairs)} items by values only known at run time", code="D2S263",
                            hint="Put the values into a tensor and use torch.sort.")
    for key, _ in pairs:
        _require_ordered(session, key)
    pairs = list(pairs)
    for end in range(len(pairs) - 1, 0, -1):
        for index in range(end):
            pairs[index], pairs[index + 1] = _exchange(session, pairs[index], pairs[index + 1], reverse)
    return [item for _, item in pairs]


def in_users_order(session: Session, pairs: list[tuple[Any, Any]], reverse: bool) -> list[Any]:
    """The same by keys whose class says itself which is less: Python sorts, as long as all answers are known.

    An order that is not total gives what Python's way of sorting makes of it.
    """
    with Attempt(session) as tried:
        asked = [(_Asked(session, key), item) for key, item in pairs]
        try:
            return [item for _, item in sorted(asked, key=operator.itemgetter(0), reverse=reverse)]
        except _NotKnownError:
            tried.undo()
    return in_order(session, pairs, reverse)


class _NotKnownError(Exception):
    """Which of two keys is less is only known while the Program runs."""


class _Asked:
    """A key that is compared by converted code."""

    def __init__(self, session: Session, key: Any) -> None:
        self.session, self.key = session, key

    def __lt__(self, other: _Asked) -> bool:
        less = truth_of(self.session, traced(self.session, operator.lt, (self.key, other.key), {}))
        if is_a(less, Staged):
            raise _NotKnownError
        return bool(less)


def _exchange(session: Session, a: tuple[Any, Any], b: tuple[Any, Any], reverse: bool) -> Any:
    first, second = (a, b) if reverse else (b, a)
    swap = truth_of(session, traced(session, operator.lt, (first[0], second[0]), {}))
    if not is_a(swap, Staged):
        return (b, a) if swap else (a, b)
    alone = a[0] is a[1] and b[0] is b[1]  # without a key function the keys are the items
    if alone:
        first, second = tracer_cond.cond(session, swap, lambda: (b[1], a[1]), lambda: (a[1], b[1]), NO_NAMES)
        return (first, first), (second, second)
    return tracer_cond.cond(session, swap, lambda: (b, a), lambda: (a, b), NO_NAMES)


def _require_ordered(session: Session, key: Any) -> None:
    """Where a key is nan, Python's result depends on how it sorts: that is an error."""
    if is_a(key, (tuple, list)):
        for part in key:
            _require_ordered(session, part)
        return
    if is_a(key, torch.Tensor):
        fake = session.fake(key)
        if not fake.dtype.is_floating_point or not all(type(size) is int and size == 1 for size in fake.shape):
            return  # several elements have no truth: comparing them raises
    if is_a(key, torch.Tensor) or (is_a(key, Staged) and key.kind == "float"):
        flag = truth_of(session, key == key)
        session.emit("assert", [session.operand(flag)], attrs={
            "exception": "ValueError", "message": "sorted() of nan: its place is not defined"})
