"""Operators of a straight Program, whose numbers are the device's: tensors without dimensions.

    w.give("int", "aten.add.Tensor", n.var, 1)    ->    %3 : i64[] = aten.add.Tensor(%n, 1)

An int is int64, a float float64, a bool bool. Where Python would compute something else (ints beyond 64 bits),
``Writer.fail`` sets a flag: whoever runs the Program then computes it all again with Python's numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from runtime.ir import Block, Operand, Operator, ScalarType, TensorType, Variable
from runtime.ir.types import ScalarKind, said

WHOLE = 1 << 62
"""Ints are smaller than this: a sum of two is one of 64 bits."""

DTYPES: dict[ScalarKind, torch.dtype] = {"int": torch.int64, "float": torch.float64, "bool": torch.bool}
_KINDS: dict[type, ScalarKind] = {int: "int", float: "float", bool: "bool"}


class NotOnDevice(Exception):  # no error: it says why something stays with the host
    """Something cannot be computed on the device alone; the message says what."""


@dataclass(frozen=True)
class Number:
    """A number on the device: the tensor that has it, of which of Python's types it is, and what an int is smaller
    than, its sign aside."""

    kind: ScalarKind
    var: Variable
    bound: int = WHOLE


Value = Any
"""A tensor's Variable, a ``Number``, or a number of the host's: a constant or a Variable."""


def kind_of(value: Value) -> ScalarKind | None:
    """Of which of Python's types a number is; None for what is none."""
    if isinstance(value, Number):
        return value.kind
    if isinstance(value, Variable):
        return value.type.kind if isinstance(value.type, ScalarType) and value.type.kind in DTYPES else None
    return _KINDS.get(type(value))


def bound_of(value: Value) -> int:
    """What an int is smaller than, its sign aside."""
    if isinstance(value, Number):
        return 2 if value.kind == "bool" else value.bound
    return WHOLE if isinstance(value, Variable) or type(value) is float else abs(int(value)) + 1


