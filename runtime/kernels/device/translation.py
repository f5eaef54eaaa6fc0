"""Operators of a loop's Blocks as Operators of a straight Program, of which the device can compute all.

    %y = cond(%f) {yield %a} {yield %b}    ->    %y = aten.where.self(%f, %a, %b)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch

from runtime.ir import UNDEF, Block, Operand, Operator, ScalarType, TensorType, Variable
from runtime.ir.definition import definition_of
from runtime.kernels import runs
from runtime.kernels.device import numbers, places
from runtime.kernels.device.writer import DTYPES, NotOnDevice, Number, Value, Writer, kind_of
from runtime.ops import aten

MOST_IN_A_BRANCH = 12
"""Operators on tensors in a branch: both sides are computed."""
_HARMLESS = frozenset({
    "sum", "mean", "amax", "amin", "max", "min", "all", "any", "argmax", "argmin", "linalg_vector_norm", "softmax",
    "log_softmax", "layer_norm", "matmul", "mm", "linear", "dot", "cat", "stack", "var", "std", "cumsum", "full_like",
    "zeros_like", "ones_like", "clone", "flip",
})  # fmt: skip
"""Operators that nothing in their operands makes fail, beside pointwise ones and views."""
_OF_TENSORS = frozenset({"scalar.truth", "scalar.item", "scalar.number", "scalar.index"})
_OF_SIZES = frozenset({"scalar.size", "scalar.numel", "scalar.dim"})



@dataclass
class Translation:
    """Writes a loop's Operators. kind: of device."""

    kind: str
    w: Writer
    values: dict[Variable, Value] = field(default_factory=dict)
    flags: dict[int, list[Number]] = field(default_factory=dict)
    """Of branches, by their identity: which of their Blocks runs."""
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
            return numbers.read(self.w, "scalar.truth", found)
        return numbers.truth(self.w, found)

    def operators(self, ops: Sequence[Operator]) -> None:
        for op in ops:
            before, self.w.like = self.w.like, op
            self.operator(op)
            self.w.like = before

    def operator(self, op: Operator) -> None:
        """Write one Operator. Errors raised: NotOnDevice."""
        rule = _RULES.get(op.name)
        if rule is not None:
            rule(self, op)
        elif op.name.startswith("scalar."):
            self.number(op)
        elif op.name == "aten.select.int" and isinstance(self.value(op.args[2]), Number):
            base = self.tensor(op.args[0])
            self.values[op.outputs[0]] = places.select(
                self.w, base, op.args[1], self.value(op.args[2]), fixed=base in self.fixed
            )  # fmt: skip
        elif op.name in numbers.WITH_TENSORS and isinstance(self.value(op.args[1]), Number):
            self.values[op.outputs[0]] = numbers.with_tensor(
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
            self.values[out] = numbers.read(self.w, op.name, args[0])
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
            self.values[out] = numbers.compute(self.w, op.name, args)

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

    def claim(self, op: Operator) -> None:
        """An assertion: where it does not hold, the host raises what it says."""
        self.w.fail(self.w.opposite(self.flag(op.args[0])))

    def refusal(self, op: Operator) -> None:
        """An exception on the path that is being written; the host raises it."""
        if not self.w.path:
            raise NotOnDevice(op.name)
        path = self.w.path.pop()
        self.w.fail(path)
        self.w.path.append(path)

    def update(self, op: Operator) -> None:
        """A write: as it is, or at a place that the device computes."""
        (block,) = op.blocks
        if set(op.attrs) - {"checkpoint"} or op.grad_mode == "on" or any(on for _, on, _ in op.autocast or ()):
            raise NotOnDevice("a write past autograd")
        if any(isinstance(self.values.get(var), Number) for inner in block.ops for var in inner.inputs):
            self.values[op.outputs[0]] = places.write(self.w, op, self.value, self.fixed)
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

    def by_flag(self, op: Operator) -> None:
        """A branch whose flag says which of two Blocks runs."""
        flag = self.flag(op.args[0])
        self.branch(op, [flag, self.w.opposite(flag)])

    def by_index(self, op: Operator) -> None:
        """A branch whose index says which Block runs."""
        index = self.value(op.args[0])
        if not isinstance(index, Number) or index.kind == "float":
            raise NotOnDevice("a switch by a number of the host's")
        at = places.counted(self.w, index, len(op.blocks))
        self.branch(op, [self.w.give("bool", "aten.eq.Scalar", at.var, number) for number in range(len(op.blocks))])

    def branch(self, op: Operator, flags: list[Number]) -> None:
        """All sides, and one of each of their values, by flags that say which Block runs."""
        if sum(not one.name.startswith("scalar.") for block in op.blocks for one in block.walk()) > MOST_IN_A_BRANCH:
            raise NotOnDevice("a branch that computes much")
        self.flags[id(op)] = flags
        sides: list[list[Value]] = []
        for block, flag in zip(op.blocks, flags):
            self.w.path.append(flag)
            self.operators(block.ops)
            sides.append([UNDEF if one is UNDEF else self.value(one) for one in block.yields])
            self.w.path.pop()
        for number, out in enumerate(op.outputs):
            self.values[out] = self.folded(flags, [side[number] for side in sides], self.one_of)

    def folded(self, flags: Sequence[Number], values: Sequence[Value],
               one_of: Callable[[Number, Value, Value], Value]) -> Value:  # fmt: skip
        """The one value that a branch gives: that of the last Block if no other one runs."""
        found = values[-1]
        for flag, value in zip(reversed(flags[:-1]), reversed(values[:-1])):
            found = one_of(flag, value, found)
        return found

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


_RULES: dict[str, Callable[[Translation, Operator], None]] = {
    "assert": Translation.claim, "cond": Translation.by_flag, "raise": Translation.refusal,
    "switch": Translation.by_index, "update": Translation.update,
}  # fmt: skip

__all__ = ["Translation"]
