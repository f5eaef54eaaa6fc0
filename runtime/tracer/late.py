"""Values that an Operator gains only when something asks for them: flags for which path, or iteration, was taken.

Nothing is recorded for one until then; afterwards it is one more output of a ``cond``, ``switch`` or ``while_loop``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from runtime.ir import UNDEF, Operand, Operator, ScalarType, Type, Variable

if TYPE_CHECKING:
    from runtime.tracer.session import Scope, Session


BOOL = ScalarType("bool")


class Late(Protocol):
    """A Variable that its Operator gains only when something asks for it."""

    var: Variable

    def demand(self, session: Session) -> Variable:
        """The Variable, now recorded."""


Flags = tuple[Late, ...]
"""Staged bools that must all hold; none: always."""

Value = Operand | Late | list[Flags] | Callable[[], Operand]
"""What a path yields: there already, late itself, cases of flags, or computed at the path's end."""


def any_of(session: Session, cases: Iterable[Flags]) -> Operand:
    """The operand for whether all flags of some case hold, computed in the current Block."""
    return session.operand(staged_flag(session, cases))


def staged_flag(session: Session, cases: Iterable[Flags]) -> Any:
    """Whether all flags of some case hold: a staged bool, or True or False."""
    from runtime.tracer.scalars import wrap

    result: Any = False
    for flags in cases:
        case: Any = True
        for var in dict.fromkeys(flag.demand(session) for flag in flags):
            case = wrap(var) if case is True else session.scalar("and_", case, wrap(var))
        if case is True:
            return True
        result = case if result is False else session.scalar("or_", result, case)
    return result


class PathEnd(NamedTuple):
    """Where a path's Block ends; a Path itself would keep the objects alive that it made."""

    scope: Scope
    ended: bool


@dataclass(eq=False)
class Given:
    """A Variable that is there, as a late value."""

    var: Variable

    def demand(self, session: Session) -> Variable:
        """The Variable."""
        return self.var


@dataclass(eq=False)
class Needed:
    """Whether a tensor needs a gradient when the Program runs, or that it does not, as a late value."""

    source: Variable
    negated: bool = False
    var: Variable = field(init=False)

    def __post_init__(self) -> None:
        self.var = Variable("", BOOL)

    def demand(self, session: Session) -> Variable:
        """The Variable, recorded where it is asked for: what was recorded elsewhere may come later."""
        if not (self.var.name and self.var in session.scope.names):
            (self.var,) = session.emit("grad.needed", [session.require_visible(self.source)])
            if self.negated:
                (self.var,) = session.emit("scalar.not_", [self.var])
        return self.var


class Cases:
    """Whether all flags of some case hold, as a late value, recorded where it is asked for as Needed is."""

    def __init__(self, cases: list[Flags]) -> None:
        self.var = Variable("", BOOL)
        self._cases = cases

    def demand(self, session: Session) -> Variable:
        """The Variable, now recorded."""
        if not (self.var.name and self.var in session.scope.names):
            made = any_of(session, self._cases)
            assert isinstance(made, Variable)
            self.var = made
        return self.var


class JoinOutput:
    """An output of a ``cond`` or ``switch``, with what each path yields for it."""

    def __init__(self, op: Operator, scope: Scope, type: Type, paths: Sequence[tuple[PathEnd, Value]]) -> None:
        self.var = Variable("", type)
        self._op, self._paths = op, paths
        scope.names.add(self.var)

    def demand(self, session: Session) -> Variable:
        """The Variable, yielded by every path from now on."""
        if not self.var.name:
            self.var.name = session.new_name()
            yields = [path.scope.block.yields for path, _ in self._paths]
            for mine in yields:
                mine.append(UNDEF)  # what it becomes may ask for others, which come after it
            places = [len(mine) - 1 for mine in yields]
            self._op.outputs = (*self._op.outputs, self.var)
            for mine, place, (path, value) in zip(yields, places, self._paths):
                mine[place] = _at_end(session, path, value)
        return self.var


class LoopValue:
    """Something a ``while_loop`` carries only if asked: ``inside`` its body, and ``after`` it, as Variables."""

    def __init__(self, type: Type, first: Operand, body: Scope) -> None:
        self.inside, self.after = _End(self, type), _End(self, type)
        self.next: Value = UNDEF
        self._type, self._first, self._body = type, first, body
        self._loop: tuple[Operator, PathEnd] | None = None
        self._attached = False
        body.names.add(self.inside.var)

    def start(self, first: Operand) -> None:
        """What it is before the loop, where that is said when the loop is recorded."""
        self._first = first

    def finish(self, session: Session, op: Operator, path: PathEnd) -> None:
        """The loop is recorded."""
        self._loop = op, path
        session.scope.names.add(self.after.var)
        if self.inside.var.name:
            self._attach(session)

    def demand(self, session: Session) -> None:
        """Let the loop carry it."""
        for end in (self.inside, self.after):
            end.var.name = end.var.name or session.new_name()
        if self._loop is not None:
            self._attach(session)

    def _attach(self, session: Session) -> None:
        if self._attached or self._loop is None:
            return
        self._attached = True
        op, path = self._loop
        test, body = op.blocks
        test.args.append(session.new_variable(self._type, "", self._body))
        body.args.append(self.inside.var)
        op.args = (*op.args, self._first)
        op.outputs = (*op.outputs, self.after.var)
        position = len(body.yields)
        body.yields.append(UNDEF)  # what it becomes may ask for others, which come after it
        body.yields[position] = _at_end(session, path, self.next)


class _End:
    def __init__(self, value: LoopValue, type: Type) -> None:
        self.var = Variable("", type)
        self._value = value

    def demand(self, session: Session) -> Variable:
        self._value.demand(session)
        return self.var


def _at_end(session: Session, path: PathEnd, value: Value) -> Operand:
    """The operand that a path yields for a value."""
    if path.ended:
        return UNDEF
    if isinstance(value, list):
        with session.reopen(path.scope):
            return any_of(session, value)
    if callable(value):
        with session.reopen(path.scope):
            return value()
    return value.demand(session) if hasattr(value, "demand") else value
