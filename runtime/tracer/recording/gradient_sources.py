"""What a tensor may be on some path: a branch, a loop or a list gives an earlier tensor as it is.

    if c: z = leaf_a; y = f(z)       the Program has z and y as two outputs of the `cond`: z is leaf_a in eager,
    else: z = leaf_b; y = g(z)       but nothing leads from the output y to the output z

So a gradient of y by z, asked for after the branch, has a share that the Program does not show. Whether it may have one
is asked path by path: where z is leaf_a, y is f(z).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

from runtime.ir import ArrayType, Operand, Operator, TensorType, Variable
from runtime.ir.flow import Kind
from runtime.ir.operator import leaves
from runtime.ir.ports import flow_of, may_pass, passed
from runtime.kinds import is_a

if TYPE_CHECKING:
    from runtime.tracer.recording.session import Session

Taken = dict[Operator | Variable, int]
"""Which Block of branches ran, also of those that go by some bool or number, and whether loops had an iteration."""
NO_ITERATION, LAST_ITERATION = 0, 1
_ITEMS = frozenset(f"array.{name}" for name in ("get", "load", "pop", "lookup"))
"""Operators that give an item of a list as it is."""


class Sources:
    """Who made each value, in all of the Program so far."""

    def __init__(self, session: Session) -> None:
        blocks = [session.program.block, *(scope.block for scope in session.scope.chain())]
        self._made = {out: op for block in blocks for op in block.walk() for out in op.outputs}
        self._inputs = session.inputs
        self._carried = {var for scope in session.scope.chain() for var in scope.begins}
        """What iterations hand on in the loops that are being traced."""

    def of(self, var: Variable) -> set[Variable]:
        """Other values that a value may be, on some path."""
        found: set[Variable] = set()
        todo = [var]
        while todo:
            for one in self._before(todo.pop()):
                if one not in found:
                    found.add(one)
                    todo.append(one)
        return found - {var}

    def ways(self, var: Variable, taken: Taken) -> Iterator[tuple[Variable, Taken]]:
        """What a value is, as it was made, for each way through the branches and loops that gave it."""
        op = self._made.get(var)
        kind = None if op is None else flow_of(op).kind
        if op is None or (kind not in (Kind.BRANCH, Kind.LOOP) and not [*self._before(var)]):
            yield var, taken
            return
        if kind is Kind.BRANCH:
            for number, one in enumerate(_of_paths(op, op.outputs.index(var))):
                if is_a(one, Variable) and block_taken(op, taken) in (None, number):
                    yield from self.ways(one, self._take(op, number, taken))
            return
        if kind is Kind.LOOP:
            yield from self._of_loop(op, var, taken)
            return
        yield from ((one, taken) for one in self.of(var))

    def _take(self, op: Operator, number: int, taken: Taken) -> Taken:
        """``taken``, and a Block of a branch: other branches may go by the same value, or by one that it gives."""
        taken = {**taken, op: number}
        for place, output in enumerate(op.outputs):
            value = _of_paths(op, place)[number]
            if type(value) in (bool, int):
                taken[output] = _block_of(value)
        (selector, *_) = op.args
        if not is_a(selector, Variable):
            return taken
        taken[selector] = number
        maker = self._made.get(selector)
        if maker is None or maker in taken or flow_of(maker).kind is not Kind.BRANCH:
            return taken
        given = _of_paths(maker, maker.outputs.index(selector))
        able = [path for path, value in enumerate(given)
                if type(value) not in (bool, int) or _block_of(value) == number]  # fmt: skip
        return self._take(maker, able[0], taken) if len(able) == 1 else taken

    def _of_loop(self, op: Operator, var: Variable, taken: Taken) -> Iterator[tuple[Variable, Taken]]:
        """What was there before a loop, or what its last iteration made; all that it may be, where that is not sure."""
        inside = {out for block in op.blocks for inner in block.walk() for out in inner.outputs}
        for one in passed(op, op.outputs.index(var)):
            if one not in inside:
                yield from self.ways(one, {**taken, op: NO_ITERATION})
        for port in flow_of(op).ports(op):
            for block, position in zip(op.blocks, port.yields):
                value = None if port.output != op.outputs.index(var) or position is None else block.yields[position]
                for one, others in self.ways(value, taken) if is_a(value, Variable) else ():
                    if one in inside:
                        yield one, {**others, op: LAST_ITERATION}
                    else:
                        yield from ((earlier, taken) for earlier in passed(op, op.outputs.index(var)))

    def is_leaf(self, var: Variable, outside: bool = True) -> bool | None:
        """Whether a value that requires grad is the start of a graph; None: on some paths, or nobody knows yet.

        ``outside``: leaves of the caller's are such values, too.
        """
        all_of_it = {var, *self.of(var)}
        answers = {self._is_start(one, outside) for one in self._ends(all_of_it)}
        unknown = len(answers) > 1 or not self._carried.isdisjoint(all_of_it)
        return None if unknown else answers == {True}

    def may_be_made_leaf(self, var: Variable) -> bool:
        """Whether a value is, on some path, the start of a graph that ``requires_grad_()`` made."""
        return any(self._is_start(one, False) for one in self._ends({var, *self.of(var)}))

    def _ends(self, values: set[Variable]) -> list[Variable]:
        """Those of some values that no Operator has from another one as it is."""
        return [one for one in values if is_a(one.type, TensorType) and not [*self._before(one)]]

    def _is_start(self, var: Variable, outside: bool) -> bool:
        op = self._made.get(var)
        real = self._inputs.real(var) if op is None and outside else None
        if real is not None:
            self._inputs.leaves[var] = real.is_leaf
        return real.is_leaf if real is not None else op is not None and op.name == "grad.leaf"

    def _before(self, var: Variable) -> Iterator[Variable]:
        """What one Operator has a value from, as it is."""
        op = self._made.get(var)
        if op is None:
            return
        if may_pass(op):
            yield from passed(op, op.outputs.index(var))
        elif op.name in _ITEMS or is_a(var.type, ArrayType):
            yield from _operands(op)


def block_taken(op: Operator, taken: Taken) -> int | None:
    """Which Block of a branch ran, if that is known."""
    number = taken.get(op)
    (selector, *_) = op.args
    return taken.get(selector) if number is None and is_a(selector, Variable) else number


def _block_of(value: Operand) -> int:
    """Which Block a ``cond`` runs for a bool, or a ``switch`` for a number."""
    return int(not value) if type(value) is bool else cast(int, value)


def _of_paths(op: Operator, place: int) -> list[Operand]:
    """What each Block of a branch gives for an output; None where that is no value of the Program."""
    given: list[Operand] = [None] * len(op.blocks)
    for port in flow_of(op).ports(op):
        if port.output == place:
            for number, (block, position) in enumerate(zip(op.blocks, port.yields)):
                given[number] = None if position is None else block.yields[position]
    return given


def _operands(op: Operator) -> Iterator[Variable]:
    operands = leaves((op.args, tuple(op.kwargs.values())))
    return (one for one in operands if is_a(one, Variable) and is_a(one.type, (ArrayType, TensorType)))


__all__ = ["LAST_ITERATION", "NO_ITERATION", "Sources", "Taken", "block_taken"]
