"""Hoisting: what does not change from one iteration of a loop to the next is computed once, before it.

    %h = while_loop(%go, %h0) {...} {                    %s : f32[8, 4] = cond(%go) {
      ^(%f : bool, %g : f32[2, 4]):                        %m = aten.linear.default(%memory, %w)
        %s : f32[8, 4] = aten.linear.default(%memory, %w)   yield %m
        ...                                       ->     } { yield undef }
    }                                                    %h = while_loop(%go, %h0) {...} { ... }

Under the loop's first test: a loop that never runs computes nothing, and raises nothing. What costs next to nothing and
surely does not raise needs no test. An Operator that may raise moves only if nothing before it in the body may raise or
be seen by somebody, so that the first exception stays the first, at its line. So does one that reads a value which some
paths do not have: an assertion before it may say so.

What stays: random numbers, effects, what is written or kept (two tensors are two), what reads a value that the loop
carries, what runs on some paths of an iteration only, and elementwise results that are much bigger than what they are
computed of, as reading them takes as long as computing them.

Gradients of what moved would be summed before they go through it, which rounds differently. So this pass is for
Programs that no autograd watches: what runs without gradients, and both halves of a derivative.
"""

from __future__ import annotations

import math
from collections.abc import Sequence, Set
from dataclasses import dataclass, field

import torch

from runtime.ir import UNDEF, Block, Operator, Program, ScalarType, TensorType, Variable
from runtime.ir.definition import About, definition_of
from runtime.ir.flow import First, Kind
from runtime.ir.ports import flow_of
from runtime.ir.undefined import may_be_undefined
from runtime.ir.walk import Names, copy_block
from runtime.ops import aten
from runtime.ops.escaping import Uses
from runtime.ops.raising import does_more, has_effect, may_raise
from runtime.passes.manager import Pass

_SLOW = frozenset({
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cos", "cosh", "digamma", "erf", "erfc", "erfinv",
    "exp", "exp2", "expm1", "gelu", "lgamma", "log", "log10", "log1p", "log2", "mish", "pow", "sigmoid", "silu", "sin",
    "sinh", "softplus", "tan", "tanh",
})  # fmt: skip
"""Elementwise operators that take longer than reading their result."""

SMALL = 1 << 16
"""Bytes of a tensor that stays in fast memory."""


def hoist(program: Program) -> int:
    """Move Operators out of loops; how many."""
    if not any(flow_of(op).kind is Kind.LOOP for op in program.block.walk()):
        return 0
    return _Hoist(Names(program), may_be_undefined(program.block)).block(program.block)


@dataclass
class _Moved:
    """What leaves a loop's body: ``always``, and what only happens if the loop has an iteration."""

    always: list[Operator] = field(default_factory=list)
    guarded: list[Operator] = field(default_factory=list)


@dataclass
class _Hoist:
    names: Names
    undefined: set[Variable]
    """What exists on some paths only: who reads it relies on the assertions before."""

    def block(self, block: Block) -> int:
        """Inner loops first: what leaves them may leave the loops around them."""
        changes = 0
        ops: list[Operator] = []
        for op in block.ops:
            flow = flow_of(op)
            for inner in op.blocks if flow.is_path else ():
                changes += self.block(inner)
            if flow.kind is Kind.LOOP:
                ops += self.before(op)
            ops.append(op)
        changes += len(ops) - len(block.ops)
        block.ops[:] = ops
        return changes

    def before(self, loop: Operator) -> list[Operator]:
        """What is to stand before a loop; the body has it no longer."""
        first = flow_of(loop).first(loop)
        moved = _invariant(loop, first is not None, self.undefined)
        gone = {id(op) for op in (*moved.always, *moved.guarded)}
        body = loop.blocks[-1]
        body.ops[:] = [op for op in body.ops if id(op) not in gone]
        if not moved.guarded or first is None:
            return moved.always
        if first.value is True:
            return [*moved.always, *moved.guarded]
        return [*moved.always, *self.guarded(first, moved.guarded, loop)]

    def guarded(self, first: First, ops: list[Operator], loop: Operator) -> list[Operator]:
        """Operators under the test of the first iteration."""
        tests: list[Operator] = []
        flag = first.value
        if first.is_count:
            flag = Variable(self.names.new(""), ScalarType("bool"))
            tests.append(Operator("scalar.gt", (first.value, 0), {}, (flag,), location=loop.location))
        read = set(loop.blocks[0].captures()) | set(loop.blocks[-1].captures())
        outs = [out for op in ops for out in op.outputs if out in read]
        taken = copy_block(Block([], ops, list(outs)), {}, self.names.new)
        cond = Operator("cond", (flag,), {}, tuple(outs), (taken, Block([], [], [UNDEF] * len(outs))),
                        location=loop.location)  # fmt: skip
        return [*tests, cond]


