"""What a derivative reads after it was overwritten: eager's backward raises there, and so does a backward half.

    y = x * 2; z = y * y; y.add_(1)      z's formula needs y as it was: its memory has another version by then

A *memory* is what eager would see as one piece: a value, its views, and what ``update`` makes of it. It counts the
writes that autograd counts, each with the flags under which it happened. What PyTorch's nodes saved while a segment
was replayed is known from the nodes themselves; a value that was saved is stale where its memory was written since.
What was written through ``.data`` is not counted: backward reads the new content. Where it depends on the path which
operands need a gradient, ``kept.py`` says whether eager saved the value at all.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

from runtime import torch_internals
from runtime.autodiff.activity import any_of
from runtime.autodiff.tape import Activity, Segment
from runtime.ir import Operator, ScalarType, Variable
from runtime.tracer.session import Scope, Session
from runtime.tracer.storage_table import storage_key

if TYPE_CHECKING:
    from runtime.autodiff.kept import Keeping


@dataclass(eq=False)
class Memory:
    """A piece of memory as eager has it; when it was written, write by write, in the Block at hand."""

    writes: list[Activity] = field(default_factory=list)
    last: Operator | None = None
    """The last Operator that wrote it."""
    stand_ins: list[torch.Tensor] = field(default_factory=list)
    unnoticed: bool = False
    """Whether it was written past autograd's eyes, through ``.data``."""
    parts: list[Link] = field(default_factory=list)
    """For what a branch gives: the memories that it is, each on some paths."""
    joins: list[Link] = field(default_factory=list)
    """Results of branches that are this memory on some paths."""


@dataclass(eq=False)
class Link:
    """Two memories are one on some paths of a branch."""

    other: Memory
    scope: Scope
    """The Block that the branch stands in."""
    flag: Callable[[], Activity]
    """Whether such a path was taken; asked for when one of the two is written."""


@dataclass(eq=False)
class SavedValue:
    """A tensor that a node keeps for its backward."""

    node: Any
    memory: Memory
    since: int
    """How many writes its memory had seen."""
    value: torch.Tensor
    keeping: Keeping
    """Says when eager keeps it."""
    cases: list[Activity] = field(default_factory=list)
    """When it was overwritten in Blocks that are closed by now."""

    def stale(self) -> Activity:
        """When it was overwritten since it was saved."""
        return join([*self.cases, *self.memory.writes[self.since :]])


@dataclass(eq=False)
class Inside:
    """What one Block wrote, of the memories that are older than it, and saved."""

    written: dict[Memory, Activity] = field(default_factory=dict)
    saved: list[SavedValue] = field(default_factory=list)


def join(parts: Sequence[Activity]) -> Activity:
    """When any of these holds."""
    flags: frozenset[Variable] = frozenset()
    for part in parts:
        if part is True:
            return True
        if isinstance(part, frozenset):
            flags |= part
    return flags or False