@dataclass
class Writer:
    """Writes Operators of a straight Program. path: the flags under which what is written now counts."""

    device: torch.device
    block: Block = field(default_factory=Block)
    path: list[Number] = field(default_factory=list)
    failed: Number | None = None
    like: Operator | None = None
    """The Operator that what is written stands for: it lends its modes and its line."""
    small: set[Variable] = field(default_factory=set)
    """Ints of the host's that are surely smaller than ``WHOLE``."""
    known: dict[Any, Any] = field(default_factory=dict)
    """What was written before and can be read again (``places``)."""
    _count: int = 0

    def fresh(self, of: TensorType | ScalarType | Any) -> Variable:
        """A Variable with a name of its own."""
        self._count += 1
        return Variable(f"d{self._count}", of)

    def number(self, kind: ScalarKind, bound: int = WHOLE) -> Number:
        """A number that is yet to be given a value."""
        return Number(kind, self.fresh(TensorType(DTYPES[kind], (), said(self.device))), bound)

    def put(self, name: str, args: Sequence[Operand], of: TensorType, **kwargs: Operand) -> Variable:
        """An Operator with one result."""
        out = self.fresh(of)
        self.add(Operator(name, tuple(args), dict(kwargs), (out,)))
        return out

    def add(self, op: Operator) -> None:
        """An Operator as it is, in the modes of the one that it stands for."""
        if self.like is not None:
            op.grad_mode, op.autocast, op.location = self.like.grad_mode, self.like.autocast, self.like.location
        self.block.ops.append(op)

    def give(self, kind: ScalarKind, name: str, *args: Operand, bound: int = WHOLE, **kwargs: Operand) -> Number:
        """An operator whose result is a number."""
        return Number(kind, self.put(name, args, TensorType(DTYPES[kind], (), said(self.device)), **kwargs), bound)

    def of_host(self, name: str, *args: Operand, kind: ScalarKind = "int") -> Variable:
        """An operator of numbers of the host's."""
        out = self.fresh(ScalarType(kind))
        self.add(Operator(name, args, {}, (out,)))
        return out

    def begin(self) -> list[Operator]:
        """Begin another Program; the Operators so far."""
        ops, self.block.ops, self.failed = self.block.ops, [], None
        self.known.clear()
        return ops

    def fail(self, flag: Number) -> None:
        """Where the flag is set, on the path that is being written, all is to be computed by the host."""
        for one in self.path:
            flag = self.both(one, flag)
        self.failed = flag if self.failed is None else self.either(self.failed, flag)

    def both(self, a: Number, b: Number) -> Number:
        """Whether two flags are set."""
        return self.give("bool", "aten.bitwise_and.Tensor", a.var, b.var)

    def either(self, a: Number, b: Number) -> Number:
        """Whether one of two flags is set."""
        return self.give("bool", "aten.bitwise_or.Tensor", a.var, b.var)

    def opposite(self, flag: Number) -> Number:
        """Whether a flag is not set."""
        return self.give("bool", "aten.logical_not.default", flag.var)

    def on_device(self, value: Value, kind: ScalarKind) -> Number:
        """A number as one of the device's, of a type that Python would convert it to before it computes."""
        found = kind_of(value)
        if found is None or (found == "float") > (kind == "float") or (kind == "bool" and found != "bool"):
            raise NotOnDevice(f"a {found} where it would be a {kind}")
        if isinstance(value, Number):
            bound = 2 if found == "bool" else value.bound
            return value if found == kind else self.give(kind, "aten.to.dtype", value.var, DTYPES[kind], bound=bound)
        return self.give(kind, "aten.full.default", [], self.second(value, kind), dtype=DTYPES[kind],
                         device=self.device, bound=bound_of(value))  # fmt: skip

    def constant(self, value: Any, kind: ScalarKind) -> Any:
        """A constant of the host's as Python converts it."""
        if kind != "float" and abs(int(value)) >= WHOLE:
            raise NotOnDevice("an int of more than 62 bits")
        try:
            return float(value) if kind == "float" else int(value) if kind == "int" else value
        except OverflowError:
            raise NotOnDevice("an int that is no float") from None

    def within(self, one: Number, limit: int) -> Number:
        """An int that is smaller than a limit; fail where it is not."""
        if one.bound > limit:
            above = self.give("bool", "aten.ge.Scalar", one.var, limit)
            self.fail(self.either(above, self.give("bool", "aten.le.Scalar", one.var, -limit)))
        return Number(one.kind, one.var, min(one.bound, limit))

    def second(self, value: Value, kind: ScalarKind) -> Operand:
        """A number as the second operand of an operator: one of the host's stays one."""
        if isinstance(value, Number):
            return self.on_device(value, kind).var
        if not isinstance(value, Variable):
            return self.constant(value, kind)
        found = kind_of(value)
        if found == "int" and value not in self.small:
            raise NotOnDevice("an int that is computed in the loop")
        return value if found == kind else self.of_host(f"scalar.{kind}", value, kind=kind)

    def either_of(self, flag: Number, a: Value, b: Value) -> Value:
        """One of two numbers, by a flag of the device's."""
        kind = kind_of(a)
        if kind is None or kind_of(b) != kind:
            raise NotOnDevice("a value of one of two types")
        if kind == "bool" and type(a) is bool and type(b) is bool:
            return a if a == b else flag if a else self.opposite(flag)
        if type(a) is bool:
            other = self.on_device(b, "bool")
            return self.either(flag, other) if a else self.both(self.opposite(flag), other)
        if type(b) is bool:
            other = self.on_device(a, "bool")
            return self.either(self.opposite(flag), other) if b else self.both(flag, other)
        return self.give(kind, "aten.where.self", flag.var, self.on_device(a, kind).var, self.on_device(b, kind).var,
                         bound=max(bound_of(a), bound_of(b)))  # fmt: skip

__all__ = ["DTYPES", "WHOLE", "NotOnDevice", "Number", "Value", "Writer", "bound_of", "kind_of"]
