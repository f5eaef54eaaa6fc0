"""The channel analysis: through all Programs of a model, which axes are the same channel, and which groups may shrink.

    artefact > couple_all > Coupler, its groups > prunable: not fixed, and made by a weight > Choice: what stays

Through Blocks values go as the operator's ports say (``runtime.ir.flow``), so a branch makes what its paths yield one
group with its result, and a loop what it carries. All Programs of all methods share the tensors, and so the groups.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from runtime.compress.artefacts import all_variants, places_of, tensor_at
from runtime.compress.axes import Axis, Fixed, Group
from runtime.compress.coupler import Coupler
from runtime.compress.couplings import couple
from runtime.compress.vanishing import settle
from runtime.ir import UNDEF, Block, Operand, Operator, TensorType, Variable
from runtime.ir.flow import Kind, Port
from runtime.ir.ports import flow_of
from runtime.ir.tree import tree_leaves
from runtime.storage.artefact import Artefact, Variant

_SEEN = ("grad.named", "grad.leaf")
_ASKS_NOTHING = ("grad.needed",)
_OF_NO_SIZES = frozenset({"requires_grad", "is a leaf", "is_leaf", "is a Parameter", "grad is None", "has hooks"})
"""What a function may ask of a parameter that has the same answer for a smaller one."""


@dataclass(frozen=True, eq=False)
class Choice:
    """A group of channels, and the numbers of those that stay."""

    group: Group
    kept: torch.Tensor


def couple_all(artefact: Artefact) -> Coupler:
    """The groups of all axes of a model."""
    c = Coupler()
    count = len(artefact.tensors) + len(artefact.constants)
    memory = Counter(tensor_at(artefact, place).untyped_storage().data_ptr() for place in range(count)
                     if tensor_at(artefact, place).layout is torch.strided)  # fmt: skip
    for variant in all_variants(artefact):
        places = places_of(artefact, variant)
        for var, place in places.items():
            for axis, size in enumerate(c.shape(var) or ()):
                c.axes.join(Axis(var, axis), size, Axis(place, axis), size, None)
            tensor = tensor_at(artefact, place)
            if tensor.layout is not torch.strided:
                c.fix_all([var], "it is not dense")
            elif memory[tensor.untyped_storage().data_ptr()] > 1:
                c.fix_all([var], "it shares its memory with another tensor")
        _Walk(c).program(variant)
    settle(c)
    return c


class _Walk:
    """A Program, Operator after Operator."""

    def __init__(self, c: Coupler) -> None:
        self.c = c

    def program(self, variant: Variant) -> None:
        c, program = self.c, variant.program
        c.op = None
        c.fix_all([one.var for one in program.inputs], f"an input of {program.name}()")
        asked = {one.position for one in variant.answers if one.question not in _OF_NO_SIZES}
        asked -= set(range(len(program.inputs)))
        for position in asked:
            param = program.params[position - len(program.inputs)].var
            c.fix_all([param], "the function asks how it lies in memory")
        c.trained |= {one.var for one in program.params if one.kind == "parameter"}
        c.makers.update({out: op for op in program.block.walk() for out in op.outputs})
        self.block(program.block)
        c.op = None
        c.fix_all([view.source for view in variant.views.values()], f"a result of {program.name}() is a view of it")
        trees = [program.output, *(store.tree for store in variant.stores)]
        given = {leaf.index for tree in trees for leaf in tree_leaves(tree)} | set(variant.views)
        written = {write.index: write.target for write in program.writes}
        for place, value in enumerate(program.block.yields):
            if place in given or place not in written:
                c.fix_all([value], f"a result of {program.name}()")
            if place in written:
                self.passes([written[place], value])

    def block(self, block: Block) -> None:
        for op in block.ops:
            self.operator(op)

    def operator(self, op: Operator) -> None:
        c = self.c
        c.op = op
        if op.blocks:
            for block in op.blocks:
                self.block(block)
            c.op = op
            if flow_of(op).kind is Kind.FUNCTION:
                c.fix_operator(op)
                c.fix_all([one for block in op.blocks for one in (*block.args, *block.yields)], op.name)
            else:
                self.ports(op)
        elif op.name in _SEEN:
            c.all_same(op.args[0], op.outputs[0])
        elif op.name.startswith("aten."):
            couple(c, op)
        elif op.name not in _ASKS_NOTHING:
            c.fix_operator(op)

    def ports(self, op: Operator) -> None:
        """What goes through an Operator with Blocks; what goes in or comes out in no way that is known is fixed."""
        c, known = self.c, set()
        for port in flow_of(op).ports(op):
            outside = [] if port.arg is None else [op.args[port.arg]]
            outside += [] if port.output is None else [op.outputs[port.output]]
            inside = list(_inside(op, port))
            known |= {id(one) for one in (*outside, *inside)}
            self.note_sources(op, port)
            if port.whole:
                self.passes([*outside, *inside])
            else:
                self.rows(outside, inside)
        everything: list[Operand] = [*op.args, *op.kwargs.values(), *op.outputs]
        everything += [one for block in op.blocks for one in (*block.args, *block.yields)]
        c.fix_all([one for one in everything if id(one) not in known], op.name)

    def note_sources(self, op: Operator, port: Port) -> None:
        """What a value of a port may be, where it goes in and where it comes out; rows and items are not
        looked into, nor is memory that an ``update`` writes."""
        c = self.c
        yields = [block.yields[place] for block, place in zip(op.blocks, port.yields) if place is not None]
        given = [] if port.arg is None else [op.args[port.arg]]
        every: list[Operand] = [*given, *yields] if port.whole and flow_of(op).kind is not Kind.INLINE else [None]
        for block, place in zip(op.blocks, port.inner):
            if place is not None:
                c.sources[block.args[place]] = every
        if port.output is not None:
            c.sources[op.outputs[port.output]] = every

    def passes(self, values: list[Operand]) -> None:
        """These are one value at some time."""
        c = self.c
        found = [one for one in values if one is not UNDEF and one is not None]
        tensors = [one for one in found if isinstance(one, Variable) and isinstance(one.type, TensorType)]
        if len(tensors) < len(found):
            c.fix_all(tensors, "a tensor on some paths only")
        for one in tensors[1:]:
            c.all_same(tensors[0], one)

    def rows(self, whole: list[Operand], items: list[Operand]) -> None:
        """Items are rows of what is outside."""
        c = self.c
        for one in whole:
            for item in items:
                outer, inner = c.shape(one), c.shape(item)
                if outer is None or inner is None or len(outer) != len(inner) + 1:
                    c.fix_all([one, item], "items of a list")
                    continue
                c.fix(one, 0, "rows that a loop goes through")
                for axis in range(len(inner)):
                    c.same(item, axis, one, axis + 1)
        if not whole:
            c.fix_all(items, "items of a list")


def _inside(op: Operator, port: Port) -> Iterator[Operand]:
    for places, values in ((port.inner, [block.args for block in op.blocks]),
                           (port.yields, [block.yields for block in op.blocks])):  # fmt: skip
        yield from (one[place] for place, one in zip(places, values) if place is not None)


def choose(artefact: Artefact, c: Coupler, amount: float) -> list[Choice]:
    """For each group that may shrink, the channels that stay: those whose weights have the largest L2 norm."""
    found = []
    for group in c.axes.groups():
        if group.fixed is not None or not group.makers or not isinstance(group.size, int):
            continue
        gone = min(math.floor(amount * group.size + 1e-9), group.size - 1)
        if gone > 0 and (strength := _strength(artefact, group)) is not None:
            order = torch.argsort(strength, descending=True, stable=True)
            found.append(Choice(group, order[: group.size - gone].sort().values))
    return found


def _strength(artefact: Artefact, group: Group) -> torch.Tensor | None:
    """For each channel of a group, the sum of the squares of all weights; None if there are none."""
    total: torch.Tensor | None = None
    for owner, dim in dict.fromkeys(group.members):
        if not isinstance(owner, int):
            continue
        tensor = tensor_at(artefact, owner).detach()
        if tensor.dim() < 2 or not tensor.is_floating_point():
            continue
        squares = tensor.to("cpu", torch.float64).square().movedim(dim, 0).flatten(1).sum(1)
        total = squares if total is None else total + squares
    return total


__all__ = ["Choice", "Fixed", "choose", "couple_all"]
