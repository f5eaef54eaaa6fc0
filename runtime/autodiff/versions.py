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
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

from runtime import torch_internals
from runtime.autodiff.chances import Chances
from runtime.autodiff.failures import NotDifferentiable
from runtime.autodiff.tape import Segment
from runtime.ir import Operator
from runtime.tracer.memory.conditions import ALWAYS, NEVER, PathCondition, any_of, flagged
from runtime.tracer.memory.storage_table import storage_key
from runtime.tracer.recording.session import Scope, Session

if TYPE_CHECKING:
    from runtime.autodiff.kept import Keeping


_FLAGS = 2_000
"""As many flags, of when memories are one, a derivative may have: a second or two of deriving it."""

Lazy = Callable[[], PathCondition]
"""When something holds; a Variable is made for it when it is asked for."""
Overwrite = tuple[PathCondition | Lazy, ...]
"""Something was overwritten where all of these hold."""


@dataclass(eq=False)
class Memory:
    """A piece of memory as eager has it; when it was written, write by write, in the Block at hand."""

    writes: list[PathCondition] = field(default_factory=list)
    last: Operator | None = None
    """The last Operator that wrote it."""
    content: tuple[torch.Tensor, int] | None = None
    """What the last write left, and which write that was, counted."""
    stand_ins: list[torch.Tensor] = field(default_factory=list)
    number: int = field(default_factory=itertools.count().__next__)
    """Those that there were before have smaller ones."""
    parts: list[Link] = field(default_factory=list)
    """For what a branch or loop gives, and what a loop carries: the memories that it is, each where a flag says so."""


@dataclass(eq=False)
class Link:
    """A memory is another one on some paths, or in some iterations."""

    other: Memory
    scope: Scope
    """The Block in which that is so."""
    flag: Lazy
    exact: bool = False
    """A loop's flag, which says of itself when the two are one."""
    beside: bool = False
    """The other is of the same loop."""


@dataclass(eq=False)
class Shown:
    """What a value is a part of."""

    memory: Memory
    since: int
    """How many writes it had seen."""
    way: tuple[Lazy, ...] = ()
    """It is where all of these hold."""


@dataclass(eq=False)
class Watch:
    """A piece of memory from some moment on: when it was written later."""

    memory: Memory
    shown: list[Shown]
    cases: list[Overwrite] = field(default_factory=list)
    """When it was written in Blocks that are closed by now."""
    follows: list[Watch] = field(default_factory=list)
    """The same memory as later iterations, and what stands after the loop, have it."""

    def stale(self) -> list[Overwrite]:
        """When it was written since."""
        return [*self.cases, *self._now()]

    def settle(self) -> None:
        """The Block at hand is closed: its writes are cases."""
        self.cases += self._now()

    def _now(self) -> list[Overwrite]:
        found = [(any_of(one.memory.writes[one.since :]), one.way) for one in self.shown]
        return [(when, *way) for when, way in found if not when.never]

    def writer(self) -> Operator | None:
        """An Operator that wrote it."""
        seen: list[Watch] = []
        todo: list[Watch] = [self]
        while todo:
            watch = todo.pop(0)
            seen.append(watch)
            for one in watch.shown:
                if one.memory.last is not None:
                    return one.memory.last
            todo += [other for other in watch.follows if other not in seen]
        return None


@dataclass(eq=False)
class SavedValue(Watch):
    """A tensor that a node keeps for its backward."""

    node: Any = None
    value: torch.Tensor | None = None
    keeping: Keeping | None = None
    """Says when eager keeps it."""
    beside: bool = False
    """It is kept, if at all, for gradients that are not asked for here."""


@dataclass(eq=False)
class Inside:
    """What one Block wrote, of the memories that are older than it, and what is watched in it."""

    scope: Scope
    older: dict[Memory, int] = field(default_factory=dict)
    """Memories that there were before it, and how many writes they had seen."""
    written: dict[Memory, PathCondition] = field(default_factory=dict)
    watches: list[Watch] = field(default_factory=list)


