"""Deferred outputs: values that an Operator gains only when something asks for them, such as a flag for the path taken.

Nothing is recorded for one until then; afterwards it is one more output of a ``cond``, ``switch`` or ``while_loop``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from runtime.ir import UNDEF, Operand, Operator, ScalarType, Type, Variable
from runtime.kinds import is_a
from runtime.tracer.memory.conditions import ALWAYS, NEVER, Deferred, PathCondition, when

if TYPE_CHECKING:
    from runtime.tracer.memory.storage_table import TensorInfo
    from runtime.tracer.recording.session import Scope, Session


BOOL = ScalarType("bool")


Value = Operand | Deferred | PathCondition | Callable[[], Operand]
"""What a path yields: there already, deferred itself, whether a condition holds, or computed at the path's end."""


class PathEnd(NamedTuple):
    """Where a path's Block ends; a Path itself would keep the objects alive that it made."""

    scope: Scope
    ended: bool


@dataclass(eq=False)
class Needed:
    """Whether a tensor needs a gradient when the Program runs, or that it does not, recorded when asked for."""

    source: Variable
    negated: bool = False
    var: Variable = field(init=False)

    def __post_init__(self) -> None:
        self.var = Variable("", BOOL)

    def __eq__(self, other: object) -> bool:
        return is_a(other, Needed) and (self.source, self.negated) == (other.source, other.negated)

    def __hash__(self) -> int:
        return hash((self.source, self.negated))

    @property
    def opposite(self) -> Needed:
        """The flag that holds where this one does not."""
        return Needed(self.source, not self.negated)

    def demand(self, session: Session) -> Variable:
        """The Variable, recorded where it is asked for: what was recorded elsewhere may come later."""
        session.outside.asks_gradients = True
        if not (self.var.name and self.var in session.scope.names):
            (self.var,) = session.emit("grad.needed", [session.require_visible(self.source)])
            if self.negated:
                (self.var,) = session.emit("scalar.not_", [self.var])
        return self.var


def needed(info: TensorInfo) -> PathCondition:
    """When a tensor whose ``requires_grad`` is true needs a gradient."""
    return when(Needed(info.storage.value)) if info.grad_in_some_runs else ALWAYS


def unneeded(infos: Iterable[TensorInfo]) -> PathCondition:
    """When none of some tensors needs a gradient."""
    found = ALWAYS
    for info in infos:
        if info.requires_grad:
            found &= when(Needed(info.storage.value, negated=True)) if info.grad_in_some_runs else NEVER
    return found


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


def joined(
    session: Session, op: Operator, scope: Scope, paths: Sequence[tuple[PathEnd, PathCondition]]
) -> PathCondition:
    """What holds after a ``cond`` or ``switch`` if ``paths`` says when it holds at the ends of its paths."""
    alive = [condition for end, condition in paths if not end.ended]
    if all(condition.always for condition in alive):
        return ALWAYS
    if all(condition.never for condition in alive):
        return NEVER
    return when(JoinOutput(op, scope, BOOL, paths))


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


class CarriedCondition:
    """When something holds in a ``while_loop``, carried only if asked: ``inside`` its body, and ``after`` it.

    It begins as ``first``, and an iteration leaves ``next``, which is set before the loop is recorded.
    """

    def __init__(self, first: Operand, body: Scope) -> None:
        self._value = LoopValue(BOOL, first, body)
        self.inside, self.after = when(self._value.inside), when(self._value.after)
        self.next: PathCondition = NEVER

    def finish(self, session: Session, op: Operator, path: PathEnd) -> None:
        """The loop is recorded."""
        self._value.next = self.next
        self._value.finish(session, op, path)


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
    if is_a(value, PathCondition):
        with session.reopen(path.scope):
            return value.operand(session)
    if callable(value):
        with session.reopen(path.scope):
            return value()
    return value.demand(session) if hasattr(value, "demand") else value
