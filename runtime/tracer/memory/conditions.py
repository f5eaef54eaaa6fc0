"""Path conditions: when something is so, as far as tracing can tell.

A condition is *never*, *always*, or *in any of some cases*, each of which is that all of its flags hold. Flags are
Variables, or deferred outputs, for which nothing is recorded until the condition is staged. Where the paths of a
construct come together, the conditions that hold at their ends are *joined*; round a loop they are *carried*
(``deferred.py``).
The tracer says with them what is whose memory, and differentiation which value needs a gradient.

No case contains another one: where ``a`` is enough, ``a and b`` says nothing more. As nothing is negated, what is left
is one and the same for equal conditions (the prime implicants of a monotone function). The exception are flags that are
each other's ``opposite``: a case with both is left out. Cases multiply, so a condition of many is a flag itself in what
is made of it; such conditions are equal if they were made alike.
"""

from __future__ import annotations

import functools
import itertools
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol
from weakref import WeakValueDictionary

from runtime.ir import Operand, Variable
from runtime.kinds import is_a
from runtime.tracer.numbers.scalars import wrap

if TYPE_CHECKING:
    from runtime.tracer.recording.session import Scope, Session


class Deferred(Protocol):
    """A deferred output: a Variable that its Operator gains only when something asks for it."""

    var: Variable

    def demand(self, session: Session) -> Variable:
        """The Variable, now recorded."""


Flag = Deferred | Variable

_MOST_CASES = 64
"""Beyond these a condition is kept as a flag of another one: what is made of it grows no more than that one."""


