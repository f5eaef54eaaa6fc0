"""What a tensor may be on some path: a branch, a loop or a list gives an earlier tensor as it is.

    if c: z = leaf_a; y = f(z)       the Program has z and y as two outputs of the `cond`: z is leaf_a in eager,
    else: z = leaf_b; y = g(z)       but nothing leads from the output y to the output z

So a gradient of y by z, asked for after the branch, has a share that the Program does not show.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from runtime.ir import ArrayType, Operator, TensorType, Variable
from runtime.ir.flow import Kind
from runtime.ir.operator import leaves
from runtime.ir.ports import flow_of, passed

if TYPE_CHECKING:
    from runtime.tracer.recording.session import Session

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

    def is_leaf(self, var: Variable, outside: bool = True) -> bool | None:
        """Whether a value that requires grad is the start of a graph; None: on some paths, or nobody knows yet.

        ``outside``: leaves of the caller's are such values, too.
        """
        all_of_it = {var, *self.of(var)}
        ends = [one for one in all_of_it if isinstance(one.type, TensorType) and not [*self._before(one)]]
        answers = {self._is_start(one, outside) for one in ends}
        unknown = len(answers) > 1 or not self._carried.isdisjoint(all_of_it)
        return None if unknown else answers == {True}

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
        if flow_of(op).kind in (Kind.BRANCH, Kind.LOOP):
            yield from passed(op, op.outputs.index(var))
        elif op.name in _ITEMS or isinstance(var.type, ArrayType):
            yield from _operands(op)


def _operands(op: Operator) -> Iterator[Variable]:
    operands = leaves((op.args, tuple(op.kwargs.values())))
    return (one for one in operands if isinstance(one, Variable) and isinstance(one.type, (ArrayType, TensorType)))


__all__ = ["Sources"]
