"""A loop as the device runs it alone: two straight Programs, whose numbers are tensors without dimensions.

    %n : int, %h : f32[8] = while_loop(0, %x) {test} {body}

    first: %x's place and %n's     ->  whether to go on, whether the test holds, whether anything failed
    step: these and how many iterations there were  ->  the next ones, how many, and the same flags

A branch is computed on both sides, and ``where`` takes one: only operators that no operand can make fail are part of
it. What needs Python after all (an index out of range, an int of more than 62 bits, an assertion that does not hold)
is a flag, and the host then runs the loop from its start.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from runtime.ir import UNDEF, Block, Operand, Operator, Program, ScalarType, TensorType, Variable
from runtime.ir.definition import definition_of
from runtime.ir.operator import leaves
from runtime.ir.program import Input
from runtime.kernels import device_numbers, device_places, runs
from runtime.kernels.device_numbers import DTYPES, WHOLE, NotOnDevice, Number, Value, Writer, kind_of
from runtime.ops import aten

MOST_IN_A_BRANCH = 12
"""Operators on tensors in a branch: both sides are computed."""
COUNTED, LITTLE = 1 << 60, 1 << 16
"""A counter begins with less, and changes by less in each iteration."""
MOST_ITERATIONS = 4096
"""Of a launch, which nothing can interrupt."""

_HARMLESS = frozenset({
    "sum", "mean", "amax", "amin", "max", "min", "all", "any", "argmax", "argmin", "linalg_vector_norm", "softmax",
    "log_softmax", "layer_norm", "matmul", "mm", "linear", "dot", "cat", "stack", "var", "std", "cumsum", "full_like",
    "zeros_like", "ones_like", "clone", "flip",
})  # fmt: skip
"""Operators that nothing in their operands makes fail, beside pointwise ones and views."""
_OF_TENSORS = frozenset({"scalar.truth", "scalar.item", "scalar.number", "scalar.index"})
_OF_SIZES = frozenset({"scalar.size", "scalar.numel", "scalar.dim"})


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
    kinds: tuple[device_numbers.ScalarKind, ...]
    """Of the carried numbers."""
    kept: frozenset[int]
    selects: bool
    """Whether it reads rows at a place that the device computes."""
    rows: Mapping[int, int]
    """Places of what an iteration changes in one row only, and the dimension: ``step`` gives, at its end, an index and
    the row, in place of the whole."""
    sources: Mapping[int, frozenset[Any]]
    """Of what is carried, what memory the value of an iteration may be (``_memory``)."""
    yields: Mapping[int, Variable]


@dataclass
class _Translation:
    kind: str
    changing: frozenset[Variable]
    w: Writer
    values: dict[Variable, Value] = field(default_factory=dict)
    inputs: dict[Variable, Variable] = field(default_factory=dict)
    """Variables from outside, and the Programs' arguments that are they."""
    fixed: set[Variable] = field(default_factory=set)
    """The Programs' arguments, of whose sizes somebody makes sure that none is 0."""

    def value(self, operand: Operand) -> Value:
        """What stands for an operand that is a Variable or a constant."""
        if not isinstance(operand, Variable):
            return operand
        found = self.values.get(operand)
        if found is None and operand not in self.values:
            of = operand.type
            if not isinstance(of, TensorType) and not (isinstance(of, ScalarType) and of.kind in DTYPES):
                raise NotOnDevice(f"a value of type {type(of).__name__}")
            found = self.values[operand] = self.inputs[operand] = self.w.fresh(of)
            self.fixed.add(found)
            self.w.small.add(found)
        return found

    def operand(self, operand: Operand) -> Operand:
        """An operand of an operator that stays as it is."""
        if isinstance(operand, (list, tuple)):
            return type(operand)(map(self.operand, operand))
        if isinstance(operand, dict):
            return {key: self.operand(item) for key, item in operand.items()}
        if isinstance(operand, slice):
            return slice(*map(self.operand, (operand.start, operand.stop, operand.step)))
        found = self.value(operand)
        if isinstance(found, Number) or found is UNDEF:
            raise NotOnDevice("a number of the device's where an operator needs one of the host's")
        return found

    def flag(self, operand: Operand) -> Number:
        """A flag: a bool, or a tensor of one element."""
        found = self.value(operand)
        if isinstance(found, Variable) and isinstance(found.type, TensorType):
            return device_numbers.read(self.w, "scalar.truth", found)
        return device_numbers.truth(self.w, found)

    def operators(self, ops: Sequence[Operator]) -> None:
        for op in ops:
            before, self.w.like = self.w.like, op
            self.operator(op)
            self.w.like = before

    def operator(self, op: Operator) -> None:
        """Write one Operator. Errors raised: NotOnDevice."""
        if op.name == "cond":
            self.branch(op)
        elif op.name == "update":
            self.update(op)
        elif op.name == "assert":
            self.w.fail(self.w.opposite(self.flag(op.args[0])))
        elif op.name.startswith("scalar."):
            self.number(op)
        elif op.name == "aten.select.int" and isinstance(self.value(op.args[2]), Number):
            base = self.tensor(op.args[0])
            self.values[op.outputs[0]] = device_places.select(
                self.w, base, op.args[1], self.value(op.args[2]), fixed=base in self.fixed
            )  # fmt: skip
        elif op.name in device_numbers.WITH_TENSORS and isinstance(self.value(op.args[1]), Number):
            self.values[op.outputs[0]] = device_numbers.with_tensor(
                self.w, op, self.value(op.args[0]), self.value(op.args[1])
            )  # fmt: skip
        else:
            self.as_it_is(op)

    def tensor(self, operand: Operand) -> Variable:
        found = self.value(operand)
        if not isinstance(found, Variable) or not isinstance(found.type, TensorType):
            raise NotOnDevice("no tensor")
        return found

    def number(self, op: Operator) -> None:
        args = [self.value(one) for one in op.args]
        (out,) = op.outputs
        if op.name in _OF_TENSORS and isinstance(args[0], Variable) and isinstance(args[0].type, TensorType):
            self.values[out] = device_numbers.read(self.w, op.name, args[0])
        elif op.name == "scalar.expect" and isinstance(args[0], Number):
            if args[0].kind != args[1]:
                raise NotOnDevice("a number of another type than expected")
            self.values[out] = args[0]
        elif not any(isinstance(one, Number) for one in args) or op.name in _OF_SIZES:
            self.copy(op)
            if op.name in _OF_SIZES:
                self.w.small.add(self.values[out])
        elif op.kwargs:
            raise NotOnDevice(op.name)
        else:
            self.values[out] = device_numbers.compute(self.w, op.name, args)

    def copy(self, op: Operator) -> None:
        """An Operator as it is, of values of its own."""
        outs = tuple(self.w.fresh(out.type) for out in op.outputs)
        self.w.add(Operator(op.name, tuple(map(self.operand, op.args)),
                            {key: self.operand(one) for key, one in op.kwargs.items()}, outs, attrs=dict(op.attrs)))
        self.values.update(zip(op.outputs, outs))

    def as_it_is(self, op: Operator) -> None:
        if not runs.may_be_recorded(op, frozenset(), self.kind):
            raise NotOnDevice(op.name)
        if self.w.path and not _is_harmless(op):
            raise NotOnDevice(f"{op.name} in a branch")
        self.copy(op)

    def update(self, op: Operator) -> None:
        """A write: as it is, or at a place that the device computes."""
        (block,) = op.blocks
        if set(op.attrs) - {"checkpoint"} or op.grad_mode == "on" or any(on for _, on, _ in op.autocast or ()):
            raise NotOnDevice("a write past autograd")
        if any(isinstance(self.values.get(var), Number) for inner in block.ops for var in inner.inputs):
            self.values[op.outputs[0]] = device_places.write(self.w, op, self.value, self.fixed)
            return
        outer, self.w.block = self.w.block, Block()
        base = [self.tensor(one) for one in op.args]
        for arg, one in zip(block.args, base):
            self.values[arg] = self.w.fresh(one.type)
        inside = set(block.args)
        for inner in block.ops:
            written = aten.writes(aten.resolve(inner.name), inner.args, inner.kwargs)
            if inner.blocks or (self.w.path and not _is_harmless(inner)):
                raise NotOnDevice(f"{inner.name} in a write")
            if not written and not runs.may_be_recorded(inner, frozenset(), self.kind):
                raise NotOnDevice(inner.name)
            if written and not (runs.is_plain(inner.name) and definition_of(inner.name).writes(inner)):
                raise NotOnDevice(inner.name)
            self.w.like = inner
            self.copy(inner)
            inside.update(inner.outputs)
        yields = [self.value(one) for one in block.yields]
        args = [self.values[arg] for arg in block.args]
        self.w.block, made = outer, self.w.block
        made.args, made.yields = args, yields
        outs = tuple(self.w.fresh(out.type) for out in op.outputs)
        self.w.like = op
        self.w.add(Operator("update", tuple(base), {}, outs, (made,), dict(op.attrs)))
        self.values.update(zip(op.outputs, outs))

    def branch(self, op: Operator) -> None:
        """Both sides, and one of each two values."""
        if sum(not one.name.startswith("scalar.") for block in op.blocks for one in block.walk()) > MOST_IN_A_BRANCH:
            raise NotOnDevice("a branch that computes much")
        flag = self.flag(op.args[0])
        sides: list[list[Value]] = []
        for block, taken in zip(op.blocks, (True, False)):
            self.w.path.append(flag if taken else self.w.opposite(flag))
            self.operators(block.ops)
            sides.append([UNDEF if one is UNDEF else self.value(one) for one in block.yields])
            self.w.path.pop()
        for out, a, b in zip(op.outputs, *sides):
            self.values[out] = self.one_of(flag, a, b)

    def one_of(self, flag: Number, a: Value, b: Value) -> Value:
        if a is UNDEF or b is UNDEF:
            return b if a is UNDEF else a
        if a is b or (not isinstance(a, (Number, Variable)) and type(a) is type(b) and repr(a) == repr(b)):
            return a
        if kind_of(a) is not None:
            return self.w.either_of(flag, a, b)
        if not isinstance(a, Variable) or not isinstance(b, Variable) or a.type != b.type:
            raise NotOnDevice("values of two forms")
        of = a.type
        if not isinstance(of, TensorType) or of.dtype is None or of.shape is None:
            raise NotOnDevice("a tensor of a shape that is not known")
        return self.w.put("aten.where.self", [flag.var, a, b], of)


