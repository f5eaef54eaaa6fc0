"""A Program's Blocks as graphs of ONNX: which value is which, and which rule writes which Operator."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from runtime.export.onnx.writer import NUMBERS, Refused, Value, Writer, dtype_of, torch_dtype
from runtime.export.shared import Nothing
from runtime.ir import ArrayType, Block, Operand, Operator, ScalarType, TensorType, Type, Variable
from runtime.ir.definition import definition_of
from runtime.ir.types import Dim
from runtime.ir.variable import UNDEF

Rule = Callable[["Translator", Operator], None]


class Translator:
    """Writes Operators. ``rule_of``: the rule for an Operator. Errors raised: Refused."""

    def __init__(self, writer: Writer, rule_of: Callable[[Operator], Rule]) -> None:
        self.w = writer
        self.rule_of = rule_of
        self.values: dict[Variable, Value | Nothing] = {}

    # -- Blocks and Operators

    def block(self, block: Block) -> None:
        """The Operators of a Block, in the graph that is open."""
        for op in block.ops:
            self.operator(op)

    def operator(self, op: Operator) -> None:
        """One Operator."""
        before = self.w.place
        self.w.place = op.location or before
        self._refine(op)
        try:
            self.rule_of(op)(self, op)
        except Refused as error:
            if error.op is None:
                error.op = op
            raise
        self.w.place = before

    def _refine(self, op: Operator) -> None:
        """Give results whose number of dimensions no type says what the operator's definition tells of them."""
        if all(not isinstance(out.type, TensorType) or out.type.shape is not None for out in op.outputs):
            return
        for out, type_ in zip(op.outputs, told(op) if op.name.startswith("aten.") else ()):
            if isinstance(out.type, TensorType) and isinstance(type_, TensorType) and out.type.shape is None:
                out.type = type_

    # -- values

    def give(self, var: Variable, value: Value | Nothing) -> None:
        """Say what a Variable is."""
        self.values[var] = value

    def nothing(self, operand: Operand) -> Nothing | None:
        """What stands in place of a value that has no form, if the operand is one."""
        if isinstance(operand, Variable):
            found = self.values[operand]
            return found if isinstance(found, Nothing) else None
        if operand is None or operand is UNDEF or isinstance(operand, str):
            what = "text" if isinstance(operand, str) else "None"
            return Nothing(f"{what} as a value of the run", operand)
        return None

    def value(self, operand: Operand, dtype: torch.dtype | None = None) -> Value:
        """An operand as a value; numbers are tensors without dimensions, of ``dtype`` if it is given."""
        missing = self.nothing(operand)
        if missing is not None:
            raise Refused(missing.reason)
        if isinstance(operand, Variable):
            found = self.values[operand]
            return found if dtype is None else self.w.cast(found, dtype)
        if isinstance(operand, (bool, int, float)):
            return self.w.constant(operand, dtype or NUMBERS[type(operand).__name__])
        raise Refused(f"{operand!r} as a value of the run")

    def number(self, operand: Operand, kind: str) -> Value:
        """A Python number as another kind of number."""
        return self.value(operand, NUMBERS[kind])

    def kind(self, operand: Operand) -> str:
        """The kind of a Python number. Errors raised: Refused for what is none."""
        type_ = operand.type if isinstance(operand, Variable) else None
        found = type_.kind if isinstance(type_, ScalarType) else type(operand).__name__
        if found not in NUMBERS:
            raise Refused({"str": "text", "complex": "complex numbers", "NoneType": "None"}.get(found, found))
        return found

    def flag(self, operand: Operand) -> Value:
        """A condition: a bool, or a tensor of one element."""
        if isinstance(operand, Variable) and isinstance(operand.type, TensorType):
            return self.w.cast(self.w.single(self.value(operand)), torch.bool)
        return self.number(operand, "bool")

    # -- types

    def dtype(self, type_: Type) -> torch.dtype:
        """The dtype of values of a type, or of a list's items. Errors raised: Refused for what is no such value."""
        if isinstance(type_, TensorType):
            dtype_of(type_.dtype)
            assert type_.dtype is not None
            return type_.dtype
        if isinstance(type_, ScalarType):
            if type_.kind not in NUMBERS:
                raise Refused({"str": "text as a value of the run"}.get(type_.kind, f"{type_.kind} numbers"))
            return NUMBERS[type_.kind]
        if isinstance(type_, ArrayType):
            if isinstance(type_.element, ArrayType):
                raise Refused("a list of lists that the run makes")
            return self.dtype(type_.element)
        raise Refused("a value of a kind that only the run knows, such as None on one path")

    def new(self, type_: Type) -> Value:
        """A value of a type, which a node will give."""
        return self.w.value(self.dtype(type_), shape_of(type_), sequence=isinstance(type_, ArrayType))

    def filler(self, type_: Type) -> Value:
        """Something of a type, for a path on which nobody reads it."""
        if isinstance(type_, ArrayType):
            return self.empty_list(type_)
        shape = shape_of(type_)
        if shape is None:
            raise Refused("a value that is missing on a path, and whose number of dimensions only the run knows")
        sizes = [dim if isinstance(dim, int) else 1 for dim in shape]
        dtype = self.dtype(type_)
        if not sizes:
            return self.w.constant(0, dtype)
        return self.w.node("Expand", self.w.constant(0, dtype), self.w.ints(*sizes), dtype=dtype, shape=sizes)

    def empty_list(self, type_: ArrayType) -> Value:
        """A list without items."""
        dtype = self.dtype(type_)
        return self.w.node("SequenceEmpty", dtype=dtype, sequence=True, dtype_=int(dtype_of(dtype)))

    def yielded(self, operand: Operand, type_: Type) -> Value:
        """What a Block gives for a result of a type."""
        if operand is None or operand is UNDEF:
            return self.filler(type_)
        if isinstance(type_, (ScalarType, TensorType)) and not isinstance(operand, Variable):
            return self.value(operand, self.dtype(type_))
        found = self.value(operand)
        if torch_dtype(found) is not self.dtype(type_):
            if isinstance(type_, ScalarType):
                return self.w.cast(found, self.dtype(type_))
            raise Refused("a value whose dtype depends on the path")
        return found


def told(op: Operator) -> Sequence[Type | None]:
    """The types of an Operator's results, as far as its definition tells."""
    infer = definition_of(op.name).infer
    return [None] * len(op.outputs) if infer is None else infer(op)


def shape_of(type_: Type) -> Sequence[Dim] | None:
    """The sizes that a type tells; none of a number."""
    if isinstance(type_, TensorType):
        return type_.shape
    return ()


__all__ = ["Rule", "Translator", "shape_of", "told"]
