"""Tensors that are, on some path or from some iteration, a view that autograd does not let be written.

What is known of such views is in ``stale_views``. What a join gives is memory of its own, brought up to date where it
is another's (``aliases``): its values since the join tell of writes to its base. Two flags, late values of the
construct, say whether it is such a view at all, and whether its base was written before.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from runtime.ir import Operand, Operator, Variable
from runtime.tracer.branches import Path
from runtime.tracer.late import BOOL, Flags, JoinOutput, LoopValue, PathEnd, any_of
from runtime.tracer.loop_aliases import Number, Pairs
from runtime.tracer.session import Scope, Session
from runtime.tracer.stale_views import stale_cases
from runtime.tracer.storage_table import FixedView, Storage, TensorInfo

Key = tuple[str, bool, bool]


@dataclass
class _Cases:
    """When a tensor is such a view at a path's end, and when its base was written."""

    when: list[Flags] = field(default_factory=list)
    stale: list[Flags] = field(default_factory=list)

    def add(self, fixed: FixedView, stale: list[Flags]) -> None:
        self.when.append(fixed.when)
        self.stale += stale


def _key(fixed: FixedView) -> Key:
    return fixed.output, fixed.has_node, fixed.several


def note_join(
    session: Session, op: Operator, pairs: Sequence[tuple[Path, Iterable[tuple[torch.Tensor, torch.Tensor]]]]
) -> None:
    """The results of a ``cond`` or ``switch`` are such views where a path's tensors are; ``pairs``: both, by path."""
    found: dict[tuple[int, Key], tuple[TensorInfo, dict[Path, _Cases]]] = {}
    for path, tensors in pairs:
        for inside, outside in tensors:
            mine, info = session.info(outside), session.info(inside)
            if mine is info or path.ended:
                continue
            for fixed in info.fixed:
                _, by_path = found.setdefault((id(mine), _key(fixed)), (mine, {}))
                end = path.storages.get(info.storage, info.storage.value)
                by_path.setdefault(path, _Cases()).add(fixed, stale_cases(info, fixed, end))
    for (_, key), (mine, by_path) in found.items():
        flags: list[tuple[Flags, ...]] = []
        for cases in ({p: c.when for p, c in by_path.items()}, {p: c.stale for p, c in by_path.items()}):
            always = all(path.ended or () in cases.get(path, []) for path, _ in pairs)
            rows: list[Any] = [(PathEnd(path.scope, path.ended), cases.get(path) or False) for path, _ in pairs]
            if always or not any(cases.values()):
                flags.append(((),) if always else ())
            else:
                flags.append(((JoinOutput(op, session.scope, BOOL, rows),),))
        when, stale = flags
        mine.fixed = (*mine.fixed, FixedView(mine.storage.value, *key, when[0], stale))


class LoopViews:
    """The same for what a loop carries round; each attempt to trace the body starts from what the one before found."""

    def __init__(self, before: LoopViews | None = None) -> None:
        self._found: dict[Number, dict[Key, None]] = {} if before is None else before._found
        self._values: dict[tuple[Number, Key], tuple[LoopValue, LoopValue]] = {}

    def forget(self, slots: set[int]) -> None:
        """Slots whose structure changed are numbered anew."""
        for number in [number for number in self._found if number[0] in slots]:
            del self._found[number]

    def enter(
        self, session: Session, body: Scope, pairs: Pairs, stand_ins: Pairs, entry: dict[Storage, Variable]
    ) -> None:
        """Let what enters the body be such a view where it was one before the loop, or an iteration left one.

        ``stand_ins``: all that the body has, what was not there before the loop included; ``entry``: what memory held
        before it.
        """
        first: dict[tuple[Number, Key], _Cases] = {}
        for number, outside, _ in pairs:
            info = session.info(outside)
            for fixed in info.fixed:
                self._found.setdefault(number, {})[_key(fixed)] = None
                cases = first.setdefault((number, _key(fixed)), _Cases())
                cases.add(fixed, stale_cases(info, fixed, entry.get(info.storage, info.storage.value)))
        for number, info in {number: session.info(inside) for number, inside, _ in stand_ins}.items():
            for key in self._found.get(number, ()):
                cases = first.get((number, key), _Cases())
                when, stale = (_now(session, body, one) for one in (cases.when, cases.stale))
                values = LoopValue(BOOL, when, body), LoopValue(BOOL, stale, body)
                self._values[number, key] = values
                info.fixed += (_carried(info, key, values[0].inside, values[1].inside),)

    def leave(self, session: Session, path: Path, pairs: Pairs) -> bool:
        """Note what an iteration leaves; whether the body was traced as if that had been known."""
        known = True
        left: dict[tuple[Number, Key], _Cases] = {}
        for number, out, _ in pairs:
            info = session.info(out)
            for fixed in info.fixed:
                key = _key(fixed)
                if key not in self._found.setdefault(number, {}):
                    self._found[number][key] = None
                    known = False
                end = path.storages.get(info.storage, info.storage.value)
                left.setdefault((number, key), _Cases()).add(fixed, stale_cases(info, fixed, end))
        for at, (when, stale) in self._values.items():
            cases = left.get(at, _Cases())
            when.next, stale.next = cases.when, cases.stale
        return known

    def finish(self, session: Session, op: Operator, path: Path, pairs: Pairs) -> None:
        """The loop is recorded: its results are what the last iteration left."""
        results = {number: session.info(result) for number, _, result in pairs}
        for (number, key), (when, stale) in self._values.items():
            end = PathEnd(path.scope, path.ended)
            when.finish(session, op, end)
            stale.finish(session, op, end)
            if number in results:
                info = results[number]
                info.fixed += (_carried(info, key, when.after, stale.after),)


def _carried(info: TensorInfo, key: Key, when: Any, stale: Any) -> FixedView:
    return FixedView(info.storage.value, *key, (when,), ((stale,),))


def _now(session: Session, body: Scope, cases: list[Flags]) -> Operand:
    """A flag's value before the loop, outside its body."""
    assert body.parent is not None
    with session.reopen(body.parent):
        return any_of(session, cases)


__all__ = ["LoopViews", "note_join"]