def _is_harmless(op: Operator) -> bool:
    overload = aten.resolve(op.name)
    if op.name.rpartition(".")[0].removeprefix("aten.") in _HARMLESS or op.name == "aten.copy_.default":
        return True
    if torch.Tag.pointwise in overload.tags:
        return not any(isinstance(out.type, TensorType) and out.type.dtype is not None
                       and not out.type.dtype.is_floating_point and out.type.dtype is not torch.bool
                       and any(word in op.name for word in ("div", "remainder", "fmod", "pow", "shift"))
                       for out in op.outputs)  # fmt: skip
    return aten.is_view(overload, op.args, op.kwargs)


def form_of(op: Operator, kind: str) -> Form:
    """A ``while_loop`` on a kind of device. Errors raised: NotOnDevice."""
    test, body = op.blocks
    if op.attrs.get("max_iterations") is not None or any(op.attrs.get(name) for name in ("recompute", "checkpoints",
                                                                                         "backward")):  # fmt: skip
        raise NotOnDevice("a loop that counts its iterations for somebody")
    writer = Writer(_device(op, kind))
    one = _Translation(kind, frozenset(), writer)
    kept = frozenset(place for place, value in enumerate(body.yields) if value is body.args[place])
    tensors = [place for place, arg in enumerate(test.args) if isinstance(arg.type, TensorType) and place not in kept]
    numbers = [place for place, arg in enumerate(test.args) if place not in tensors and place not in kept]
    state: list[Variable] = []
    heads: dict[int, Value] = {}
    kinds: list[device_numbers.ScalarKind] = []
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
    one.values.update({arg: following.get(place, heads[place]) for place, arg in enumerate(test.args)})
    one.operators(test.ops)
    count = writer.number("int")
    writer.like = None
    after = writer.give("int", "aten.add.Tensor", count.var, 1)
    ends = _flags(one, test.yields[0], after, MOST_ITERATIONS)
    carried = (*tensors, *numbers)
    results = [following[place].var if isinstance(following[place], Number) else following[place] for place in carried]
    results += [after.var, *ends]
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
        any("index_select" in made.name for made in (*ops, *steps)), rows, _sources(op, tensors),
        {place: value for place in tensors if isinstance(value := body.yields[place], Variable)},
    )  # fmt: skip


