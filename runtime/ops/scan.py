"""``scan``: a Block run once for each number below a length, which gets a slice and gives an item each time.

    %h : f32[4], %hs : f32[n, 4] = scan(%n, %h0, %x) {
      ^(%i : int, %g : f32[4], %row : f32[3]):
        %y : f32[4] = ...
        yield %y, %y
    } attrs {carried: 1}

The arguments are the length, the first carried values, and columns: tensors, of which an iteration gets a row, or
lists, of which it gets an item. The Block gives the next carried values, then items. The outputs are the last carried
values, then what the items make: a tensor of rows (None where there was no iteration), or a list.

``carried``: how many values are carried; ``reverse``: the last number comes first, and what is made of the items still
begins with that of number 0. No length below 0 is one of no iterations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runtime.ir.block import Block
from runtime.ir.definition import Fail, OpDefinition
from runtime.ir.flow import First, Flow, Kind, Port
from runtime.ir.inference import check_flow, element_of, fits, type_of
from runtime.ir.operator import Operator
from runtime.ir.printer import print_type
from runtime.ir.types import ArrayType, ScalarType, TensorType, Type
from runtime.ir.variable import UNDEF, Operand, Variable
from runtime.ops.arity import check_attrs, check_backward, check_block, check_blocks, check_no_kwargs


def carried(op: Operator) -> int:
    """How many values a scan carries."""
    count: int = op.attrs["carried"]
    return count


def columns(op: Operator) -> tuple[Operand, ...]:
    """What a scan takes slices of."""
    return op.args[1 + carried(op) :]


def slice_of(column: Operand) -> Type | None:
    """The type of what an iteration gets of a column; None if that is not known."""
    type_ = type_of(column)
    if isinstance(type_, TensorType):
        return TensorType(type_.dtype, None if type_.shape is None else type_.shape[1:], type_.device)
    return element_of(column)


def _verify(op: Operator, fail: Fail) -> None:
    check_no_kwargs(op, fail)
    check_blocks(op, fail, ("body",))
    flags = {"reverse": (bool,), "recompute": (bool,), "checkpoint": (bool, int), "backward": (bool,)}
    check_attrs(op, fail, {"carried": (int,), **flags}, required=["carried"])
    check_backward(op, fail)
    (body,) = op.blocks
    count = carried(op)
    if not op.args or not 0 <= count <= min(len(op.args) - 1, len(op.outputs)):
        fail("arity", f"scan carries {count} values, but has {len(op.args)} arguments and {len(op.outputs)} outputs")
    if type_of(op.args[0]) != ScalarType("int"):
        fail("type", "the length of a scan must be an int")
    check_block(op, fail, "body", body, args=len(op.args))
    for column in columns(op):
        _check_column(column, fail)
    if any(value is UNDEF for value in op.args[1 + count :]):
        fail("undef", "undef may only be carried")
    check_flow(op, fail, "counts with", [op.args[0]], body.args)
    check_flow(op, fail, "begins with", op.args[1 : 1 + count], body.args[1:])
    check_flow(op, fail, "carries on", body.yields[:count], body.args[1:])
    for column, arg in zip(columns(op), body.args[1 + count :]):
        told = slice_of(column)
        if not fits(told, arg.type):
            fail("type", f"scan gives slices {print_type(told or arg.type)} as %{arg.name}, "
                 f"which is {print_type(arg.type)}")  # fmt: skip
    for value, out in zip(body.yields[count:], op.outputs[count:]):
        _check_made(value, out, fail)


def _check_column(column: Operand, fail: Fail) -> None:
    type_ = type_of(column)
    rows = isinstance(type_, TensorType) and type_.shape != ()
    if not rows and not isinstance(type_, ArrayType):
        fail("type", f"scan takes slices of tensors with rows and of lists, not of {column!r}")


def _check_made(value: Operand, out: Variable, fail: Fail) -> None:
    if not isinstance(out.type, (TensorType, ArrayType)):
        fail("type", f"the items of a scan make a tensor or a list, not {print_type(out.type)}")
    if isinstance(out.type, TensorType) and not isinstance(type_of(value), TensorType):
        fail("type", f"%{out.name} is a tensor of rows, and its items are none")
    told = type_of(value)
    if not fits(told, slice_of(out) or out.type):
        fail("type", f"the items of %{out.name}, which is {print_type(out.type)}, are {print_type(told or out.type)}")


def _infer(op: Operator) -> list[Type | None]:
    count = carried(op)
    (body,) = op.blocks
    return [*(arg.type for arg in body.args[1 : 1 + count]), *[None] * (len(body.yields) - count)]


def _ports(op: Operator) -> list[Port]:
    count = carried(op)
    ports = [Port(inner=(0,), yields=(None,))]
    ports += [Port(1 + place, (1 + place,), (place,), place) for place in range(count)]
    ports += [Port(place, (place,), (None,), None, False) for place in range(1 + count, len(op.args))]
    return ports + [Port(None, (None,), (place,), place, False) for place in range(count, len(op.outputs))]


def _dropping(op: Operator, ports: Sequence[Port]) -> None:
    op.attrs = {**op.attrs, "carried": carried(op) - sum(port.whole and port.arg is not None for port in ports)}


def _decides(op: Operator) -> Sequence[Operand]:
    return op.args[:1]


def _first(op: Operator) -> First | None:
    length = op.args[0]
    if isinstance(length, Variable):
        return First(length, is_count=True)
    return First(True) if type(length) is int and length > 0 else None


def expanded(op: Operator) -> list[Operator]:
    """The ``while_loop`` that a scan which does not go in reverse is, and what stands around it.

    The body's Variables and Operators are those of the scan: they may stand in one place only.
    """
    count, location = carried(op), op.location
    (body,) = op.blocks
    length = op.args[0]
    numbers = _Made()
    first = numbers.new("scalar.gt", (length, 0), ScalarType("bool"))
    lists, joins = [], []
    for value, out in zip(body.yields[count:], op.outputs[count:]):
        element = type_of(value)
        list_type = out.type if isinstance(out.type, ArrayType) else ArrayType(element or out.type)
        lists.append(numbers.new("array.new", ([],), list_type))
        joins.append(out if isinstance(out.type, ArrayType) else Variable("", list_type))
    slices = _Made()
    index, rest = body.args[0], body.args[1 : 1 + count]
    for column, arg in zip(columns(op), body.args[1 + count :]):
        rows = isinstance(type_of(column), TensorType)
        slices.add("aten.select.int" if rows else "array.get", (column, 0, index) if rows else (column, index), arg)
    tail = _Made()
    grown = [Variable("", one.type) for one in lists]
    appended = [tail.new("array.append", pair, pair[0].type) for pair in zip(grown, body.yields[count:])]
    following = tail.new("scalar.add", (index, 1), ScalarType("int"))
    more = tail.new("scalar.lt", (following, length), ScalarType("bool"))
    inner = Block(
        [Variable("", ScalarType("bool")), index, *rest, *grown],
        [*slices.ops, *body.ops, *tail.ops],
        [more, following, *body.yields[:count], *appended],
    )
    test = Block([Variable("", arg.type) for arg in inner.args])
    test.yields = [test.args[0]]
    counters = Variable("", ScalarType("bool")), Variable("", ScalarType("int"))
    attrs = {key: value for key, value in op.attrs.items() if key in ("recompute", "checkpoint", "backward")}
    loop = Operator(
        "while_loop", (first, 0, *op.args[1 : 1 + count], *lists), {}, (*counters, *op.outputs[:count], *joins),
        (test, inner), attrs, op.grad_mode, op.autocast,
    )  # fmt: skip
    after = _Made()
    for made, out in zip(joins, op.outputs[count:]):
        if made is not out:
            whole = Variable("", out.type)
            stacked = Block([], [Operator("aten.stack.default", (made, 0), {}, (whole,), location=location)], [whole])
            after.add("cond", (first,), out, (stacked, Block([], [], [UNDEF])))
    ops = [*numbers.ops, loop, *after.ops]
    for one in (*ops, *slices.ops, *tail.ops):
        one.location = location
    return ops


class _Made:
    """New Operators."""

    def __init__(self) -> None:
        self.ops: list[Operator] = []

    def add(self, name: str, args: tuple[Any, ...], out: Variable, blocks: tuple[Block, ...] = ()) -> None:
        self.ops.append(Operator(name, args, {}, (out,), blocks))

    def new(self, name: str, args: tuple[Any, ...], type_: Type) -> Variable:
        out = Variable("", type_)
        self.add(name, args, out)
        return out


DEFINITION = OpDefinition(
    "scan", "Run the body for each number below a length, on slices, and put its items together.", verify=_verify,
    infer=_infer, undef_args=True,
    flow=Flow(Kind.LOOP, ("body",), _ports, _dropping, decides=_decides, first=_first), raises=lambda op: False,
)
