"""Tensors that are, on some path or from some iteration, a view that autograd does not let be written.

What is known of such views is in ``nonwritable_views``. What a join gives is memory of its own, brought up to date
where it is another's (``aliases``): its values since the join tell of writes to its base. Two flags, deferred outputs
of the construct, say whether it is such a view at all, and whether its base was written before.

A view that is older than its base's history is such a one for another reason (``leaf_writes``): to autograd it is a
leaf. One flag says whether a tensor is one. Where a view was read first is no part of its memory, so that a path or an
iteration may also change what is so of a view from before the construct (``Graph.bare``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from runtime.ir import Operand, Operator, Variable
from runtime.tracer.control.branches import Path
from runtime.tracer.control.parts import Body, JoinPart, LoopPart, Met, Number, Pairs
from runtime.tracer.memory.conditions import NEVER, PathCondition
from runtime.tracer.memory.deferred import CarriedCondition, PathEnd, joined
from runtime.tracer.memory.storage_table import FixedView, TensorInfo
from runtime.tracer.recording.nonwritable_views import behind_when, stale_when
from runtime.tracer.recording.session import Scope, Session

Key = tuple[str, bool, bool, bool]


@dataclass(frozen=True)
class _Conditions:
    """When a tensor is such a view at a path's end, when its base was written, and when it got a history by that which
    did not come to the view."""

    when: PathCondition = NEVER
    stale: PathCondition = NEVER
    behind: PathCondition = NEVER

    def __or__(self, other: _Conditions) -> _Conditions:
        return _Conditions(*(mine | its for mine, its in zip(self.parts, other.parts)))

    @property
    def parts(self) -> tuple[PathCondition, PathCondition, PathCondition]:
        return self.when, self.stale, self.behind


def _facts(info: TensorInfo, end: Variable, bare: PathCondition) -> dict[Key | None, _Conditions]:
    """What is known of a tensor, by the kind of view; None stands for one without a history, which it is where it is
    ``bare``. ``end``: its memory."""
    found: dict[Key | None, _Conditions] = {} if bare.never else {None: _Conditions(bare)}
    for fixed in info.fixed:
        key = fixed.output, fixed.has_node, fixed.several, fixed.noticed
        found[key] = found.get(key, _Conditions()) | _Conditions(
            fixed.when, stale_when(info, fixed, end), behind_when(info, fixed, end))
    return found


def _at_end(session: Session, path: Path, info: TensorInfo) -> dict[Key | None, _Conditions]:
    """What is known of a tensor at a path's end."""
    bare = path.bare[info] if info in path.bare else session.graph.bare.get(info, NEVER)
    return _facts(info, path.storages.get(info.storage, info.storage.value), bare)


def _put(session: Session, info: TensorInfo, key: Key | None, found: _Conditions) -> None:
    if key is None:
        session.graph.bare[info] = session.graph.bare.get(info, NEVER) | found.when
        session.graph.bare_in.setdefault(info, session.scope)
    else:
        info.fixed += (FixedView(info.storage.value, *key, *found.parts),)


class JoinViews(JoinPart):
    """The results of a ``cond`` or ``switch`` are such views where a path's tensors are."""

    def recorded(self, op: Operator, outputs: Iterator[Variable]) -> None:
        """Views from before have the histories that paths gave them."""
        session, paths = self.branches.session, self.branches.paths
        for info, before in list(session.graph.bare.items()):
            left = [path.bare[info] if info in path.bare else before for path in paths]
            if any(bare != before for path, bare in zip(paths, left) if not path.ended):
                ends = [(PathEnd(path.scope, path.ended), bare) for path, bare in zip(paths, left)]
                session.graph.bare[info] = joined(session, op, session.scope, ends)

    def tensors(self, op: Operator, met: Met) -> None:
        """Note it of each."""
        _note_join(self.branches.session, op, met)


