"""Which calls of one function run as plain Python, with ``full_graph=False``, and why.

A verdict holds for a kind of call (its cache key). Where one kind after the other fails, or each call would need a
Program of its own, the function is closed: nothing of it is traced any more.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from dy2static.cache_key import Key
from runtime.calling.executors import executor
from runtime.errors import ConversionError, Dy2StaticError
from runtime.ir import Location
from runtime.ir.flow import Kind
from runtime.ir.ports import flow_of
from runtime.ir.program import Program
from runtime.ops import host
from runtime.ops.registry import definition

FAILURES, TRACES = 3, 8
"""So many kinds of calls of a converted function may fail, and so many Programs be made before any is used again."""
PART_FAILURES, PART_TRACES = 1, 2
"""The same for what it calls: libraries make new objects for each call, and traces take time."""
CALLS = 4
"""One more of each for so many calls that were answered by Programs which were there."""
KINDS = 256
"""So many verdicts are remembered."""
FEW_EXACT = 24
"""A part without branches and loops that has fewer Operators is quicker without a Program, run one by one ..."""
FEW = 6
"""... and run by an executor that compiles."""


@dataclass(frozen=True)
class Reason:
    """Why a part runs as plain Python. ``code`` is empty where nothing failed."""

    summary: str
    code: str = ""
    location: Location | None = None
    hint: str = ""

    def __str__(self) -> str:
        place = self.location
        where = "" if place is None else f" at {place.file}:{place.line} ({place.text.strip()})"
        code = f"[{self.code}] " if self.code else ""
        return f"{code}{self.summary}{where}"


def reason_of(error: BaseException) -> Reason:
    """What an exception says that ended a trace, or a run of a Program."""
    if isinstance(error, Dy2StaticError):
        return Reason(error.summary, error.code, error.location, error.hint)
    return Reason(f"the trace ends in {type(error).__name__}: {str(error).strip()[:200]}", "D2S279")


SMALL = Reason("nothing in it branches or loops on tensors, and it is too small to gain by a Program")


@dataclass(eq=False)
class Verdicts:
    """What is known of one function's calls."""

    of_part: bool = False
    """Whether the function is a part of a converted one."""
    python: dict[Key, Reason] = field(default_factory=dict)
    closed: Reason | None = None
    """Why nothing is traced any more, whatever comes; Programs that there are stay in use."""
    spent: Reason | None = None
    """Why nothing is traced until Programs that there are have answered more calls."""
    failures: int = 0
    waits: int = 0
    """Calls that ran as plain Python as a cache did not hold something yet."""
    traces: int = 0
    hits: int = 0
    """Calls answered by Programs."""

    def reason(self, key: Key) -> Reason | None:
        """Why calls of this kind run as plain Python; None if they may have Programs."""
        return self.python.get(key)

    def reasons(self) -> list[Reason]:
        """All of them, as far as they are remembered."""
        return [*self.python.values(), *(one for one in (self.closed, self.spent) if one is not None)]

    def may_trace(self) -> bool:
        """Whether a call that no Program fits is traced."""
        return self.closed is None and not self._failed_enough() and self.traces < self._allowed(TRACES, PART_TRACES)

    def _failed_enough(self) -> bool:
        return self.failures >= self._allowed(FAILURES, PART_FAILURES)

    def _allowed(self, first: int, first_of_part: int) -> int:
        return (first_of_part if self.of_part else first) + max(self.hits - self.traces, 0) // CALLS

    def may_wait(self) -> bool:
        """Whether a call that runs as plain Python for now says nothing of those that come."""
        self.waits += 1
        return self.waits <= self._allowed(FAILURES, PART_FAILURES)

    def refuse(self, key: Key, reason: Reason, final: bool = False) -> None:
        """Calls of this kind run as plain Python from now on; all that have no Program, if it is ``final``."""
        if len(self.python) >= KINDS:
            self.python.clear()
        self.python[key] = reason
        self.failures += 1
        if final:
            self.closed = reason

    def leave_small(self, key: Key) -> None:
        """A Program was made for calls of this kind, and they are quicker without."""
        self.python[key] = SMALL
        self.traces += 1

    def spend(self, why: str, location: Location | None) -> Reason | None:
        """Note that a call is not traced as too many were; the reason, the first time. ``why``: what differs."""
        if self.spent is not None or self.closed is not None or self._failed_enough():
            return None
        self.spent = Reason(f"calls differ too much for Programs that can be used again: {why}", "D2S278", location)
        return self.spent

    def clear(self) -> None:
        """Forget everything: the function is another one."""
        self.__init__(self.of_part)  # type: ignore[misc]  # all else as at first


def is_final(error: BaseException) -> bool:
    """Whether no other call can fare better: the source itself cannot be converted."""
    return isinstance(error, ConversionError)


def is_small(program: Program, backend: str) -> bool:
    """Whether a Program gains nothing: it has no branch and no loop, and few Operators."""
    least = FEW_EXACT if executor(backend).exact else FEW
    count = 0
    for op in program.block.walk():
        if flow_of(op).kind not in (Kind.PLAIN, Kind.INLINE):
            return False
        count += 1
        if count >= least:
            return False
    return True


def is_silent(program: Program) -> bool:
    """Whether a run that raises has left nothing behind but random numbers: it may be done again in plain Python."""
    return not any(
        definition(op.name).effect and op.name not in _ENDING and not op.name.startswith(host.FAMILY)
        for op in program.block.walk()
    )


_ENDING = ("raise", "assert", "update")

__all__ = ["SMALL", "Reason", "Verdicts", "is_final", "is_silent", "is_small", "reason_of"]
