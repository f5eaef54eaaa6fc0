"""What a loop's tensors share memory with: before it, from one iteration to the next, and after it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

from runtime.ir import Location, Operator
from runtime.tracer import aliases
from runtime.tracer.aliases import BOOL, Flags, LoopValue, Root
from runtime.tracer.storage_table import Storage, ViewStep, mark_uncertain

if TYPE_CHECKING:
    from runtime.tracer.branches import Path
    from runtime.tracer.session import Scope, Session

Number = tuple[int, int]
"""A tensor of the loop's state: its slot, and its position there."""
Pairs = Iterable[tuple[Number, torch.Tensor, torch.Tensor]]
"""Tensors that leave or enter, beside those that stand for them."""


@dataclass(eq=False)
class _Share:
    """``number`` may be ``steps`` of ``base``: memory from outside, or another tensor of the loop's state."""

    number: Number
    base: Storage | Number
    steps: tuple[ViewStep, ...]
    value: LoopValue | None = None
    cases: list[Flags] = field(default_factory=list)

    def same(self, number: Number, base: Storage | Number, steps: tuple[ViewStep, ...]) -> bool:
        """Whether it is about these."""
        mine = self.base
        one = mine is base or (isinstance(mine, tuple) and mine == base)
        return self.number == number and one and aliases.key(self.steps) == aliases.key(steps)


class LoopAliases:
    """The shares found so far: each attempt to trace the body starts from those of the attempt before."""

    def __init__(self, before: LoopAliases | None = None) -> None:
        self.shares: list[_Share] = [] if before is None else [_Share(s.number, s.base, s.steps) for s in before.shares]
        self.unknown: list[tuple[Number, Storage | Number]] = [] if before is None else list(before.unknown)
        self._inside: dict[Number, Storage] = {}
        self.touched: set[Storage] = set()
        """Memory that the body wrote, or had to look at for a write."""

    def forget(self, slots: set[int]) -> None:
        """Slots whose structure changed are numbered anew."""
        self.shares = [
            s for s in self.shares
            if s.number[0] not in slots and not (isinstance(s.base, tuple) and s.base[0] in slots)
        ]  # fmt: skip
        self.unknown = [
            (a, b) for a, b in self.unknown if a[0] not in slots and not (isinstance(b, tuple) and b[0] in slots)
        ]

    def enter(self, session: Session, body: Scope, pairs: Pairs, location: Location | None) -> None:
        """In the first iteration the state is the memory from before the loop; in others what an iteration leaves."""
        first: list[_Share] = []
        for number, outside, inside in pairs:
            self._inside.setdefault(number, session.info(inside).storage)
            info = session.info(outside)
            first.append(self._share(number, info.storage, info.steps))
        for share in self.shares:
            share.value = LoopValue(BOOL, any(share is f for f in first), body)
            dependent, base = self._inside.get(share.number), self._storage(share.base, self._inside)
            if dependent is not None and base is not None:
                aliases.add(dependent, base, share.steps, (share.value.inside,))
        self._refuse_unknown(self._inside, location)

    def leave(self, session: Session, path: Path, entry: Any, pairs: Pairs, visible: Callable[[Any], bool]) -> bool:
        """Note what an iteration leaves; whether the body was traced as if that had been known."""
        count, refused = len(self.shares), len(self.unknown)
        by_root: dict[Storage, list[tuple[Number, Root]]] = {}
        for number, out, _ in pairs:
            for root in aliases.roots(session.info(out), entry):
                by_root.setdefault(root.storage, []).append((number, root))
        for storage, members in by_root.items():
            if aliases.is_outside(storage, entry):
                for number, root in members:
                    self._found(number, storage, root.steps, root.flags, visible)
                continue
            links, unknown = aliases.links(members)
            for link in links:
                self._found(link.one, link.other, link.steps, link.flags, visible)
            for pair in unknown:
                self._not_known(*pair)
        known = True
        for share in self.shares[count:]:
            share.value = LoopValue(BOOL, False, path.scope)
            known = known and self._untouched(share.number) and self._untouched(share.base)
        return known and all(self._untouched(a) and self._untouched(b) for a, b in self.unknown[refused:])

    def finish(self, session: Session, op: Operator, path: Path, pairs: Pairs, location: Location | None) -> None:
        """The loop is recorded: its results share what its state shared."""
        after: dict[Number, Storage] = {}
        for number, _, result in pairs:
            after.setdefault(number, session.info(result).storage)
        for share in self.shares:
            if share.value is None:
                continue
            share.value.next = list(share.cases)
            share.value.finish(session, op, aliases.PathEnd(path.scope, path.ended))
            dependent, base = after.get(share.number), self._storage(share.base, after)
            if dependent is not None and base is not None and dependent is not base:
                aliases.add(dependent, base, share.steps, (share.value.after,))
        self._refuse_unknown(after, location)

    def _untouched(self, base: Storage | Number) -> bool:
        return self._storage(base, self._inside) not in self.touched

    def _share(self, number: Number, base: Storage | Number, steps: tuple[ViewStep, ...]) -> _Share:
        for share in self.shares:
            if share.same(number, base, steps):
                return share
        self.shares.append(_Share(number, base, steps))
        return self.shares[-1]

    def _found(
        self, number: Number, base: Storage | Number, steps: Any, flags: Flags, visible: Callable[[Any], bool]
    ) -> None:
        if number == base:
            return
        if not all(visible(var) for var in aliases.step_variables(steps)):
            self._not_known(number, base)
            return
        self._share(number, base, steps).cases.append(flags)

    def _not_known(self, number: Number, base: Storage | Number) -> None:
        if number != base and not any(a == number and b is base or (a, b) == (number, base) for a, b in self.unknown):
            self.unknown.append((number, base))

    def _storage(self, base: Storage | Number, known: dict[Number, Storage]) -> Storage | None:
        return known.get(base) if isinstance(base, tuple) else base

    def _refuse_unknown(self, known: dict[Number, Storage], location: Location | None) -> None:
        for number, base in self.unknown:
            a, b = known.get(number), self._storage(base, known)
            if a is not None and b is not None:
                mark_uncertain(a, b, "an iteration makes it a view of another tensor's memory", location)


__all__ = ["LoopAliases"]
