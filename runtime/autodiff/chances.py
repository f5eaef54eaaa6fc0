"""Whether it can be said before a run what was overwritten: where it cannot, PyTorch's autograd counts in the run.

    l.append(h); t = t + (h * h).sum()          ``l[0]`` is one of the values that iterations kept; which, a list of
    ...                                         items tells nobody. Its write is an event, what is kept is another, and
    l[0].mul_(2)                                a write that may come later and may meet the same memory is a chance.

A write through ``.data`` is one wherever it meets what is kept: formulas read some of what they keep as it is then and
some as it was, and which of it depends on the numbers (``prod``).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from runtime.ir.flow import Kind
from runtime.tracer.recording.session import Scope, Session

if TYPE_CHECKING:
    from runtime.autodiff.versions import Memory


@dataclass(eq=False)
class Event:
    """Something that happens to a piece of memory."""

    memory: Memory
    moment: int
    loops: frozenset[Scope]
    """The loops it happens in: they make it happen again, later."""

    def before(self, other: Event) -> bool:
        """Whether it may happen before the other one does."""
        return self.moment < other.moment or not self.loops.isdisjoint(other.loops)


@dataclass(eq=False)
class Chances:
    """What happens in one replay. A loop that is replayed more than once has the events of all times."""

    session: Session
    kept: list[Event] = field(default_factory=list)
    written: list[Event] = field(default_factory=list)
    unnoticed: list[Event] = field(default_factory=list)
    """Writes that autograd does not count."""
    listed: list[Event] = field(default_factory=list)
    """What becomes an item of a list that grows."""
    taken: set[Memory] = field(default_factory=set)
    """What is an item of such a list; which, only the run knows."""
    next: dict[Memory, list[Memory]] = field(default_factory=dict)
    """For what a loop carries: what it is in the iteration after."""
    _moment: int = 0

    def event(self, memory: Memory) -> Event:
        """Something that happens now."""
        self._moment += 1
        loops = frozenset(scope for scope in self.session.scope.chain() if scope.flow.kind is Kind.LOOP)
        return Event(memory, self._moment, loops)

    def carried(self, head: Memory, end: Memory) -> None:
        """What an iteration leaves is what the next one begins with."""
        if head is not end:
            self.next.setdefault(head, []).append(end)

    def any(self) -> bool:
        """Whether a write may overwrite what backward needs, so that flags of a Program cannot tell."""
        for write in self.unnoticed:
            whole = self._whole(write.memory)
            if any(kept.before(write) and not whole.isdisjoint(self._whole(kept.memory)) for kept in self.kept):
                return True
        return bool(self.taken) and any(map(self._meets_an_item, [*self.written, *self.unnoticed]))

    def _meets_an_item(self, write: Event) -> bool:
        """Whether a write may be of an item that is kept: of one taken, or of one that was put before the write."""
        whole = self._whole(write.memory)
        if not whole.isdisjoint(self.taken):
            items = self.taken.union(*(self._whole(one.memory) for one in self.listed))
        elif any(
            (one.moment < write.moment or write.memory in self.next) and not whole.isdisjoint(self._whole(one.memory))
            for one in self.listed
        ):
            items = self.taken
        else:
            return False
        return any(kept.before(write) and not items.isdisjoint(self._whole(kept.memory)) for kept in self.kept)

    def _whole(self, memory: Memory) -> set[Memory]:
        """A memory and all that it is on some paths or in some iterations."""
        found = {memory: None}
        todo = [memory]
        for one in todo:
            for other in [*(link.other for link in one.parts), *self.next.get(one, ())]:
                if other not in found:
                    found[other] = None
                    todo.append(other)
        return set(found)


__all__ = ["Chances", "Event"]
