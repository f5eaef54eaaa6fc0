"""A loop as the device runs it alone: two straight Programs, whose numbers are tensors without dimensions.

    %n : int, %h : f32[8] = while_loop(0, %x) {test} {body}

    first: %x's place and %n's     ->  whether to go on, whether the test holds, whether anything failed
    step: these and how many iterations there were  ->  the next ones, how many, and the same flags

A branch is computed on both sides, and ``where`` takes one: only operators that no operand can make fail are part of
it. What needs Python after all (an index out of range, an int of more than 62 bits, an assertion that does not hold)
is a flag, and the host then runs the loop from its start.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from runtime.ir import UNDEF, Block, Operand, Operator, Program, ScalarType, TensorType, Variable
from runtime.ir.flow import Kind
from runtime.ir.ports import flow_of
from runtime.ir.program import Input
from runtime.ir.types import ScalarKind
from runtime.kernels.device.facts import joined, late_numbers, sources
from runtime.kernels.device.translation import Translation
from runtime.kernels.device.writer import DTYPES, WHOLE, NotOnDevice, Number, Value, Writer, kind_of

MOST_BRANCHES = 6
"""Inside each other, that decide what a result is."""
COUNTED, LITTLE = 1 << 60, 1 << 16
"""A counter begins with less, and changes by less in each iteration."""
MOST_ITERATIONS = 4096
"""Of a launch, which nothing can interrupt."""


@dataclass(frozen=True)
class Form:
    """A loop on the device. captured: the Variables that it reads besides what it carries; carried: the places in the
    loop's arguments of what it does carry, of tensors first those that ``tensors`` counts; kept: places of which the
    last value is the first."""

    first: Program
    step: Program
    captured: tuple[Variable, ...]
    carried: tuple[int, ...]
    tensors: int
    kinds: tuple[ScalarKind, ...]
    """Of the carried numbers."""
    kept: frozenset[int]
    selects: bool
    """Whether it reads rows at a place that the device computes."""
    rows: Mapping[int, int]
    """Places of what an iteration changes in one row only, and the dimension: ``step`` gives, at its end, an index and
    the row, in place of the whole."""
    sources: Mapping[int, frozenset[Any]]
    """Of what is carried, what memory the value of an iteration may be (``facts``)."""
    yields: Mapping[int, Variable]
    changed: tuple[int, ...]
    """Places of tensors of which a flag tells, after the numbers, whether they are other than the first."""


def form_of(op: Operator, kind: str, seen: Collection[int] = ()) -> Form:
    """A ``while_loop`` on a kind of device. seen: the places of results of which somebody sees whether they are what
    the loop was given. Errors raised: NotOnDevice."""
    test, body = op.blocks
    if op.attrs.get("max_iterations") is not None or any(op.attrs.get(name) for name in ("recompute", "checkpoints",
                                                                                         "backward")):  # fmt: skip
        raise NotOnDevice("a loop that counts its iterations for somebody")
    writer = Writer(_device(op, kind))
    one = Translation(kind, writer)
    kept = frozenset(place for place, value in enumerate(body.yields) if value is body.args[place])
    tensors = [place for place, arg in enumerate(test.args) if isinstance(arg.type, TensorType) and place not in kept]
    numbers = [place for place, arg in enumerate(test.args) if place not in tensors and place not in kept]
    state: list[Variable] = []
    heads: dict[int, Value] = {}
    kinds: list[ScalarKind] = []
    for place in kept:
        heads[place] = one.value(op.args[place])
    for place in tensors:
        heads[place] = writer.fresh(test.args[place].type)
        state.append(heads[place])
    for place in numbers:
        of = test.args[place].type
        if not isinstance(of, ScalarType) or of.kind not in DTYPES:
            raise NotOnDevice(f"it carries a {getattr(of, 'kind', type(of).__name__)}")
        heads[place] = writer.number(of.kind, COUNTED if _counts(body, place) else WHOLE)
        kinds.append(of.kind)
        state.append(heads[place].var)
    memory = sources(op, tensors)
    changed = {place: writer.number("bool") for place in tensors if place in seen and ("carried", place) in
               memory[place]}  # fmt: skip
    kinds += ["bool"] * len(changed)
    state += [flag.var for flag in changed.values()]
    one.fixed.update(state)

    one.values.update({arg: heads[place] for place, arg in enumerate(test.args)})
    one.operators(test.ops)
    flags = _flags(one, test.yields[0], None, 0)
    ops = writer.begin()

    one.values.update({arg: heads[place] for place, arg in enumerate(body.args)})
    one.operators(body.ops)
    following: dict[int, Value] = {}
    for place in (*tensors, *numbers):
        found = one.value(body.yields[place])
        if found is UNDEF:
            found = heads[place]
        elif isinstance(heads[place], Number):
            if kind_of(found) != heads[place].kind:
                raise NotOnDevice("a number of another type than before")
            found = writer.on_device(found, heads[place].kind)
        elif not isinstance(found, Variable) or not isinstance(found.type, TensorType):
            raise NotOnDevice("no tensor is carried on")
        following[place] = found
    news = [_new(one, body, body.yields[place], body.args[place], flag) for place, flag in changed.items()]
    one.values.update({arg: following.get(place, heads[place]) for place, arg in enumerate(test.args)})
    one.operators(test.ops)
    count = writer.number("int")
    writer.like = None
    after = writer.give("int", "aten.add.Tensor", count.var, 1)
    ends = _flags(one, test.yields[0], after, MOST_ITERATIONS)
    carried = (*tensors, *numbers)
    results = [following[place].var if isinstance(following[place], Number) else following[place] for place in carried]
    results += [*(writer.on_device(flag, "bool").var for flag in news), after.var, *ends]
    steps = writer.begin()
    rows: dict[int, int] = {}
    for place in tensors:
        written = _row(following[place], heads[place], steps, results)
        if written is not None:
            steps.remove(written)
            results.remove(written.outputs[0])
            rows[place] = written.args[1]  # type: ignore[assignment]  # a constant
            results += written.args[2:]
    given = [*one.inputs.values(), *state]
    return Form(
        _program("first", given, ops, flags), _program("step", [*given, count.var], steps, results),
        tuple(one.inputs), carried, len(tensors), tuple(kinds), kept,
        any("index_select" in made.name for made in (*ops, *steps)), rows, memory,
        {place: value for place in tensors if isinstance(value := body.yields[place], Variable)},
        tuple(changed),
    )  # fmt: skip


def _new(one: Translation, body: Block, value: Operand, head: Variable, before: Number) -> Value:
    """Whether what is carried on is other than the first value, if a flag tells it of what an iteration begins with."""
    made = {out: (op, number) for op in body.walk() for number, out in enumerate(op.outputs)}

    def of(value: Operand, depth: int) -> Value:
        if value is head:
            return before
        op, number = made.get(value, (None, 0)) if isinstance(value, Variable) else (None, 0)
        if op is None or flow_of(op).kind is not Kind.BRANCH:
            return True
        if depth > MOST_BRANCHES:
            raise NotOnDevice("a result that many branches decide on")
        sides = [of(inner, depth + 1) for inner in joined(op, number)]
        return one.folded(one.flags[id(op)], sides, one.w.either_of)

    return of(value, 0)


def _row(value: Variable, head: Variable, ops: Sequence[Operator], results: Sequence[Variable]) -> Operator | None:
    """The Operator that writes a row of what is carried, if that is all that becomes of it."""
    for op in ops:
        if value in op.outputs and op.name == "aten.index_copy.default" and op.args[0] is head:
            read = [var for other in ops for var in (*other.inputs, *(one for block in other.blocks
                                                                      for one in block.captures()))]  # fmt: skip
            return op if value not in read and results.count(value) == 1 and head not in results else None
    return None


def _flags(one: Translation, test: Operand, count: Number | None, most: int) -> list[Variable]:
    """Whether the device goes on by itself, whether the test holds and, where that can be, whether anything failed."""
    w = one.w
    going = one.flag(test)
    flag = going if w.failed is None else w.both(going, w.opposite(w.failed))
    if count is not None:
        flag = w.both(flag, w.give("bool", "aten.lt.Scalar", count.var, most))
    return [flag.var, going.var] if w.failed is None else [flag.var, going.var, w.failed.var]


def _program(name: str, given: Sequence[Variable], ops: list[Operator], results: Sequence[Variable]) -> Program:
    """A straight Program, without what nobody reads."""
    needed, kept = set(results), []
    for op in reversed(ops):
        if needed.intersection(op.outputs):
            kept.append(op)
            needed.update(op.inputs, *(block.captures() for block in op.blocks))
    ordered = late_numbers(kept[::-1])
    return Program(name, Block(list(given), ordered, list(results)), [Input(var, var.name) for var in given],
                   output=None)  # fmt: skip


def _counts(body: Block, place: int) -> bool:
    """Whether a number that is carried only ever changes by little: by as much as no loop adds up to 60 bits."""
    made = {out: (op, number) for op in body.walk() for number, out in enumerate(op.outputs)}
    waiting: list[tuple[Any, int]] = [(body.yields[place], 0)]
    for _ in range(100):
        if not waiting:
            return True
        value, steps = waiting.pop()
        if value is body.args[place]:
            continue
        op, number = made.get(value, (None, 0)) if isinstance(value, Variable) else (None, 0)
        if op is None or steps > 8:
            return False
        if flow_of(op).kind is Kind.BRANCH:
            waiting += [(one, steps) for one in joined(op, number)]
        elif op.name in ("scalar.add", "scalar.sub") and type(op.args[1]) is int and abs(op.args[1]) < LITTLE:
            waiting.append((op.args[0], steps + 1))
        elif op.name == "scalar.add" and type(op.args[0]) is int and abs(op.args[0]) < LITTLE:
            waiting.append((op.args[1], steps + 1))
        else:
            return False
    return False


def _device(op: Operator, kind: str) -> torch.device:
    """The device whose tensors a loop has."""
    found = [var.type for block in op.blocks for var in (*block.args, *block.captures())
             if isinstance(var.type, TensorType)]  # fmt: skip
    if kind == "cpu" and found:
        return torch.device("cpu")
    for of in found:
        if of.device is not None and of.device.type == kind:
            return of.device
    raise NotOnDevice("no tensor is on the device")


FORMS: dict[str, Callable[[Operator, str, Collection[int]], Form]] = {"while_loop": form_of}
"""The loops that a device may run, by name."""

__all__ = ["COUNTED", "FORMS", "MOST_ITERATIONS", "Form", "form_of"]