class Versions:
    """The memories of one replay, and what was saved of them."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._memories: dict[int, Memory] = {}
        self._joined: dict[Memory, None] = {}
        """Those that are other ones on some paths, or in some iterations."""
        self._watches: list[Watch] = []
        self._flags: dict[Any, PathCondition] = {}
        """When memories are one, as Blocks have it, where that was asked."""
        self.counting = True
        """Whether the Program writes at all."""
        self.chances = Chances(session)
        self._unnoticed: list[Memory] = []
        """The memories that were written past autograd's eyes, write by write."""
        self._partial: dict[int, torch.Tensor] = {}
        """By identity: the stand-ins of values that not all paths give."""
        self._incomplete: list[Callable[[], None]] = []
        self._completing = False
        self._made = 0
        """How many flags tell when memories are one."""

    def complete(self, one: Callable[[], None]) -> None:
        """Do what completes a loop, which may ask for more of other loops; these wait for their turn."""
        self._incomplete.append(one)
        if self._completing:
            return
        self._completing = True
        try:
            while self._incomplete:
                self._incomplete.pop()()
        finally:
            self._completing = False

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

    def unnoticed(self) -> int:
        """How many writes went past autograd's eyes so far."""
        return len(self._unnoticed)

    def joined(
        self, fake: Any, ends: Sequence[Any], since: int,
        taken: Callable[[Sequence[PathCondition]], PathCondition] | None = None,
    ) -> None:
        """``fake`` is what all paths give: their memory, if that is one, else that of the path taken.

        ``since``: what ``unnoticed`` said before the Blocks. ``taken``: makes a flag from one for each path. A path
        without the value is one where nothing writes it.
        """
        if not isinstance(fake, torch.Tensor):
            return
        given = [end for end in ends if isinstance(end, torch.Tensor)]
        if len(given) < len(ends) or any(id(end) in self._partial for end in given):
            self._partial[id(fake)] = fake
        if not given or (taken is None and len(given) < len(ends)):
            return
        memories = [self.memory(end) for end in given]
        whole = len(given) == len(ends) or not memories[0].parts
        if whole and all(memory is memories[0] for memory in memories):
            if memories[0] in self._unnoticed[since:] and id(fake) not in self._partial:
                self.overwrote(given[0], fake)
            self.continues(fake, given[0])
        elif taken is not None:
            joined, scope = self.memory(fake), self._session.scope
            visible = list(scope.chain())
            paths = [self._inner(self.memory(end), visible) if isinstance(end, torch.Tensor) else {} for end in ends]

            def flag_of(memory: Memory) -> Lazy:
                return functools.cache(lambda: taken([path[memory]() if memory in path else NEVER for path in paths]))

            for memory in dict.fromkeys(memory for path in paths for memory in path):
                if memory is not joined:
                    self.link(joined, Link(memory, scope, flag_of(memory)))

    def require_told(self, since: int, until: int, insides: Sequence[Inside]) -> None:
        """Refuse where Blocks wrote older memory past autograd's eyes and no result shows all of what it holds now.

        ``since``, ``until``: what ``unnoticed`` said before and after the Blocks.

        Errors raised: NotDifferentiable.
        """
        told = self._unnoticed[until:]
        for memory in self._unnoticed[since:until]:
            if memory not in told and any(memory in inside.older for inside in insides):
                raise NotDifferentiable("a write that autograd does not see, on a path after which nothing shows it")

    def _inner(self, memory: Memory, visible: list[Scope]) -> dict[Memory, Lazy]:
        """What a memory is inside a Block that is closed by now; the flags are that Block's."""
        flags: dict[Memory, Lazy] = {memory: lambda: ALWAYS}
        closed = [link.scope for link in memory.parts if not any(link.scope is scope for scope in visible)]
        if closed:
            found = self.reached(memory, closed[0], visible)
            flags.update((other, functools.partial(self.same, memory, other, closed[0], visible)) for other in found)
        return flags

    def link(self, memory: Memory, link: Link) -> None:
        """A memory is another one on some paths, or in some iterations."""
        memory.parts.append(link)
        self._joined[memory] = None

    def reached(self, memory: Memory, scope: Scope | None = None, hidden: Sequence[Scope] = ()) -> list[Memory]:
        """The memories that one may be, as a Block sees it (this one); not by links that ``hidden`` Blocks have."""
        found = {memory: None}
        if not memory.parts:
            return [memory]
        todo, visible = [memory], self._visible(scope or self._session.scope, hidden)
        for one in todo:
            for link in one.parts:
                if id(link.scope) in visible and link.other not in found:
                    found[link.other] = None
                    if not link.beside:
                        todo.append(link.other)
        return list(found)

    def _links(self, memory: Memory, scope: Scope, hidden: Sequence[Scope] = ()) -> list[Link]:
        if not memory.parts:
            return []
        visible = self._visible(scope, hidden)
        return [link for link in memory.parts if id(link.scope) in visible]

    @staticmethod
    def _visible(scope: Scope, hidden: Sequence[Scope]) -> set[int]:
        return {id(one) for one in scope.chain()}.difference(map(id, hidden))

    def may_be_same(self, one: Memory, other: Memory, scope: Scope | None = None, hidden: Sequence[Scope] = ()) -> bool:
        """Whether two memories may be one."""
        if not one.parts and not other.parts:
            return one is other
        return not set(self.reached(one, scope, hidden)).isdisjoint(self.reached(other, scope, hidden))

    def same(
        self, one: Memory, other: Memory, scope: Scope, hidden: Sequence[Scope] = (), at_this_point: bool = False
    ) -> PathCondition:
        """When two memories are one: a flag of that Block. ``at_this_point``: a new one, recorded where
        the Block is recorded now, and read nowhere else.

        What the newer one may be tells: a loop has a flag for each, a branch gives one of them.
        """
        return self._same_as(one, other, scope, hidden, {} if at_this_point else None)

    def _same_as(
        self, one: Memory, other: Memory, scope: Scope, hidden: Sequence[Scope],
        flags_here: dict[Any, PathCondition] | None,
    ) -> PathCondition:  # fmt: skip
        """As ``same``; ``flags_here``: those made at this point so far.

        There are many ways from one memory to another."""
        if one is other:
            return ALWAYS
        new, old = (one, other) if one.number > other.number else (other, one)
        links = self._links(new, scope, hidden)
        for link in links:
            if link.exact and link.other is old:
                return link.flag()
        flags = self._flags if flags_here is None else flags_here
        key = (new, old, scope, tuple(hidden))
        if key not in flags:
            parts: list[PathCondition] = []
            for link in links:
                if not link.beside and self.may_be_same(link.other, old, scope, hidden):
                    part = self._same_as(link.other, old, scope, hidden, flags_here)
                    flag = NEVER if part.never else link.flag()
                    parts.append(self._both(flag, part, scope, flags_here is not None))
            found = any_of(parts)
            if found.maybe and flags_here is None:
                with self._session.reopen(scope):
                    found = self._flagged(found)
            flags[key] = found
        return flags[key]

    def _both(self, one: PathCondition, other: PathCondition, scope: Scope, at_this_point: bool) -> PathCondition:
        both = one & other
        if not both.maybe or both in (one, other):
            return both
        with contextlib.nullcontext() if at_this_point else self._session.reopen(scope):
            return self._flagged(both)

    def _flagged(self, condition: PathCondition) -> PathCondition:
        """One flag for a condition. Memories that change places on many paths and are written again and again need a
        number of flags that grows with its square and more: such a Program is left to torch's autograd.

        Errors raised: NotDifferentiable.
        """
        self._made += 1
        if self._made > _FLAGS:
            raise NotDifferentiable("memories that are one or another on too many paths")
        return flagged(condition, self._session)

    def wrote(self, before: Any, op: Operator) -> None:
        """An Operator wrote what ``before`` shows: so were the memories written that are the same."""
        if isinstance(before, torch.Tensor):
            memory = self.memory(before)
            memory.writes.append(ALWAYS)
            memory.last = op
            self.chances.written.append(self.chances.event(memory))
            scope = self._session.scope
            mine = set(self.reached(memory))
            others = [other for other in self._joined if not mine.isdisjoint(self.reached(other))]
            for other in dict.fromkeys([*self.reached(memory), *others]):
                if other is not memory:
                    when = self.same(memory, other, scope)
                    if not when.never:
                        other.writes.append(when)
                        other.last = op

    def left(self, before: Any, after: Any) -> None:
        """After the write at hand the memory holds ``after``."""
        if isinstance(before, torch.Tensor) and isinstance(after, torch.Tensor):
            memory = self.memory(before)
            memory.content = after, len(memory.writes)

    def overwrote(self, before: Any, after: Any) -> None:
        """Something wrote it past autograd's eyes: backward reads what the memory holds then, as eager's does."""
        session = self._session
        memory = self.memory(before)
        self._unnoticed.append(memory)
        self.chances.unnoticed.append(self.chances.event(memory))
        value = session.read(after)
        for stand_in in memory.stand_ins:
            storage = session.info(stand_in).storage
            if storage.value in session.scope.names and storage.value.type == value.type:
                storage.value = value

    # -- what nodes keep ------------------------------------------------------------------------------------------

    def found(self, fake: torch.Tensor) -> Memory | None:
        """The memory that a stand-in shows, if it is known."""
        return self._memories.get(storage_key(fake))

    def counts(self, operands: Iterable[Any]) -> dict[int, int]:
        """How many writes the memories of an Operator's operands saw, before it writes some; by storage."""
        return {storage_key(one): len(self.memory(one).writes) for one in operands if isinstance(one, torch.Tensor)}

    def note(
        self, segment: Segment, results: Sequence[Any], keeping: Keeping, before: Mapping[int, int] | None = None
    ) -> None:
        """Remember what the nodes of an Operator that was just replayed keep.

        ``before``: for an Operator that writes, the ``counts`` of what else it reads, before it did. Its nodes keep
        that as it was then: where it is the memory that was written, it is overwritten already.
        """
        todo = [torch_internals.node_of(value) for value in results if isinstance(value, torch.Tensor)]
        while todo:
            node = todo.pop()
            if node is None or node in segment.nodes:
                continue
            segment.nodes.add(node)
            partial = node.name().endswith("CopySlices")  # the node of the write itself is in it, and does not show
            if partial or torch_internals.overwrites_saved(node):
                segment.overwriting[node] = keeping
            parts = keeping.inside() if partial else []
            for value, memory in [*((one, self.found(one)) for one in torch_internals.saved_by(node)), *parts]:
                if memory is not None:
                    self.chances.kept.append(self.chances.event(memory))
                    shown = [Shown(memory, (before or {}).get(storage_key(value), len(memory.writes)))]
                    saved = SavedValue(memory, shown, node=node, value=value, keeping=keeping)
                    segment.saved.append(saved)
                    self._watches.append(saved)
            todo.extend(following for following, _ in node.next_functions)
        nodes = [torch_internals.node_of(value) for value in results if isinstance(value, torch.Tensor)]
        first = next((node for node in nodes if node is not None), None)
        for value, memory in keeping.beside() if first is not None and self.counting else ():
            shown = [Shown(memory, (before or {}).get(storage_key(value), len(memory.writes)))]
            saved = SavedValue(memory, shown, node=first, value=value, keeping=keeping, beside=True)
            segment.saved.append(saved)
            self._watches.append(saved)

    # -- Blocks ---------------------------------------------------------------------------------------------------

    def watch(self, memory: Memory) -> Watch:
        """A memory from here on."""
        watch = Watch(memory, [Shown(memory, len(memory.writes))])
        self._watches.append(watch)
        return watch

    def mark(self) -> int:
        """What is watched so far, for ``back_to``."""
        return len(self._watches)

    def back_to(self, mark: int) -> None:
        """Nothing is watched that was not then: the Block is replayed once more."""
        del self._watches[mark:]

    @contextlib.contextmanager
    def inside(self) -> Iterator[Inside]:
        """A Block is replayed: afterwards it is known what it wrote and watches, and the counts are as before it."""
        older = {memory: len(memory.writes) for memory in self._memories.values()}
        mark = self.mark()
        inside = Inside(self._session.scope, older)
        yield inside
        inside.watches = self._watches[mark:]
        for watch in inside.watches:
            watch.settle()
        for memory in dict.fromkeys(self._memories.values()):
            count = older.get(memory, 0)
            when = any_of(memory.writes[count:])
            del memory.writes[count:]
            if not when.never and memory in older:
                inside.written[memory] = when

    def after(self, blocks: Sequence[Inside], written: dict[Memory, PathCondition]) -> None:
        """The Operator with these Blocks is recorded, and wrote that. What they watch may be something older."""
        for memory, when in written.items():
            memory.writes.append(when)
        for inside in blocks:
            for watch in inside.watches:
                watch.shown += [
                    Shown(memory, 0, (*one.way, flag))
                    for one in watch.shown
                    if one.memory not in inside.older
                    for memory, flag in self.older(one.memory, inside)
                ]
                for one in watch.shown:
                    one.since = len(one.memory.writes)

    def older(self, memory: Memory, inside: Inside) -> list[tuple[Memory, Lazy]]:
        """The memories from outside that one of a Block may be, with the flags of that Block."""
        if memory in inside.older:
            return [(memory, lambda: ALWAYS)]
        if not memory.parts:
            return []
        hidden = list(inside.scope.parent.chain()) if inside.scope.parent is not None else []
        return [
            (other, functools.partial(self.same, memory, other, inside.scope, hidden))
            for other in self.reached(memory, inside.scope, hidden)
            if other in inside.older
        ]


__all__ = ["Overwrite", "Inside", "Link", "Memory", "SavedValue", "Versions", "Watch"]