def _note_join(session: Session, op: Operator, pairs: Met) -> None:
    found: dict[tuple[int, Key | None], tuple[TensorInfo, dict[Path, _Conditions]]] = {}
    for path, tensors in pairs:
        for inside, outside in tensors:
            mine, info = session.info(outside), session.info(inside)
            if mine is info or path.ended:
                continue
            for key, fact in _at_end(session, path, info).items():
                _, by_path = found.setdefault((id(mine), key), (mine, {}))
                by_path[path] = by_path.get(path, _Conditions()) | fact
    for (_, key), (mine, by_path) in found.items():
        ends = [(PathEnd(path.scope, path.ended), by_path.get(path, _Conditions())) for path, _ in pairs]
        _put(session, mine, key, _Conditions(*(
            joined(session, op, session.scope, [(end, found.parts[part]) for end, found in ends]) for part in range(3)
        )))  # fmt: skip


class LoopViews(LoopPart):
    """The same for what a loop carries round; each attempt to trace the body starts from what the one before found."""

    def __init__(self, before: LoopViews | None = None) -> None:
        self._found: dict[Number, dict[Key | None, None]] = {} if before is None else before._found
        self._values: dict[tuple[Number, Key | None], list[CarriedCondition]] = {}
        self._read: dict[TensorInfo, None] = {} if before is None else before._read
        """Views from before the loop to which iterations give a history."""
        self._bare: dict[TensorInfo, CarriedCondition] = {}

    def forget(self, slots: set[int]) -> None:
        """Slots whose structure changed are numbered anew."""
        for number in [number for number in self._found if number[0] in slots]:
            del self._found[number]

    def again(self) -> LoopViews:
        """With what iterations left."""
        return LoopViews(self)

    def enter(self, body: Body, pairs: Pairs, stand_ins: Pairs) -> None:
        """Let what enters the body be such a view where it was one before the loop, or an iteration left one."""
        session, entry = body.session, body.entry
        first: dict[tuple[Number, Key | None], _Conditions] = {}
        for number, outside, _ in pairs:
            info = session.info(outside)
            end = entry.get(info.storage, info.storage.value)
            for key, fact in _facts(info, end, session.graph.bare.get(info, NEVER)).items():
                self._found.setdefault(number, {})[key] = None
                first[number, key] = first.get((number, key), _Conditions()) | fact
        for number, info in {number: session.info(inside) for number, inside, _ in stand_ins}.items():
            for key in self._found.get(number, ()):
                before = first.get((number, key), _Conditions())
                values = [CarriedCondition(_now(session, body.scope, one), body.scope) for one in before.parts]
                self._values[number, key] = values
                _put(session, info, key, _Conditions(*(value.inside for value in values)))
        for info in self._read:
            self._bare[info] = CarriedCondition(_now(session, body.scope, session.graph.bare[info]), body.scope)
            session.graph.bare[info] = self._bare[info].inside

    def leave(self, body: Body, path: Path, pairs: Pairs) -> bool:
        """Note what an iteration leaves; whether the body was traced as if that had been known."""
        session = body.session
        known = True
        left: dict[tuple[Number, Key | None], _Conditions] = {}
        for number, out, _ in pairs:
            info = session.info(out)
            for key, fact in _at_end(session, path, info).items():
                if key not in self._found.setdefault(number, {}):
                    self._found[number][key] = None
                    known = False
                left[number, key] = left.get((number, key), _Conditions()) | fact
        for at, values in self._values.items():
            for value, found in zip(values, left.get(at, _Conditions()).parts):
                value.next = found
        for info, value in self._bare.items():
            value.next = path.bare[info]
        for info, bare in path.bare.items():
            if info not in self._bare and bare != session.graph.bare[info]:
                self._read[info] = None
                known = False
        return known

    def finish(self, body: Body, op: Operator, path: Path, pairs: Pairs) -> None:
        """The loop is recorded: its results are what the last iteration left."""
        session = body.session
        results = {number: session.info(result) for number, _, result in pairs}
        for (number, key), values in self._values.items():
            for value in values:
                value.finish(session, op, PathEnd(path.scope, path.ended))
            if number in results:
                _put(session, results[number], key, _Conditions(*(value.after for value in values)))
        for info, value in self._bare.items():
            value.finish(session, op, PathEnd(path.scope, path.ended))
            session.graph.bare[info] = value.after


def _now(session: Session, body: Scope, condition: PathCondition) -> Operand:
    """Whether it holds before the loop, outside its body."""
    assert body.parent is not None
    with session.reopen(body.parent):
        return condition.operand(session)


__all__ = ["JoinViews", "LoopViews"]