class Versions:
    """The memories of one replay, and what was saved of them."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._memories: dict[int, Memory] = {}
        self._saved: list[SavedValue] = []

    def memory(self, fake: torch.Tensor) -> Memory:
        """The memory that a stand-in shows."""
        key = storage_key(fake)
        if key not in self._memories:
            self._same(key, fake, Memory())
        return self._memories[key]

    def _same(self, key: int, fake: torch.Tensor, memory: Memory) -> None:
        self._memories[key] = memory
        memory.stand_ins.append(fake)

    def continues(self, fake: Any, before: Any) -> None:
        """``fake`` is the memory of ``before`` with another content."""
        if isinstance(fake, torch.Tensor) and isinstance(before, torch.Tensor):
            memory = self.memory(before)
            if self._memories.get(storage_key(fake)) is not memory:
                self._same(storage_key(fake), fake, memory)

    def joined(
        self, fake: Any, ends: Sequence[Any], taken: Callable[[Sequence[Activity]], Activity] | None = None
    ) -> None:
        """``fake`` is what all paths give: their memory, if that is one, else that of the path taken.

        ``taken``: makes a flag from one for each path.
        """
        if not isinstance(fake, torch.Tensor) or not all(isinstance(end, torch.Tensor) for end in ends):
            return
        memories = [self.memory(end) for end in ends]
        if all(memory is memories[0] for memory in memories):
            if memories[0].unnoticed:
                self.overwrote(ends[0], fake)
            self.continues(fake, ends[0])
        elif taken is not None:
            joined, scope = self.memory(fake), self._session.scope
            visible = list(scope.chain())
            paths: list[dict[Memory, Callable[[], Activity]]] = []
            for memory in memories:
                inner = {link.other: link.flag for link in memory.parts if link.scope not in visible}
                paths.append({**inner, memory: lambda: True})

            def flag_of(memory: Memory) -> Callable[[], Activity]:
                return functools.cache(lambda: taken([path[memory]() if memory in path else False for path in paths]))

            for memory in dict.fromkeys(memory for path in paths for memory in path):
                if memory is not joined:
                    flag = flag_of(memory)
                    joined.parts.append(Link(memory, scope, flag))
                    memory.joins.append(Link(joined, scope, flag))

    def wrote(self, before: Any, op: Operator) -> None:
        """An Operator wrote what ``before`` shows."""
        if isinstance(before, torch.Tensor):
            memory = self.memory(before)
            memory.writes.append(True)
            memory.last = op
            self._spread(memory, op)

    def _spread(self, memory: Memory, op: Operator) -> None:
        """A memory was written: so were those that it is on the paths taken, and those that are it."""
        visible = list(self._session.scope.chain())
        seen = {memory}
        todo: list[tuple[Memory, Activity, bool]] = [(memory, True, True)]
        while todo:
            one, when, down = todo.pop()
            ways = [(link, True) for link in one.parts if down] + [(link, False) for link in one.joins]
            for link, further in ways:
                if link.other in seen or not any(link.scope is scope for scope in visible):
                    continue
                seen.add(link.other)
                both = self._both(when, link.flag())
                link.other.writes.append(both)
                link.other.last = op
                todo.append((link.other, both, further))

    def _both(self, one: Activity, other: Activity) -> Activity:
        if one is True or other is True:
            return other if one is True else one
        flags = [any_of(self._session, part) for part in (one, other)]
        (out,) = self._session.emit("scalar.and_", flags, types=[ScalarType("bool")])
        return frozenset({out})

    def overwrote(self, before: Any, after: Any) -> None:
        """Something wrote it past autograd's eyes: backward reads what the memory holds then, as eager's does."""
        session = self._session
        memory = self.memory(before)
        memory.unnoticed = True
        value = session.read(after)
        for stand_in in memory.stand_ins:
            storage = session.info(stand_in).storage
            if storage.value in session.scope.names and storage.value.type == value.type:
                storage.value = value

    # -- what nodes keep ------------------------------------------------------------------------------------------

    def found(self, fake: torch.Tensor) -> Memory | None:
        """The memory that a stand-in shows, if it is known."""
        return self._memories.get(storage_key(fake))

    def note(self, segment: Segment, results: Sequence[Any], keeping: Keeping) -> None:
        """Remember what the nodes of an Operator that was just replayed keep."""
        todo = [torch_internals.node_of(value) for value in results if isinstance(value, torch.Tensor)]
        while todo:
            node = todo.pop()
            if node is None or node in segment.nodes:
                continue
            segment.nodes.add(node)
            for value in torch_internals.saved_by(node):
                memory = self.found(value)
                if memory is not None:
                    saved = SavedValue(node, memory, len(memory.writes), value, keeping)
                    segment.saved.append(saved)
                    self._saved.append(saved)
            todo.extend(following for following, _ in node.next_functions)

    # -- Blocks ---------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def inside(self) -> Iterator[Inside]:
        """A Block is replayed: afterwards it is known what it wrote and saved, and the counts are as before it."""
        before = {memory: len(memory.writes) for memory in self._memories.values()}
        saved = len(self._saved)
        inside = Inside()
        yield inside
        inside.saved = self._saved[saved:]
        for one in inside.saved:
            one.cases.append(join(one.memory.writes[one.since :]))
        for memory in dict.fromkeys(self._memories.values()):
            count = before.get(memory, 0)
            when = join(memory.writes[count:])
            del memory.writes[count:]
            if when and memory in before:
                inside.written[memory] = when

    def after(self, blocks: Sequence[Inside], written: dict[Memory, Activity]) -> None:
        """The Operator with these Blocks is recorded, and wrote that."""
        for memory, when in written.items():
            memory.writes.append(when)
        for inside in blocks:
            for one in inside.saved:
                one.since = len(one.memory.writes)


__all__ = ["Memory", "SavedValue", "Versions", "join"]
