"""``update``: the one place where memory is written.

    %out_2 : f32[8, 3] = update(%out) {
      ^(%b : f32[8, 3]):
        %row : f32[3] = aten.select.int(%b, 0, %t)
        %r : f32[3] = aten.copy_.default(%row, %h)
        yield %b
    }

The Block runs on copies of the bases (or the bases themselves where nobody can tell). It yields its arguments, in
order, then further results. Only here may an operator write, and only an argument or a view of one. ``unnoticed``:
the user wrote through ``.data``, and autograd does not hear of it. ``refused``: what PyTorch says of the write where
something in it needs a gradient, as of one of the views that ``unbind`` gives. ``repeats``: another Operator wrote the
same memory under another name, and autograd counted that.
"""

from __future__ import annotations

from collections.abc import Iterator

from runtime.ir.block import Block
from runtime.ir.definition import About, Fail, OpDefinition, definition_of
from runtime.ir.flow import Flow, Kind, Port
from runtime.ir.inference import type_of
from runtime.ir.operator import Operator
from runtime.ir.types import ObjectType, TensorType, Type
from runtime.ir.variable import UNDEF, Variable
from runtime.ops import aten
from runtime.ops.arity import check_attrs, check_block, check_blocks, check_no_kwargs


def _verify(op: Operator, fail: Fail) -> None:
    check_no_kwargs(op, fail)
    check_blocks(op, fail, ("body",))
    check_attrs(op, fail, {"checkpoint": (bool, int), "unnoticed": (bool,), "refused": (str,), "repeats": (bool,)})
    bases = op.args
    if not bases:
        fail("arity", "update takes at least 1 argument, not 0")
    for base in bases:
        if not isinstance(base, Variable) or not isinstance(base.type, (TensorType, ObjectType)):
            fail("type", f"a base of update must be a tensor Variable, not {base!r}")
    if len({id(base) for base in bases}) != len(bases):
        fail("update-base", "a base of update is given twice")
    (body,) = op.blocks
    check_block(op, fail, "body", body, args=len(bases))
    if len(body.yields) < len(bases) or any(a is not b for a, b in zip(body.args, body.yields, strict=False)):
        fail("update-yields", "the block of update must yield its own arguments first, in order")
    if any(value is UNDEF for value in body.yields):
        fail("undef", "the block of update must yield values")


def is_unnoticed(op: Operator) -> bool:
    """Whether it writes past autograd's eyes, through ``.data``: backward reads the new content.

    One that repeats such a write elsewhere is not: it brings a copy up to date.
    """
    return bool(op.attrs.get("unnoticed")) and not op.attrs.get("repeats")


def overloads(block: Block) -> Iterator[tuple[Operator, aten.Overload]]:
    """PyTorch's Operators in the Block of an ``update``; the others compute numbers for them."""
    for op in block.ops:
        if definition_of(op.name).about is not About.NUMBERS:
            yield op, aten.resolve(op.name)


def is_counted(block: Block) -> bool:
    """Whether autograd counts what a Block writes: not the statistics of a norm, of which schemas say nothing."""
    return any(aten.announces_writes(overload) for _, overload in overloads(block))


def _ports(op: Operator) -> list[Port]:
    bases = [*range(len(op.args)), *[None] * (len(op.outputs) - len(op.args))]
    return [Port(base, (base,), (position,), position) for position, base in enumerate(bases)]


def _infer(op: Operator) -> list[Type | None]:
    bases = [type_of(base) for base in op.args]
    if any(map(_may_resize, op.blocks[0].ops)):
        bases = [TensorType(one.dtype, None, one.device) if isinstance(one, TensorType) else one for one in bases]
    return [*bases, *map(type_of, op.blocks[0].yields[len(op.args) :])]


def _may_resize(op: Operator) -> bool:
    """Whether an Operator may give what it writes another shape."""
    overload = aten.resolve(op.name) if op.name.startswith("aten.") else None
    if overload is None:
        return False
    return op.name.startswith("aten.resize") or any(argument.is_out for argument in overload._schema.arguments)


def may_overlap(op: Operator) -> bool:
    """Whether an in-place Operator reads other memory of what it writes: PyTorch refuses that if they overlap."""
    if op.name != "update":
        return False
    (block,) = op.blocks
    memory = set(block.args)
    for inner in block.ops[:-1]:
        if not memory.isdisjoint(inner.inputs):
            memory.update(inner.outputs)
    return sum(var in memory for var in block.ops[-1].inputs) > 1


DEFINITION = OpDefinition(
    "update", "Write tensors: run the block on copies of the bases.", verify=_verify, infer=_infer,
    flow=Flow(Kind.INLINE, ("writes",), _ports), raises=may_overlap,
)
