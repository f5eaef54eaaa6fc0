"""Which calls of one function run as plain Python, with ``full_graph=False``, and why.

A verdict holds for a kind of call (its cache key). Where one kind after the other fails, or each call would need a
Program of its own, the function is closed: nothing of it is traced any more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from dy2static.cache_key import Key
from runtime.errors import ConversionError, Dy2StaticError
from runtime.ir import Location
from runtime.ir.program import Program
from runtime.ops.registry import definition

FAILURES = 4
"""So many kinds of calls that fail close a function."""
TRACES = 8
"""So many traces close it, unless Programs have answered twice as many calls."""
KINDS = 256
"""So many verdicts are remembered."""
FEW_OPERATORS = {"interpreter": 24}
"""By backend: a part without branches and loops that has fewer Operators is quicker without a Program."""
FEW = 6
"""The same for backends that compile."""


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

    python: dict[Key, Reason] = field(default_factory=dict)
    closed: Reason | None = None
    """Why nothing is traced any more; Programs that there are stay in use."""
    failures: int = 0
    traces: int = 0
    hits: int = 0
    """Calls answered by Programs."""

    def reason(self, key: Key) -> Reason | None:
        """Why calls of this kind run as plain Python; None if they may have Programs."""
        return self.python.get(key)

    def reasons(self) -> list[Reason]:
        """All of them, as far as they are remembered."""
        return [*self.python.values(), *(() if self.closed is None else (self.closed,))]

    def refuse(self, key: Key, reason: Reason, final: bool = False) -> None:
        """Calls of this kind run as plain Python from now on; all that have no Program, if it is ``final``."""
        if len(self.python) >= KINDS:
            self.python.clear()
        self.python[key] = reason
        self.failures += 1
        if final or (self.failures >= FAILURES and self.failures > self.hits):
            self.closed = reason

    def traced(self, why: Callable[[], str], location: Location | None) -> Reason | None:
        """A Program was made; ``why`` says for what. Why it is the last one, if it is."""
        self.traces += 1
        if self.traces < TRACES or self.hits >= 2 * self.traces:
            return None
        self.closed = Reason(f"each call needs a Program of its own, as {why()}", "D2S278", location)
        return self.closed

    def clear(self) -> None:
        """Forget everything: the function is another one."""
        self.__init__()  # type: ignore[misc]  # a dataclass of defaults


def is_final(error: BaseException) -> bool:
    """Whether no other call can fare better: the source itself cannot be converted."""
    return isinstance(error, ConversionError)


def is_small(program: Program, backend: str) -> bool:
    """Whether a Program gains nothing: it has no branch and no loop, and few Operators."""
    least = FEW_OPERATORS.get(backend, FEW)
    count = 0
    for op in program.block.walk():
        if op.blocks and op.name != "update":
            return False
        count += 1
        if count >= least:
            return False
    return True


def is_silent(program: Program) -> bool:
    """Whether a run that raises has left nothing behind but random numbers: it may be done again in plain Python."""
    return not any(definition(op.name).effect and op.name not in _ENDING for op in program.block.walk())


_ENDING = ("raise", "assert", "update")


def is_random(program: Program) -> bool:
    """Whether a run draws random numbers of PyTorch's."""
    return any(definition(op.name).random for op in program.block.walk())


__all__ = ["SMALL", "Reason", "Verdicts", "is_final", "is_random", "is_silent", "is_small", "reason_of"]
