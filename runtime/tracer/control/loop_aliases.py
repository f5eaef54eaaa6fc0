"""What a loop's tensors share memory with: before it, from one iteration to the next, and after it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from runtime.ir import UNDEF, Block, Location, Operand, Operator, ScalarType, Type, Variable
from runtime.kinds import is_a
from runtime.tracer.control.parts import Body, LoopPart, Number, Pairs
from runtime.tracer.memory import aliases, cached_results, unknown_aliasing
from runtime.tracer.memory.aliases import Link, Root
from runtime.tracer.memory.conditions import Deferred, PathCondition, any_of
from runtime.tracer.memory.deferred import CarriedCondition, LoopValue, PathEnd
from runtime.tracer.memory.storage_table import RecordedStep, Storage, note_unknown_alias
from runtime.tracer.values import alias_sets

if TYPE_CHECKING:
    from runtime.tracer.control.branches import Path
    from runtime.tracer.recording.session import Scope, Session


_CHAINS = 3
"""So many ways in which one tensor is a view of another are told apart; ``x = x.t()`` has a new one in each iteration.
"""


@dataclass(eq=False)
class _Share:
    """``number`` may be ``steps`` of ``base``: memory from outside, or another tensor of the loop's state."""

    number: Number
    base: Storage | Number
    steps: tuple[RecordedStep, ...]
    holes: tuple[Variable, ...] = ()
    """What stands in ``steps`` for numbers that an iteration computes."""
    value: CarriedCondition | None = None
    numbers: tuple[LoopValue, ...] = ()
    """Those numbers, carried beside ``value``, which says whether the share holds."""
    cases: list[tuple[PathCondition, tuple[Operand | Deferred, ...]]] = field(default_factory=list)
    """When an iteration leaves it so, with those numbers then."""

    def same(self, number: Number, base: Storage | Number, steps: tuple[RecordedStep, ...]) -> bool:
        """Whether it is about these."""
        return self.between(number, base) and aliases.key(self.steps) == aliases.key(steps)

    def between(self, number: Number, base: Storage | Number) -> bool:
        """Whether it is about these two."""
        mine = self.base
        return self.number == number and (mine is base or (is_a(mine, tuple) and mine == base))

    def carry(self, first: bool, body: Scope) -> None:
        """Let the loop carry it, if it is asked for; ``first``: whether it holds before the loop."""
        self.value = CarriedCondition(first, body)
        self.numbers = tuple(LoopValue(hole.type, UNDEF, body) for hole in self.holes)

    def add(self, dependent: Storage, base: Storage, when: PathCondition, numbers: Iterable[Deferred]) -> None:
        """Note it where ``when`` holds."""
        pending = tuple(numbers)
        steps = aliases.with_variables(self.steps, {hole: late.var for hole, late in zip(self.holes, pending)})
        aliases.add(dependent, base, steps, when, pending)


class _Chosen:
    """A number of the case that holds at the end of an iteration, computed when asked for."""

    def __init__(self, type: Type, path: PathEnd, cases: list[tuple[PathCondition, Operand | Deferred]]) -> None:
        self.var = Variable("", type)
        self._path, self._cases = path, cases

    def demand(self, session: Session) -> Variable:
        """The number, now computed."""
        if self.var.name:
            return self.var
        with session.reopen(self._path.scope):
            result: Operand = UNDEF
            for condition, value in self._cases:
                mine = value.demand(session) if hasattr(value, "demand") else value
                if result is UNDEF:
                    result = mine
                    continue
                flag = condition.operand(session)
                blocks = [Block(yields=[mine]), Block(yields=[result])]
                (result,) = session.emit("cond", [flag], types=[self.var.type], blocks=blocks)
            assert is_a(result, Variable)
        self.var = result
        return result


@functools.cache
def _hole(place: int, kind: str) -> Variable:
    """What stands for a number that an iteration computes: the same in every attempt to trace the body."""
    return Variable("", ScalarType(kind))  # type: ignore[arg-type]