def _row(value: Variable, head: Variable, ops: Sequence[Operator], results: Sequence[Variable]) -> Operator | None:
    """The Operator that writes a row of what is carried, if that is all that becomes of it."""
    for op in ops:
        if value in op.outputs and op.name == "aten.index_copy.default" and op.args[0] is head:
            read = [var for other in ops for var in (*other.inputs, *(one for block in other.blocks
                                                                      for one in block.captures()))]  # fmt: skip
            return op if value not in read and results.count(value) == 1 and head not in results else None
    return None


def _flags(one: _Translation, test: Operand, count: Number | None, most: int) -> list[Variable]:
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
    ordered = _late_numbers(kept[::-1])
    return Program(name, Block(list(given), ordered, list(results)), [Input(var, var.name) for var in given],
                   output=None)  # fmt: skip


def _late_numbers(ops: Sequence[Operator]) -> list[Operator]:
    """Operators of numbers where somebody needs them, so that many stand together and become one kernel."""
    waiting: dict[Variable, Operator] = {}
    found: list[Operator] = []

    def put(op: Operator) -> None:
        read = [*op.inputs, *(var for block in op.blocks for var in block.captures())]
        for var in read:
            maker = waiting.get(var)
            if maker is not None:
                put(maker)
        for out in op.outputs:
            waiting.pop(out, None)
        found.append(op)

    for op in ops:
        if len(op.outputs) == 1 and not op.blocks and _is_number(op):
            waiting[op.outputs[0]] = op
        else:
            put(op)
    for op in ops:
        if op.outputs[0] in waiting:
            put(op)
    return found