def _invariant(loop: Operator, tested: bool, undefined: Set[Variable]) -> _Moved:
    """What may leave a body. ``tested``: whether something may be put under the first test."""
    *tests, body = loop.blocks
    changing = {var for block in loop.blocks for var in _assigned(block)}
    quiet = not any(has_effect(op) for test in tests for op in test.ops)
    moved, uses = _Moved(), Uses(body)
    under: set[Variable] = set()
    for op in body.ops:
        read = {*op.inputs, *(var for block in op.blocks for var in block.captures())}
        raises = may_raise(op) or not read.isdisjoint(undefined)
        if read.isdisjoint(changing) and _may_move(op) and _pays(op) and not uses.escape(_tensors(op)):
            if not raises and read.isdisjoint(under) and _is_cheap(op):
                moved.always.append(op)
                changing.difference_update(op.outputs)
                continue
            if tested and (quiet or not raises):
                moved.guarded.append(op)
                under.update(op.outputs)
                changing.difference_update(op.outputs)
                continue
        quiet = quiet and not raises and not does_more(op)
    return moved


def _assigned(block: Block) -> list[Variable]:
    found = list(block.args)
    for op in block.ops:
        found += op.outputs
        for inner in op.blocks:
            found += _assigned(inner)
    return found


def _tensors(op: Operator) -> list[Variable]:
    return [out for out in op.outputs if not isinstance(out.type, ScalarType)]


def _may_move(op: Operator) -> bool:
    """Whether an Operator does nothing but compute numbers and tensors, wherever it stands."""
    if definition_of(op.name).asserts:
        return True
    if not op.outputs or not all(isinstance(out.type, (TensorType, ScalarType)) for out in op.outputs):
        return False
    if op.blocks:
        pure = flow_of(op).kind is Kind.BRANCH
        return pure and all(_may_move(inner) for block in op.blocks for inner in block.ops)
    if does_more(op):
        return False
    if op.name.startswith("aten."):
        return not aten.writes(aten.resolve(op.name), op.args, op.kwargs)
    return _is_about_numbers(op) and definition_of(op.name).neutral


def _is_cheap(op: Operator) -> bool:
    """Whether computing it in vain does not matter: numbers, views, and little tensors of little tensors."""
    if op.blocks or not (_is_about_numbers(op) or _is_view(op) or _is_plain(op)):
        return False
    types = [var.type for var in (*op.inputs, *op.outputs)]
    return not _tensors(op) or _is_view(op) or all(_bytes([type_]) <= SMALL for type_ in types)


def _pays(op: Operator) -> bool:
    """Whether reading a result is quicker than computing it again.

    Elementwise results are computed where they are used, in C; what is made of a number is not read at all.
    """
    if not _is_plain(op) or op.name.split(".")[1] in _SLOW or _is_view(op):
        return True
    given = [var.type for var in op.inputs if isinstance(var.type, TensorType)]
    made = [out.type for out in op.outputs]
    if _bytes(made) <= SMALL:
        return True
    shapes = [one.shape for one in given if one.shape is not None]
    own = [one for one in made if isinstance(one, TensorType)]
    if all(one.shape in shapes for one in own) and all(_width(one) <= max(map(_width, given)) for one in own):
        return True
    return _bytes(made) <= _bytes(given) < math.inf


def _is_about_numbers(op: Operator) -> bool:
    return definition_of(op.name).about is About.NUMBERS


def _is_plain(op: Operator) -> bool:
    """Whether an Operator is elementwise, or makes new memory."""
    if not op.name.startswith("aten."):
        return False
    overload = aten.resolve(op.name)
    given = any(isinstance(var.type, TensorType) for var in op.inputs)
    return torch.Tag.pointwise in overload.tags or aten.is_factory(overload) or not given


def _is_view(op: Operator) -> bool:
    return op.name.startswith("aten.") and aten.is_view(aten.resolve(op.name), op.args, op.kwargs)


def _width(type_: TensorType) -> int:
    return 8 if type_.dtype is None else type_.dtype.itemsize


def _bytes(types: Sequence[object]) -> float:
    """How much memory values take; infinite where a size is not known."""
    total = 0.0
    for type_ in types:
        if not isinstance(type_, TensorType):
            continue
        if type_.shape is None or not all(type(size) is int for size in type_.shape):
            return math.inf
        total += _width(type_) * math.prod(size for size in type_.shape if isinstance(size, int))
    return total


PASS = Pass("hoist", "what is the same in all iterations of a loop", hoist)

__all__ = ["PASS", "hoist"]
