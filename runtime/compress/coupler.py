"""What rules of operators say about axes: two are the same channel, one may not change, a size is written out.

    coupler.same(%x, 1, %y, 1)      coupler.fix(%x, 2, "max_pool2d")      coupler.written(op, "groups", %x, 1)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from runtime.compress.axes import Axes, Axis, Fixed, Group
from runtime.ir import Dim, Operand, Operator, TensorType, Variable
from runtime.ops import aten

SWAPS = frozenset({"aten.t.default", "aten.transpose.int", "aten.permute.default", "grad.named", "grad.leaf"})
"""Operators that give a parameter as it is, or with its axes in another order."""


@dataclass(frozen=True)
class Written:
    """A size that stands among an Operator's arguments: by the argument's name, and its position where it is a list."""

    op: Operator
    argument: str
    position: int | None
    axis: Axis


class Coupler:
    """The groups of axes of a model, and the Operator that a rule is about."""

    def __init__(self) -> None:
        self.axes = Axes()
        self.sizes: list[Written] = []
        self.op: Operator | None = None
        self.makers: dict[Variable, Operator] = {}
        self.trained: set[Variable] = set()
        """Parameters of modules, as Programs see them."""
        self.reductions: list[tuple[Operator, Variable, int]] = []
        """Where a tensor is reduced over an axis which may shrink if the channels that go are zero."""
        self.sources: dict[Variable, list[Operand]] = {}
        """What an argument of a Block, or a result of an Operator with Blocks, may be."""
        self.maps: dict[Axis, Axis] = {}
        """Axes that are zero where another axis is."""
        self.made: dict[Operator, tuple[bool, Axis]] = {}
        """The axis of channels that a product makes, and whether it makes them from a parameter as it is."""

    @staticmethod
    def shape(operand: Operand) -> tuple[Dim, ...] | None:
        """The sizes of a tensor; None for what is none, or has an unknown number of dimensions."""
        type_ = operand.type if isinstance(operand, Variable) else None
        return type_.shape if isinstance(type_, TensorType) else None

    def bound(self, op: Operator) -> dict[str, Any]:
        """An ATen Operator's arguments by name."""
        return aten.arguments(aten.resolve(op.name), op.args, op.kwargs)

    def same(self, a: Variable, i: int, b: Variable, j: int) -> None:
        """Axis ``i`` of a tensor and axis ``j`` of another are the same channel."""
        one, other = self.shape(a), self.shape(b)
        if one is None or other is None:
            self.fix_all([a, b], "a tensor whose number of dimensions is not known")
        else:
            self.axes.join(Axis(a, i), one[i], Axis(b, j), other[j], self.op)

    def all_same(self, a: Variable, b: Variable) -> None:
        """Two tensors are the same in all axes."""
        one, other = self.shape(a), self.shape(b)
        if one is None or other is None or len(one) != len(other):
            self.fix_all([a, b], "tensors that differ in their dimensions")
            return
        for axis in range(len(one)):
            self.same(a, axis, b, axis)

    def group_of(self, operand: Operand, axis: int) -> Group | None:
        """The group of an axis of a tensor."""
        shape = self.shape(operand)
        return self.axes.group(Axis(operand, axis), shape[axis]) if shape is not None else None

    def fix(self, operand: Operand, axis: int, reason: str) -> None:
        """An axis may not change."""
        shape = self.shape(operand)
        if isinstance(operand, Variable) and shape is not None:
            self.axes.fix(Axis(operand, axis), shape[axis], Fixed(reason, self.op))

    def fix_all_of(self, axis: int, *operands: Operand, reason: str) -> None:
        """The same axis of some tensors may not change."""
        for one in operands:
            self.fix(one, axis, reason)

    def fix_all(self, operands: Iterable[Operand], reason: str) -> None:
        """No axis of these may change."""
        for one in operands:
            for axis in range(len(self.shape(one) or ())):
                self.fix(one, axis, reason)

    def fix_operator(self, op: Operator, reason: str = "") -> None:
        """No axis that an Operator reads or gives may change, that its Blocks read included."""
        inside = [var for block in op.blocks for var in block.captures()]
        self.fix_all([*op.inputs, *op.outputs, *inside], reason or op.name)

    def makes(self, weight: Variable, axis: int, out: Variable, out_axis: int) -> None:
        """The Operator makes an axis of its result, its channels, from this axis of a weight."""
        group = self.group_of(weight, axis)
        if group is not None and self.op is not None:
            group.makers.append(Axis(weight, axis))
            self.made[self.op] = (self.is_parameter(weight), Axis(out, out_axis))
        self.same(weight, axis, out, out_axis)

    def is_parameter(self, weight: Variable) -> bool:
        """Whether a weight is a parameter as it is, or one whose axes were swapped."""
        while (op := self.makers.get(weight)) is not None and op.name in SWAPS and isinstance(op.args[0], Variable):
            weight = op.args[0]
        return weight in self.trained

    def maps_to(self, x: Variable, i: int, out: Variable, j: int) -> None:
        """Axis ``j`` of a result is axis ``i`` of ``x``, and zero where that is."""
        self.same(x, i, out, j)
        self.maps[Axis(out, j)] = Axis(x, i)

    def written(self, argument: str, position: int | None, var: Variable, axis: int) -> None:
        """The Operator is told the size of an axis as a number."""
        assert self.op is not None
        self.sizes.append(Written(self.op, argument, position, Axis(var, axis)))

    def pointwise(self, op: Operator, operands: Iterable[Operand]) -> None:
        """Each element comes from the elements in its place, sizes of 1 broadcast."""
        for out in op.outputs:
            shape = self.shape(out)
            for one in operands:
                own = self.shape(one)
                if not isinstance(one, Variable) or not isinstance(one.type, TensorType):
                    continue
                if shape is None or own is None or len(own) > len(shape):
                    self.fix_all([one, out], f"{op.name}, whose result's number of dimensions is not known")
                    continue
                for axis, size in enumerate(own):
                    if size != 1 or shape[axis + len(shape) - len(own)] == 1:
                        self.same(one, axis, out, axis + len(shape) - len(own))


def tensors(values: Mapping[str, Any] | Iterable[Any]) -> list[Variable]:
    """The tensors among arguments."""
    found = values.values() if isinstance(values, Mapping) else values
    return [one for one in found if isinstance(one, Variable) and isinstance(one.type, TensorType)]


__all__ = ["Coupler", "Written", "tensors"]