def _is_number(op: Operator) -> bool:
    """Whether an Operator computes a number of numbers."""
    kinds = [var.type for var in (*op.inputs, *op.outputs)]
    return op.name.startswith("aten.") and torch.Tag.pointwise in aten.resolve(op.name).tags and all(
        isinstance(one, ScalarType) or (isinstance(one, TensorType) and one.shape == ()) for one in kinds
    )


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
        if op.name == "cond":
            waiting += [(block.yields[number], steps) for block in op.blocks]
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


def _sources(op: Operator, places: Sequence[int]) -> dict[int, frozenset[Any]]:
    _, body = op.blocks
    memory: dict[Variable, frozenset[Any]] = {arg: frozenset([("carried", place)]) for place, arg in
                                              enumerate(body.args)}  # fmt: skip
    _note(body, memory)
    return {place: _memory(body.yields[place], memory) for place in places}


def _memory(value: Operand, memory: Mapping[Variable, frozenset[Any]]) -> frozenset[Any]:
    """What memory a value may be: of an Operator's own, of what is carried, of what is outside, or a part of one."""
    return memory.get(value, frozenset([("outside", value)])) if isinstance(value, Variable) else frozenset()


def _note(block: Block, memory: dict[Variable, frozenset[Any]]) -> None:
    for op in block.ops:
        if op.name == "cond":
            for inner in op.blocks:
                _note(inner, memory)
            for out, *values in zip(op.outputs, *(inner.yields for inner in op.blocks)):
                memory[out] = frozenset().union(*(_memory(one, memory) for one in values))
            continue
        viewed = [] if op.blocks else list(leaves(definition_of(op.name).views(op)))
        for out in op.outputs:
            own: frozenset[Any] = frozenset([("made", out)])
            of = [_memory(base, memory) for base in viewed]
            memory[out] = frozenset(("part", *one[1:]) for found in of for one in found) if of else own


__all__ = ["COUNTED", "MOST_ITERATIONS", "Form", "form_of"]
