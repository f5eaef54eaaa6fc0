"""Which memory a loop's carried value is, where that changes from one iteration to the next.

    for _ in range(n):          ``a`` is what came into the loop, in the first iteration and as long as no other
        t = t + a * a           iteration has gone down the path; then what that path made. What an iteration saved of
        if ...: a = a + 1       it is stale where a later one writes it, if it is the same memory then.
        a.mul_(2)

Whether it is a certain older memory, or the same as another carried value, is a flag that the loop carries. Whether it
will be written is one that only the backward loop knows, which comes from the other end. Both are made when something
asks for them.
"""

from __future__ import annotations

import functools
from typing import Any

import torch

from runtime.autodiff.versions import Inside, Link, Memory, Versions, Watch
from runtime.ir import Operator, ScalarType, Variable
from runtime.tracer.memory.conditions import NEVER, PathCondition, when
from runtime.tracer.recording.session import Session

Pair = tuple[int, int | Memory]
"""A position among what the loop carries, and another or an older memory."""
_BOOL = ScalarType("bool")


class Moving:
    """The carried values of one loop whose memory may be another one in the next iteration."""

    def __init__(self, session: Session, versions: Versions, inits: list[Any]) -> None:
        self._session = session
        self._versions = versions
        self._inits = inits
        self._outer = session.scope
        self._pairs: dict[Pair, None] = {}
        """Who may be whom."""
        self._memories: dict[int, Memory] = {}
        """The memories inside the body of those that move."""
        self._heads: dict[int, Watch] = {}
        self._ends: dict[int, Memory] = {}
        self._inside = Inside(session.scope)
        self._asked: dict[Pair, tuple[Variable, Variable]] = {}
        """The flags of those that were asked for, in the body and after the loop."""
        self._waiting: list[Pair] = []
        self._recorded: Operator | None = None
        self.again: dict[Variable, tuple[Watch, Watch]] = {}
        """Flags that only backward can tell, "what an iteration leaves is written later": as the next one has it, and
        as it is after the loop."""

    def enter(self, inside: Inside, carried: list[Any]) -> None:
        """The body begins, perhaps once more."""
        versions = self._versions
        self._inside = inside
        self._asked.clear()
        self._waiting.clear()
        for position, stand_in in enumerate(carried):
            if position not in self._memories:
                versions.continues(stand_in, self._inits[position])
        for position in self._memories:
            self._memories[position] = versions.memory(carried[position])
        for position, memory in self._memories.items():
            self._heads[position] = versions.watch(memory)
        self._link(self._memories, inside.scope, 0)

    def learned(self, ends: list[Any]) -> bool:
        """Whether the body, as it is now, moves more than was known."""
        versions, inside = self._versions, self._inside
        if not versions.counting:
            return False
        known = len(self._memories), len(self._pairs)
        inits: dict[int, Memory] = {}
        for position, (init, end) in enumerate(zip(self._inits, ends)):
            if isinstance(end, torch.Tensor):
                memory = versions.memory(end)
                if isinstance(init, torch.Tensor):
                    inits[position] = versions.memory(init)
                if memory is not inits.get(position):
                    self._ends[position] = memory
                    self._memories.setdefault(position, memory)
        for position, memory in self._memories.items():
            versions.chances.carried(memory, self._ends[position])
        before = {position: set(versions.reached(memory, self._outer)) for position, memory in inits.items()}
        after = {position: set(versions.reached(memory)) for position, memory in self._ends.items()}
        for position in self._memories:
            for memory in inside.older:
                if memory in before.get(position, ()) or memory in after[position]:
                    self._pairs[position, memory] = None
            for other in self._memories:
                if position < other and not (
                    before.get(position, set()).isdisjoint(before.get(other, ()))
                    and after[position].isdisjoint(after[other])
                ):
                    self._pairs[position, other] = None
        return known != (len(self._memories), len(self._pairs))

    def leave(self, recorded: Operator, results: list[Any]) -> None:
        """The loop is recorded: what its results are, and what later writes mean for what iterations have saved."""
        versions, inside = self._versions, self._inside
        self._recorded = recorded
        versions.complete(self._complete)
        outs = {position: versions.memory(results[position]) for position in self._memories}
        self._link(outs, self._outer, 1)
        for position, end in self._ends.items():
            after = versions.watch(outs[position])
            again = self._session.new_variable(_BOOL)
            self.again[again] = self._heads[position], after
            for watch in inside.watches:
                for one in watch.shown:
                    if versions.may_be_same(one.memory, end, inside.scope):
                        same = functools.partial(versions.same, one.memory, end, inside.scope)
                        watch.cases.append((when(again), *one.way, same))
                        watch.follows += [self._heads[position], after]

    def _link(self, memories: dict[int, Memory], scope: Any, side: int) -> None:
        for position, other in self._pairs:
            flag = functools.partial(self._flag, (position, other), side)
            if isinstance(other, Memory):
                self._versions.link(memories[position], Link(other, scope, flag, exact=True))
            else:
                self._versions.link(memories[position], Link(memories[other], scope, flag, True, True))
                self._versions.link(memories[other], Link(memories[position], scope, flag, True, True))

    def _flag(self, pair: Pair, side: int) -> PathCondition:
        if pair not in self._asked:
            inner = self._session.new_variable(_BOOL, "", self._inside.scope)
            self._asked[pair] = inner, self._session.new_variable(_BOOL, "", self._outer)
            self._waiting.append(pair)
            if self._recorded is not None:
                self._versions.complete(self._complete)
        return when(self._asked[pair][side])

    def _complete(self) -> None:
        """Flags that were asked for go through the loop."""
        session, versions, recorded = self._session, self._versions, self._recorded
        assert recorded is not None
        test, body = recorded.blocks
        while self._waiting:
            position, other = pair = self._waiting.pop()
            inner, out = self._asked[pair]
            with session.reopen(self._outer, before=recorded):
                before = self._first(position, other).operand(session)
            with session.reopen(self._inside.scope):
                end = self._ends[other] if isinstance(other, int) else other
                after = versions.same(self._ends[position], end, self._inside.scope).operand(session)
            test.args.append(session.new_variable(_BOOL))
            body.args.append(inner)
            body.yields.append(after)
            recorded.args = (*recorded.args, before)
            recorded.outputs = (*recorded.outputs, out)

    def _first(self, position: int, other: int | Memory) -> PathCondition:
        """Whether it is so before the loop."""
        mine = self._inits[position]
        others = self._inits[other] if isinstance(other, int) else other
        if not isinstance(mine, torch.Tensor) or not isinstance(others, (torch.Tensor, Memory)):
            return NEVER
        memory = others if isinstance(others, Memory) else self._versions.memory(others)
        return self._versions.same(self._versions.memory(mine), memory, self._outer, at_this_point=True)


__all__ = ["Moving"]
