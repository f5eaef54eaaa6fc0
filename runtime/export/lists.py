"""What lists hold, told from what is put into them: what is exported has to know how many dimensions an item has.

    %xs : list<f32[*]> = array.append(%ys, %x : f32[s0, 3])      ->      %xs, %ys : list<f32[?0, 3]>
"""

from __future__ import annotations

from collections.abc import Iterable

from runtime.ir import ArrayType, Operand, Operator, Program, TensorType, Variable
from runtime.ir.ports import flow_of
from runtime.ir.walk import variables

_OPEN = "?"
"""A size that items may differ in."""

_ALIKE = {"append": (0,), "set": (0,), "store": (0,), "pop": (0,), "extend": (0, 1), "slice": (0,), "concat": (0, 1)}
"""List operators whose result is like some of their arguments."""
_PUT = {"append": 1, "set": 2, "store": 2, "fill": 1}
"""List operators that put an argument into a list."""


class _Groups:
    """Lists that hold the same kind of items."""

    def __init__(self) -> None:
        self.parent: dict[Variable, Variable] = {}

    def find(self, var: Variable) -> Variable:
        while (above := self.parent.get(var, var)) is not var:
            var = above
        return var

    def join(self, *operands: Operand) -> None:
        lists = [one for one in operands if isinstance(one, Variable) and isinstance(one.type, ArrayType)]
        for one in lists[1:]:
            a, b = self.find(lists[0]), self.find(one)
            if a is not b:
                self.parent[b] = a


def refine(program: Program) -> None:
    """Give lists of tensors of unknown rank the type of their items, in place."""
    groups = _Groups()
    put: list[tuple[Variable, Operand]] = []
    taken: list[tuple[Variable, Variable]] = []
    for op in program.block.walk():
        _note(op, groups, put, taken)
    for _ in range(8):  # an item that is put in may be one that was taken out of another list
        found: dict[Variable, list[TensorType]] = {}
        for array, item in put:
            if isinstance(item, Variable) and isinstance(item.type, TensorType) and item.type.shape is not None:
                found.setdefault(groups.find(array), []).append(item.type)
        changed = False
        for var in variables(program):
            types = found.get(groups.find(var)) if isinstance(var.type, ArrayType) else None
            if types and isinstance(var.type, ArrayType) and _unknown(var.type):
                common = _common(types)
                if common is not None:
                    var.type, changed = ArrayType(common), True
        for array, item in taken:
            like = array.type.element if isinstance(array.type, ArrayType) else None
            unknown = isinstance(item.type, TensorType) and item.type.shape is None
            if unknown and isinstance(like, TensorType) and like.shape is not None:
                item.type, changed = like, True
        if not changed:
            return


def _unknown(type_: ArrayType) -> bool:
    return isinstance(type_.element, TensorType) and type_.element.shape is None


def _note(op: Operator, groups: _Groups, put: list[tuple[Variable, Operand]], taken: list[tuple[Variable, Variable]],
          ) -> None:  # fmt: skip
    short = op.name.removeprefix("array.")
    if op.name.startswith("array.") and op.outputs:
        groups.join(op.outputs[0], *(op.args[place] for place in _ALIKE.get(short, ())))
        if short in _PUT:
            put.append((op.outputs[0], op.args[_PUT[short]]))
        elif short == "new" and isinstance(op.args[0], (list, tuple)):
            put += [(op.outputs[0], one) for one in op.args[0]]
        elif short in ("get", "load") and isinstance(op.args[0], Variable):
            taken.append((op.args[0], op.outputs[0]))
        elif short == "pop" and isinstance(op.args[0], Variable):
            taken.append((op.args[0], op.outputs[1]))
    for port in flow_of(op).ports(op):
        ends: list[Operand] = [] if port.arg is None else [op.args[port.arg]]
        ends += [block.args[place] for block, place in zip(op.blocks, port.inner) if place is not None]
        yields: list[Operand] = [block.yields[place] for block, place in zip(op.blocks, port.yields)
                                 if place is not None]  # fmt: skip
        out = None if port.output is None else op.outputs[port.output]
        if port.whole:
            groups.join(*ends, *yields, out)
        elif out is not None and isinstance(out.type, ArrayType):
            put += [(out, one) for one in yields]


def _common(types: Iterable[TensorType]) -> TensorType | None:
    first, *rest = types
    assert first.shape is not None
    dims = list(first.shape)
    for one in rest:
        if one.dtype != first.dtype or one.shape is None or len(one.shape) != len(dims):
            return None
        dims = [a if a == b and isinstance(a, int) else _OPEN for a, b in zip(dims, one.shape)]
    return TensorType(first.dtype, tuple(dim if isinstance(dim, int) else _OPEN for dim in dims))


__all__ = ["refine"]
