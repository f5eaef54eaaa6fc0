"""Path conditions: when something is so, as far as tracing can tell.

A condition is *never*, *always*, or *in any of some cases*, each of which is that all of its flags hold. Flags are
Variables, or late values, which nothing is recorded for until the condition is staged. Where the paths of a construct
come together the conditions that hold at their ends are *joined*; round a loop they are *carried* (``deferred.py``).
The tracer says with them what is whose memory, and differentiation which value needs a gradient.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from runtime.ir import Operand, Variable
from runtime.tracer.numbers.scalars import wrap

if TYPE_CHECKING:
    from runtime.tracer.recording.session import Session


class Late(Protocol):
    """A Variable that its Operator gains only when something asks for it."""

    var: Variable

    def demand(self, session: Session) -> Variable:
        """The Variable, now recorded."""


Flag = Late | Variable


@dataclass(frozen=True, eq=False)
class PathCondition:
    """Never, always, or any of some cases; ``|`` and ``&`` record nothing.

    Two are equal if they have the same cases. It is no bool: ask whether it is ``always``, ``never``, or ``maybe``.
    """

    cases: tuple[tuple[Flag, ...], ...] = ()
    """Flags that must all hold; a case without any is always so."""

    @property
    def always(self) -> bool:
        """Whether it holds on every path."""
        return () in self.cases

    @property
    def never(self) -> bool:
        """Whether it holds on none."""
        return not self.cases

    @property
    def maybe(self) -> bool:
        """Whether it depends on a flag."""
        return not self.always and not self.never

    def __bool__(self) -> bool:
        raise TypeError("a path condition is no bool: ask whether it is always, never or maybe")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PathCondition) and self._set() == other._set()

    def __hash__(self) -> int:
        return hash(self._set())

    def _set(self) -> frozenset[frozenset[Flag]]:
        return frozenset(map(frozenset, self.cases))

    def __or__(self, other: PathCondition) -> PathCondition:
        if self.always or other.never:
            return self
        return other if other.always or self.never else PathCondition(tuple(dict.fromkeys((*self.cases, *other.cases))))

    def __and__(self, other: PathCondition) -> PathCondition:
        if self.always or other.never:
            return other
        if other.always or self.never:
            return self
        if self == other:
            return self
        pairs = itertools.product(self.cases, other.cases)
        return PathCondition(tuple(dict.fromkeys(tuple(dict.fromkeys((*one, *two))) for one, two in pairs)))

    def replaced(self, by: Callable[[Flag], Flag | bool]) -> PathCondition:
        """The same with other flags, or answers, in place of its own."""
        result = NEVER
        for case in self.cases:
            whole = ALWAYS
            for flag in map(by, case):
                whole &= known(flag) if isinstance(flag, bool) else when(flag)
            result |= whole
        return result

    def staged(self, session: Session) -> Any:
        """Whether it holds, computed in the current Block: a staged bool, or True or False."""
        result: Any = False
        for flags in self.cases:
            case: Any = True
            for var in dict.fromkeys(_variable(session, flag) for flag in flags):
                case = both(session, case, wrap(var))
            result = either(session, result, case)
            if result is True:
                break
        return result

    def operand(self, session: Session) -> Operand:
        """The same as an operand."""
        return session.operand(self.staged(session))


NEVER = PathCondition()
ALWAYS = PathCondition(((),))


def when(*flags: Flag) -> PathCondition:
    """All of some flags."""
    return PathCondition((flags,))


def any_of(conditions: Iterable[PathCondition]) -> PathCondition:
    """Any of some conditions."""
    result = NEVER
    for condition in conditions:
        result |= condition
    return result


def flagged(condition: PathCondition, session: Session) -> PathCondition:
    """The same as one flag, computed in the current Block."""
    flag = condition.operand(session)
    return when(flag) if isinstance(flag, Variable) else known(bool(flag))


def known(flag: bool) -> PathCondition:
    """Always or never."""
    return ALWAYS if flag else NEVER


def both(session: Session, a: Any, b: Any) -> Any:
    """``a and b`` of bools that may be staged."""
    if a is False or b is False:
        return False
    return b if a is True else a if b is True else session.scalar("and_", a, b)


def either(session: Session, a: Any, b: Any) -> Any:
    """``a or b`` of bools that may be staged."""
    if a is True or b is True:
        return True
    return b if a is False else a if b is False else session.scalar("or_", a, b)


def _variable(session: Session, flag: Flag) -> Variable:
    return flag if isinstance(flag, Variable) else flag.demand(session)


__all__ = ["ALWAYS", "NEVER", "Flag", "Late", "PathCondition", "any_of", "both", "either", "flagged", "known", "when"]
