"""Which parts of a converted function are Programs, which run as plain Python, and why."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dy2static.pieces import Part
    from dy2static.verdicts import Reason


@dataclass(frozen=True)
class Explanation:
    """How one function ran so far, and below it what it called as parts of their own; ``print`` shows all of it.

    name: The function's qualified name. file, line: Where it stands. programs: How many Programs it has. calls: How
    often it was called. python: How many of these calls ran as plain Python. reasons: Why they did, or would.
    count: For how many objects it stands. parts: What it called while it ran as plain Python.
    """

    name: str
    file: str = ""
    line: int = 0
    programs: int = 0
    calls: int = 0
    python: int = 0
    reasons: tuple[Reason, ...] = ()
    count: int = 1
    parts: tuple[Explanation, ...] = field(default=())

    @property
    def runs_as(self) -> str:
        """``"Program"``, ``"Python"``, ``"both"``, or ``"nothing yet"``."""
        if self.programs and not self.python:
            return "Program"
        if self.python:
            return "both" if self.programs else "Python"
        return "nothing yet"

    def walk(self) -> Iterator[Explanation]:
        """It and all parts below."""
        yield self
        for part in self.parts:
            yield from part.walk()

    def __str__(self) -> str:
        return "\n".join(self._lines(""))

    def _lines(self, indent: str) -> Iterator[str]:
        objects = f" of {self.count} objects" if self.count > 1 else ""
        where = f"  ({self.file}:{self.line})" if self.file else ""
        yield f"{indent}{self.name}{objects}: {self._how()}{where}"
        for reason in self.reasons:
            yield f"{indent}    {reason}"
        for part in self.parts:
            yield from part._lines(indent + "  ")

    def _how(self) -> str:
        said = []
        if self.programs:
            calls = self.calls - self.python
            said.append(f"{_some(self.programs, 'Program')}, {_some(calls, 'call')}")
        if self.python:
            said.append(f"plain Python, {_some(self.python, 'call')}")
        return "; ".join(said) or "not called yet"


def _some(count: int, what: str) -> str:
    return f"1 {what}" if count == 1 else f"{count} {what}s"


def explanation(part: Part) -> Explanation:
    """What is known of a part, and of those that it called."""
    return _explained(part, set())


def _explained(part: Part, above: set[int]) -> Explanation:
    code, static = part.code, part.static
    reasons: dict[str, Reason] = {}
    programs = 0
    calls = part.calls
    if static is not None:
        programs = sum(static._fallback.verdicts.reason(one.key) is None for one in static._dispatch.cache.all())
        calls = max(calls, static._fallback.verdicts.hits + part.python)
        for reason in static._fallback.verdicts.reasons():
            reasons.setdefault(str(reason), reason)
    for known in (part.reason, part.as_it_is):
        if known is not None:
            reasons.setdefault(str(known), known)
    inner = [one for one in part.children.values() if id(one) not in above]
    parts = _merged(_explained(one, above | {id(one)}) for one in inner)
    return Explanation(
        getattr(part.function, "__qualname__", type(part.function).__name__),
        "" if code is None else code.code.co_filename, 0 if code is None else code.code.co_firstlineno,
        programs, calls, part.python, tuple(reasons.values()), 1, tuple(parts),
    )


def _merged(parts: Iterator[Explanation]) -> list[Explanation]:
    """One line for objects whose method runs in the same way: the layers of a model."""
    found: dict[Any, Explanation] = {}
    for part in parts:
        key = (part.file, part.line, part.name, part.runs_as, tuple(map(str, part.reasons)), _shape(part))
        known = found.get(key)
        found[key] = part if known is None else _sum(known, part)
    return list(found.values())


def _shape(part: Explanation) -> Any:
    return tuple((one.file, one.line, one.name, one.runs_as, one.count, _shape(one)) for one in part.parts)


def _sum(one: Explanation, two: Explanation) -> Explanation:
    return replace(
        one, programs=one.programs + two.programs, calls=one.calls + two.calls, python=one.python + two.python,
        count=one.count + two.count, parts=tuple(map(_sum, one.parts, two.parts)),
    )


__all__ = ["Explanation", "explanation"]