@dataclass(frozen=True, eq=False, repr=False)
class PathCondition:
    """Never, always, or any of some cases; ``|`` and ``&`` record nothing.

    Two are equal if they have the same cases. It is no bool: ask whether it is ``always``, ``never``, or ``maybe``.
    """

    cases: tuple[tuple[Flag | PathCondition, ...], ...] = ()
    """Flags that must all hold; a case without any is always so. A condition among them is neither always nor never."""

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

    def __repr__(self) -> str:
        return " or ".join(" and ".join(map(_name, case)) or "always" for case in self.cases) or "never"

    def __eq__(self, other: object) -> bool:
        return self is other or (is_a(other, PathCondition) and self._set == other._set)

    def __hash__(self) -> int:
        return self._hash

    @functools.cached_property
    def _set(self) -> frozenset[frozenset[Flag | PathCondition]]:
        return frozenset(map(frozenset, self.cases))

    @functools.cached_property
    def _hash(self) -> int:
        return hash(self._set)

    def _as_flag(self) -> PathCondition:
        """The same as one flag; nothing is recorded for it."""
        return self if len(self.cases) < 2 else PathCondition(((_FLAGS.setdefault(self._set, self),),))

    def __or__(self, other: PathCondition) -> PathCondition:
        if self.always or other.never:
            return self
        if other.always or self.never:
            return other
        some = [self, other]
        if len(self.cases) + len(other.cases) > _MOST_CASES:
            some = [one if len(one.cases) <= _MOST_CASES // 2 else one._as_flag() for one in some]
        return PathCondition(_least(itertools.chain.from_iterable(one.cases for one in some)))

    def __and__(self, other: PathCondition) -> PathCondition:
        if self.always or other.never:
            return other
        if other.always or self.never or self == other:
            return self
        one, two = self, other
        if len(one.cases) * len(two.cases) > _MOST_CASES:
            one, two = one._as_flag(), two._as_flag()
        cases = (tuple(dict.fromkeys((*first, *second))) for first, second in itertools.product(one.cases, two.cases))
        return PathCondition(_least(case for case in cases if not _contradicts(case)))

    def replaced(self, by: Callable[[Flag], Flag | bool]) -> PathCondition:
        """The same with other flags, or answers, in place of its own."""
        return self._replaced(by, {})

    def _replaced(
        self, by: Callable[[Flag], Flag | bool], made: dict[Flag | PathCondition, PathCondition]
    ) -> PathCondition:
        result = NEVER
        for case in self.cases:
            whole = ALWAYS
            for flag in case:
                if flag not in made:
                    if is_a(flag, PathCondition):
                        made[flag] = flag._replaced(by, made)._as_flag()
                    else:
                        made[flag] = _answered(by(flag))
                whole &= made[flag]
            result |= whole
        return result

    def staged(self, session: Session) -> Any:
        """Whether it holds, computed in the current Block: a staged bool, or True or False."""
        return _any(session, self.cases, _made(session.scope))

    def operand(self, session: Session) -> Operand:
        """The same as an operand."""
        return session.operand(self.staged(session))


_Case = tuple[Flag | PathCondition, ...]

_FLAGS: WeakValueDictionary[Any, PathCondition] = WeakValueDictionary()
"""The conditions that are flags: one object for all that are equal, else comparing them would take each apart anew."""

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


def all_of(conditions: Iterable[PathCondition]) -> PathCondition:
    """All of some conditions."""
    result = ALWAYS
    for condition in conditions:
        result &= condition
    return result


def flagged(condition: PathCondition, session: Session) -> PathCondition:
    """The same as one flag, computed in the current Block."""
    flag = condition.operand(session)
    return when(flag) if is_a(flag, Variable) else known(bool(flag))


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


def _name(flag: Flag | PathCondition) -> str:
    if is_a(flag, PathCondition):
        return f"(any of {len(flag.cases)} cases)"
    return flag.name if is_a(flag, Variable) else flag.var.name


def _contradicts(case: _Case) -> bool:
    """Whether a case has a flag and its opposite."""
    opposites = [one for flag in case if (one := getattr(flag, "opposite", None)) is not None]
    return bool(opposites) and not set(case).isdisjoint(opposites)


def _least(cases: Iterable[_Case]) -> tuple[_Case, ...]:
    """Those that contain no other one, in their order."""
    once = list({frozenset(case): case for case in cases}.values())
    if len(once) < 2:
        return tuple(once)
    bits = {flag: 1 << place for place, flag in enumerate(dict.fromkeys(itertools.chain(*once)))}
    sets = [sum(bits[flag] for flag in dict.fromkeys(case)) for case in once]
    kept: list[int] = []
    for place in sorted(range(len(once)), key=lambda place: len(once[place])):
        if not any(sets[place] & sets[smaller] == sets[smaller] for smaller in kept):
            kept.append(place)
    return tuple(once[place] for place in sorted(kept))


def _any(session: Session, cases: tuple[_Case, ...], made: dict[Any, Any]) -> Any:
    """Whether any of some cases holds.

    The flag that most of them share is taken out first, and what is left is computed once if it is met again: the
    cases of ``(a or b) and (c or d)`` cost three Operators, not seven. ``made``: what was computed so far.
    """
    if not cases or () in cases:
        return bool(cases)
    key = frozenset(map(frozenset, cases))
    known = made.get(key)
    if known is not None:
        return known
    result: Any = False
    while cases:
        common = Counter(itertools.chain(*cases)).most_common(1)[0][0]
        rest = tuple(tuple(flag for flag in case if flag is not common) for case in cases if common in case)
        flag = _any(session, common.cases, made) if is_a(common, PathCondition) else _wrapped(session, common)
        result = either(session, result, both(session, flag, _any(session, rest, made)))
        cases = tuple(case for case in cases if common not in case)
    made[key] = result
    return result


def _made(scope: Scope) -> dict[Any, Any]:
    """What conditions are in a Block, as far as it was computed there. What was computed around it may stand behind it
    by now: a Block that is closed gains deferred outputs. What is recorded at its end is not there earlier."""
    return scope.conditions if scope.before is None else {}


def _answered(flag: Flag | bool) -> PathCondition:
    return known(flag) if is_a(flag, bool) else when(flag)


def _wrapped(session: Session, flag: Flag) -> Any:
    return wrap(flag if is_a(flag, Variable) else flag.demand(session))


__all__ = ["ALWAYS", "NEVER", "Deferred", "Flag", "PathCondition", "all_of", "any_of", "both", "either", "flagged",
           "known", "when"]  # fmt: skip