class LoopAliases(LoopPart):
    """The shares found so far: each attempt to trace the body starts from those of the attempt before."""

    def __init__(self, before: LoopAliases | None = None) -> None:
        self.shares: list[_Share] = (
            [] if before is None else [_Share(s.number, s.base, s.steps, s.holes) for s in before.shares]
        )
        self.unknown: dict[tuple[Number, Storage | Number], None] = {} if before is None else dict(before.unknown)
        self._listed: dict[Number, list[Storage]] = {} if before is None else before._listed
        """What is left in a place and is in a list that grows."""
        self._cached: dict[Number, tuple[str, Location | None]] = {} if before is None else before._cached
        """What a cached function gave that is left in a place, where each run makes it anew."""
        self._inside: dict[Number, Storage] = {}
        self._alias_sets: dict[Number, int] = {}
        """In how many lists that grow it was when the iteration began."""

    def forget(self, slots: set[int]) -> None:
        """Slots whose structure changed are numbered anew."""
        self.shares = [
            s for s in self.shares
            if s.number[0] not in slots and not (is_a(s.base, tuple) and s.base[0] in slots)
        ]  # fmt: skip
        self.unknown = {
            (a, b): None
            for a, b in self.unknown
            if a[0] not in slots and not (is_a(b, tuple) and b[0] in slots)
        }
        self._listed = {number: found for number, found in self._listed.items() if number[0] not in slots}
        self._cached = {number: found for number, found in self._cached.items() if number[0] not in slots}

    def again(self) -> LoopAliases:
        """With the shares found so far."""
        return LoopAliases(self)

    def enter(self, body: Body, pairs: Pairs, stand_ins: Pairs) -> None:
        """In the first iteration the state is the memory from before the loop; in others what an iteration leaves."""
        session, self._touched = body.session, body.touched
        first: list[_Share] = []
        for number, _, inside in stand_ins:
            storage = self._inside.setdefault(number, session.info(inside).storage)
            for listed in self._listed.get(number, ()):
                alias_sets.inherit(storage, listed)
            cached_results.hand_on(storage, self._cached.get(number))
            self._alias_sets[number] = len(storage.alias_sets)
        for number, outside, _ in pairs:
            info = session.info(outside)
            first.append(self._share(number, info.storage, info.steps))
        for share in self.shares:
            share.carry(any(share is f for f in first), body.scope)
            dependent, base = self._inside.get(share.number), self._storage(share.base, self._inside)
            if dependent is not None and base is not None and share.value is not None:
                share.add(dependent, base, share.value.inside, (value.inside for value in share.numbers))
        self._refuse_unknown(self._inside, body.location)

    def leave(self, body: Body, path: Path, pairs: Pairs) -> bool:
        """Note what an iteration leaves; whether the body was traced as if that had been known."""
        session, entry, visible = body.session, body.entry, body.session.visible
        count, refused = len(self.shares), len(self.unknown)
        by_root: dict[Storage, list[tuple[Number, Root]]] = {}
        many: dict[Storage, list[Number]] = {}
        left: list[tuple[Number, Storage]] = []
        for number, out, _ in pairs:
            left.append((number, session.info(out).storage))
            found, reached = aliases.few_roots(session.info(out), entry)
            for root in found:
                by_root.setdefault(root.storage, []).append((number, root))
            for storage in reached:
                many.setdefault(storage, []).append(number)
        known = True
        for number, out, _ in pairs:
            known = self._note_cached(number, cached_results.of(session.info(out))) and known
        for storage, numbers in many.items():
            for number in numbers:
                if aliases.is_outside(storage, entry):
                    self._not_known(number, storage)
                    continue
                known = self._note_listed(number, storage) and known
                for other in (*numbers, *(one for one, _ in by_root.get(storage, ()))):
                    self._not_known(number, other)
        for storage, members in by_root.items():
            if aliases.is_outside(storage, entry):
                for number, root in members:
                    self._found(number, storage, root, visible)
                continue
            for number, _ in members:
                known = self._note_listed(number, storage) and known
            links, unknown = aliases.links(members)
            for link in links:
                self._found(link.one, link.other, link, visible)
            for pair in unknown:
                self._not_known(*pair)
        for number, another, _ in unknown_aliasing.between(left, lambda one: aliases.is_outside(one, entry)):
            if another is not self._inside.get(number):
                self._not_known(number, another)
        for share in self.shares[count:]:
            share.carry(False, path.scope)
            stays = self._inside.get(share.number) in by_root  # then the next iteration may leave it so too
            known = known and not stays and self._untouched(share.number) and self._untouched(share.base)
        return known and all(self._untouched(a) and self._untouched(b) for a, b in list(self.unknown)[refused:])

    def _note_listed(self, number: Number, storage: Storage) -> bool:
        """What an iteration leaves may be in a list that grows; whether the body was traced as if that was known."""
        inside = self._inside.get(number)
        if inside is None or not storage.alias_sets:
            return True
        if inside is storage:
            new = len(storage.alias_sets) > self._alias_sets.get(number, 0)
        else:
            new = alias_sets.inherit(inside, storage)
        if new:
            self._listed.setdefault(number, []).append(storage)
        return not new or self._untouched(number)

    def _note_cached(self, number: Number, found: tuple[str, Location | None] | None) -> bool:
        """What an iteration leaves may be what a cached function gave; whether the body was traced as if that was
        known."""
        inside = self._inside.get(number)
        if found is not None:
            self._cached.setdefault(number, found)
        return inside is None or not cached_results.hand_on(inside, found) or self._untouched(number)

    def finish(self, body: Body, op: Operator, path: Path, pairs: Pairs) -> None:
        """The loop is recorded: its results share what its state shared."""
        session = body.session
        after: dict[Number, Storage] = {}
        for number, _, result in pairs:
            storage = after.setdefault(number, session.info(result).storage)
            for listed in self._listed.get(number, ()):
                alias_sets.inherit(storage, listed)
            cached_results.hand_on(storage, self._cached.get(number))
        for share in self.shares:
            if share.value is None:
                continue
            end = PathEnd(path.scope, path.ended)
            share.value.next = any_of(condition for condition, _ in share.cases)
            share.value.finish(session, op, end)
            for position, carried in enumerate(share.numbers):
                if share.cases:
                    cases = [(condition, numbers[position]) for condition, numbers in share.cases]
                    carried.next = _Chosen(share.holes[position].type, end, cases)
                carried.finish(session, op, end)
            dependent, base = after.get(share.number), self._storage(share.base, after)
            if dependent is not None and base is not None and dependent is not base:
                share.add(dependent, base, share.value.after, (value.after for value in share.numbers))
        self._refuse_unknown(after, body.location)

    def _untouched(self, base: Storage | Number) -> bool:
        return self._storage(base, self._inside) not in self._touched

    def _share(
        self, number: Number, base: Storage | Number, steps: tuple[RecordedStep, ...], holes: tuple[Variable, ...] = ()
    ) -> _Share:
        for share in self.shares:
            if share.same(number, base, steps):
                return share
        self.shares.append(_Share(number, base, steps, holes))
        return self.shares[-1]

    def _found(
        self, number: Number, base: Storage | Number, how: Root | Link[Number], visible: Callable[[Any], bool]
    ) -> None:
        if number == base:
            return
        computed = list(dict.fromkeys(var for var in aliases.step_variables(how.steps) if not visible(var)))
        holes: dict[Variable, Variable] = {}
        for place, var in enumerate(computed):
            if not is_a(var.type, ScalarType):
                self._not_known(number, base)
                return
            holes[var] = _hole(place, var.type.kind)
        steps = aliases.with_variables(how.steps, holes)
        shares = [share for share in self.shares if share.between(number, base)]
        if len(shares) >= _CHAINS and not any(share.same(number, base, steps) for share in shares):
            self._not_known(number, base)
            return
        share = self._share(number, base, steps, tuple(holes.values()))
        lates = {late.var: late for late in how.pending}
        share.cases.append((how.when, tuple(lates.get(var, var) for var in computed)))

    def _not_known(self, number: Number, base: Storage | Number) -> None:
        if number != base:
            self.unknown[number, base] = None

    def _storage(self, base: Storage | Number, known: dict[Number, Storage]) -> Storage | None:
        return known.get(base) if is_a(base, tuple) else base

    def _refuse_unknown(self, known: dict[Number, Storage], location: Location | None) -> None:
        for number, base in self.unknown:
            a, b = known.get(number), self._storage(base, known)
            if a is not None and b is not None:
                note_unknown_alias(a, b, "an iteration makes it a view of another tensor's memory", location)


__all__ = ["LoopAliases"]
