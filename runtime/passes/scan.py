"""Scans: loops of known length that append one item to a list in each iteration, which is then stacked.

    %l = array.new([])                                       %h, %hs = scan(%n, %h0, %x) {
    %f, %i, %h, %m = while_loop(%go, 0, %h0, %l) {...} {       ^(%j : int, %g : f32[4], %row : f32[3]):
      ^(%b : bool, %j : int, %g : f32[4], %k):                   ...
        %row = aten.select.int(%x, 0, %j)                        yield %next, %item
        ...                                            ->      } attrs {carried: 1}
        %o = array.append(%k, %item)                         assert(%go) attrs {exception: "RuntimeError", ...}
        %p = scalar.add(%j, 1); %q = scalar.lt(%p, %n)
        yield %q, %p, %next, %o
    }
    %hs = aten.stack.default(%m, 0)

What is stacked once, in the same Block, is never a list. A list that is read otherwise stays one: its items are other
tensors than rows, for who writes them and for their gradients. Programs in which memory is written keep their loops.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from runtime.ir import UNDEF, ArrayType, Block, Operand, Operator, Program, ScalarType, TensorType, Variable, leaves
from runtime.ir.flow import Kind
from runtime.ir.inference import type_of
from runtime.ir.ports import flow_of
from runtime.ir.walk import variables
from runtime.ops.escaping import escapes
from runtime.passes.manager import Pass

_KEPT = ("recompute", "checkpoint")
_OF_ROWS = {"subscript", "checkpoint"}
"""What a read of a row may have: the words for an index that is out of range, which none of a scan is."""
_EMPTY = "stack expects a non-empty TensorList"


def rewrite(program: Program) -> int:
    """Make scans of loops; how many."""
    ops = list(program.block.walk())
    if all(op.name != "while_loop" for op in ops) or any(flow_of(op).kind is Kind.INLINE for op in ops):
        return 0
    return _Rewrite(program).block(program.block)


@dataclass
class _Column:
    """A list that a loop makes, by the position at which it carries it."""

    position: int
    made: Operator
    append: Operator
    stack: Operator | None = None
    lengths: list[Operator] = field(default_factory=list)


@dataclass
class _Plan:
    """A loop that is a scan."""

    loop: Operator
    length: Operand
    flag: int
    counter: int
    lists: list[_Column]
    drop: set[int]
    """Operators of the body, by identity, that are left out."""


class _Rewrite:
    """One Program: who makes and who reads each of its Variables."""

    def __init__(self, program: Program) -> None:
        self.makers: dict[Variable, Operator] = {}
        self.readers: dict[Variable, list[Operator | None]] = {}
        """None: a Block that yields it."""
        self.homes: dict[int, Block] = {}
        self._visit(program.block)
        self.taken = {var.name for var in variables(program)}

    def _visit(self, block: Block) -> None:
        for op in block.ops:
            self.homes[id(op)] = block
            self.makers.update(dict.fromkeys(op.outputs, op))
            for var in op.inputs:
                self.readers.setdefault(var, []).append(op)
            for inner in op.blocks:
                self._visit(inner)
        for var in leaves(block.yields):
            self.readers.setdefault(var, []).append(None)

    def block(self, block: Block) -> int:
        changes = 0
        for op in list(block.ops):
            for inner in op.blocks:
                changes += self.block(inner)
            plan = self.plan(op) if op.name == "while_loop" else None
            if plan is not None:
                self.apply(block, plan)
                changes += 1
        return changes

    # -- what is a scan ------------------------------------------------------------------------------------------

    def plan(self, loop: Operator) -> _Plan | None:
        test, body = loop.blocks
        if any(key not in _KEPT for key in loop.attrs) or test.ops or any(value is UNDEF for value in body.yields):
            return None
        (going,) = test.yields
        if not isinstance(going, Variable) or going not in test.args:
            return None
        flag = test.args.index(going)
        counted = self.counted(loop, flag)
        if counted is None:
            return None
        length, counter, more = counted
        if any(self.readers.get(var) for var in (loop.outputs[flag], loop.outputs[counter], body.args[flag])):
            return None
        columns = [self.column(loop, position) for position in range(len(loop.args)) if position not in (flag, counter)]
        lists = [column for column in columns if column is not None]
        if not lists:
            return None
        drop = {id(column.append) for column in lists}
        if self.readers[more.outputs[0]] == [None]:
            drop.add(id(more))
            following: Any = body.yields[counter]
            if all(reader is more or reader is None for reader in self.readers[following]):
                if self.readers[following].count(None) == 1:
                    drop.add(id(self.makers[following]))
        return _Plan(loop, length, flag, counter, lists, drop)

    def counted(self, loop: Operator, flag: int) -> tuple[Operand, int, Operator] | None:
        """The length of a loop that counts from 0, the position of its counter, and what tests it."""
        body = loop.blocks[1]
        more = self.maker(body.yields[flag], body)
        if more is None or more.name not in ("scalar.lt", "scalar.gt"):
            return None
        following, length = more.args if more.name == "scalar.lt" else reversed(more.args)
        counters = [at for at, value in enumerate(body.yields) if value is following and isinstance(value, Variable)]
        if len(counters) != 1 or type_of(length) != ScalarType("int") or self.is_inside(length, body):
            return None
        (counter,) = counters
        add = self.maker(following, body)
        if add is None or add.name != "scalar.add" or type(loop.args[counter]) is not int or loop.args[counter] != 0:
            return None
        one, other = add.args
        steps = (one is body.args[counter] and _is_one(other)) or (other is body.args[counter] and _is_one(one))
        return (length, counter, more) if steps and self.begins(loop.args[flag], length) else None

    def begins(self, first: Operand, length: Operand) -> bool:
        """Whether the first test is that of number 0."""
        if not isinstance(first, Variable):
            return first is True and type(length) is int and length > 0
        made = self.makers.get(first)
        if made is None or made.name not in ("scalar.lt", "scalar.gt"):
            return False
        zero, limit = made.args if made.name == "scalar.lt" else reversed(made.args)
        return type(zero) is int and zero == 0 and (limit is length or (type(limit) is int and limit == length))

    def column(self, loop: Operator, position: int) -> _Column | None:
        """The list at a position, if each iteration appends one item to it and does nothing else with it."""
        test, body = loop.blocks
        first, arg, out = loop.args[position], body.args[position], loop.outputs[position]
        made = self.makers.get(first) if isinstance(first, Variable) else None
        append = self.maker(body.yields[position], body)
        if made is None or append is None or made.name != "array.new" or list(leaves(made.args)) or made.args[0]:
            return None
        if append.name != "array.append" or append.args[0] is not arg or not isinstance(out.type, ArrayType):
            return None
        item = append.args[1]
        others = self.readers.get(test.args[position]), self.readers[first] != [loop], self.readers[arg] != [append]
        if any(others) or self.readers[append.outputs[0]] != [None] or isinstance(item, (list, tuple, dict)):
            return None
        found = _Column(position, made, append)
        readers = self.readers.get(out, [])
        stacks = [op for op in readers if op is not None and op.name == "aten.stack.default"]
        found.lengths = [op for op in readers if op is not None and op.name == "array.len"]
        whole = len(readers) == 1 + len(found.lengths) and len(stacks) == 1
        if whole and self.is_whole(loop, stacks[0], item):
            found.stack = stacks[0]
        return found

    def is_whole(self, loop: Operator, stack: Operator, item: Operand) -> bool:
        """Whether what is stacked may be stacked by the loop: surely tensors of one kind, in the same modes."""
        type_ = type_of(item)
        dim = stack.kwargs.get("dim", stack.args[1] if len(stack.args) > 1 else 0)
        if not isinstance(type_, TensorType) or type_.dtype is None or type_.shape is None or type(dim) is not int:
            return False
        made = stack.outputs[0].type
        known = isinstance(made, TensorType) and (made.dtype, made.device) == (type_.dtype, type_.device) and made.shape
        if not known or dim != 0 or self.homes[id(stack)] is not self.homes[id(loop)]:
            return False
        outside = {size for var in self.before(loop) for size in _symbols(var)}
        return stack.grad_mode == "inherit" and stack.autocast is None and all(
            type(size) is int or size in outside for size in type_.shape
        )

    def before(self, loop: Operator) -> Iterator[Variable]:
        """What there is before a loop begins, as far as it reads it."""
        yield from loop.inputs
        for block in loop.blocks:
            yield from block.captures()

    # -- the scan ------------------------------------------------------------------------------------------------

    def apply(self, block: Block, plan: _Plan) -> None:
        loop, body = plan.loop, plan.loop.blocks[1]
        lists = {column.position: column for column in plan.lists}
        carried = [at for at in range(len(loop.args)) if at not in (plan.flag, plan.counter) and at not in lists]
        slices = self.slices(plan)
        left_out = plan.drop | {id(op) for op in slices}
        items: list[Operand] = [column.append.args[1] for column in plan.lists]
        outs = [loop.outputs[column.position] if column.stack is None else column.stack.outputs[0]
                for column in plan.lists]  # fmt: skip
        scan = Operator(
            "scan",
            (plan.length, *(loop.args[at] for at in carried), *(op.args[0] for op in slices)),
            {},
            (*(loop.outputs[at] for at in carried), *outs),
            (Block(
                [body.args[plan.counter], *(body.args[at] for at in carried), *(op.outputs[0] for op in slices)],
                [op for op in body.ops if id(op) not in left_out],
                [*(body.yields[at] for at in carried), *items],
            ),),
            {"carried": len(carried), **loop.attrs},
            loop.grad_mode, loop.autocast, loop.location,
        )  # fmt: skip
        self.makers.update(dict.fromkeys(scan.outputs, scan))
        made = {id(column.made) for column in plan.lists}
        stacks = {id(column.stack) for column in plan.lists}
        for home in {id(self.homes[one]): self.homes[one] for one in made}.values():
            home.ops[:] = [op for op in home.ops if id(op) not in made]
        for op in block.ops:
            if id(op) in stacks:
                op.name, op.args, op.kwargs, op.outputs = "assert", (loop.args[plan.flag],), {}, ()
                op.attrs = {"exception": "RuntimeError", "message": _EMPTY}
        block.ops[:] = [scan if op is loop else op for op in block.ops
                        if not (op.name == "assert" and op.args == (True,) and id(op) in stacks)]  # fmt: skip
        for column in plan.lists:
            for length in column.lengths if column.stack is not None else ():
                length.name, length.args = "scalar.max", (plan.length, 0)
        self.homes[id(scan)] = block

    def slices(self, plan: _Plan) -> list[Operator]:
        """The reads of a row by the loop's number that the scan does: of tensors that have so many rows."""
        body = plan.loop.blocks[1]
        found = []
        for op in body.ops:
            if op.name != "aten.select.int" or op.kwargs or op.grad_mode != "inherit" or op.autocast is not None:
                continue
            whole, dim, index = op.args
            if type(dim) is not int or dim != 0 or index is not body.args[plan.counter] or op.attrs.keys() - _OF_ROWS:
                continue
            if self.has_rows(whole, plan.length) and not self.is_inside(whole, body) and not escapes(op.outputs, body):
                found.append(op)
        return found

    def has_rows(self, whole: Operand, length: Operand) -> bool:
        """Whether a tensor has at least so many rows."""
        type_ = type_of(whole)
        if not isinstance(type_, TensorType) or type_.dtype is None or not type_.shape:
            return False
        rows = type_.shape[0]
        if not isinstance(length, Variable):
            return type(rows) is int and length <= rows
        made = self.makers.get(length)
        if made is None:
            return False
        if made.name == "scalar.size":
            other, dim = made.args
            same = type_of(other)
            shape = same.shape if isinstance(same, TensorType) and same.shape else ("",)
            sized = type(rows) is str and shape[0] == rows
            return type(dim) is int and dim == 0 and (other is whole or sized)
        if made.name == "scalar.min":  # of the lengths of several
            return any(self.has_rows(whole, one) for one in made.args)
        zero = made.name == "scalar.max" and len(made.args) == 2 and type(made.args[1]) is int and made.args[1] == 0
        return zero and self.has_rows(whole, made.args[0])

    # -- questions -----------------------------------------------------------------------------------------------

    def maker(self, value: Operand, block: Block) -> Operator | None:
        """The Operator of this very Block that makes a value."""
        op = self.makers.get(value) if isinstance(value, Variable) else None
        return op if op is not None and self.homes.get(id(op)) is block else None

    def is_inside(self, value: Operand, block: Block) -> bool:
        """Whether a value is assigned in a Block."""
        return isinstance(value, Variable) and (
            value in block.args or any(value in op.outputs for op in block.walk())
        )


def _is_one(value: Operand) -> bool:
    return type(value) is int and value == 1


def _symbols(var: Variable) -> set[str]:
    shape = var.type.shape if isinstance(var.type, TensorType) else None
    return {size for size in shape or () if isinstance(size, str)}


PASS = Pass("scan", "loops of known length that make lists", rewrite)

__all__ = ["PASS", "rewrite"]
