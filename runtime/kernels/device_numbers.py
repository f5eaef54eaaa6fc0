"""Python's numbers on a device: tensors without dimensions, and the operators of PyTorch's that compute with them.

    %n : int = scalar.add(%i, 1)    ->    %3 : i64[] = aten.add.Tensor(%i, 1)

An int is int64, a float float64, a bool bool. What Python computes otherwise (ints beyond 64 bits, zero divisors) sets
a flag, ``Writer.fail``: whoever runs it then computes it all again with Python's numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from runtime.ir import Block, Operand, Operator, ScalarType, TensorType, Variable
from runtime.ir.types import ScalarKind, said

WHOLE = 1 << 62
"""Ints are smaller than this: a sum of two is one of 64 bits."""
HALF = 1 << 31
"""Ints that are smaller have a product that is smaller than ``WHOLE``."""
EXACT = 1 << 53
"""Ints that are smaller are floats, too."""

DTYPES: dict[ScalarKind, torch.dtype] = {"int": torch.int64, "float": torch.float64, "bool": torch.bool}
_KINDS: dict[type, ScalarKind] = {int: "int", float: "float", bool: "bool"}
_MIRRORED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}
_READABLE = (torch.float16, torch.bfloat16, torch.float32)
_WHOLE = (torch.int8, torch.int16, torch.int32, torch.uint8)


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
    """What was written before and can be read again (``device_places``)."""
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
            raise NotOnDevice(f"{value!r} is no {kind}")
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


def compute(w: Writer, name: str, args: Sequence[Value]) -> Value:
    """The result of an operator of numbers, of which at least one is on the device.

    Errors raised: NotOnDevice where the device cannot compute what Python does.
    """
    rule = _RULES.get(name.removeprefix("scalar."))
    if rule is None or any(kind_of(one) is None for one in args):
        raise NotOnDevice(name)
    return rule(w, name.removeprefix("scalar."), args)


def read(w: Writer, name: str, tensor: Variable) -> Number:
    """The number that a tensor of one element has."""
    of = tensor.type
    if not isinstance(of, TensorType) or of.shape is None or any(size != 1 for size in of.shape):
        raise NotOnDevice("a number of a tensor that may have several")
    if of.dtype not in (*DTYPES.values(), *_READABLE, *_WHOLE):
        raise NotOnDevice(f"a number of {of.dtype}")
    one = tensor
    if of.shape:
        one = w.put("aten.reshape.default", [tensor, []], TensorType(of.dtype, (), of.device))
    kind: ScalarKind = "float" if of.dtype.is_floating_point else "bool" if of.dtype is torch.bool else "int"
    if name == "scalar.truth":
        return Number("bool", one) if kind == "bool" else w.give("bool", "aten.ne.Scalar", one, 0)
    if of.dtype is not DTYPES[kind]:
        return w.give(kind, "aten.to.dtype", one, DTYPES[kind], bound=1 << 32)
    return w.within(Number(kind, one, 1 << 64), WHOLE) if kind == "int" else Number(kind, one)


def with_tensor(w: Writer, op: Operator, tensor: Value, number: Value) -> Variable:
    """An operator of a tensor and a number of the device's.

    PyTorch converts a number of Python's to the tensor's type if it is of no higher kind; so is this one. What kernels
    compute otherwise from numbers of the host's is left to the host: quotients, and types of 16 bits.
    """
    of = tensor.type if isinstance(tensor, Variable) else None
    if not isinstance(of, TensorType) or not isinstance(number, Number) or op.kwargs or len(op.args) != 2:
        raise NotOnDevice(f"a number of the device's in {op.name}")
    if of.dtype not in (torch.float32, torch.float64) and not (of.dtype is torch.int64 and number.kind != "float"):
        raise NotOnDevice(f"a number of the device's with {of.dtype}")
    one = number.var
    if DTYPES[number.kind] is not of.dtype:
        one = w.put("aten.to.dtype", [one, of.dtype], TensorType(of.dtype, (), said(w.device)))
    packet = op.name.split(".")[1]
    made = op.outputs[0].type
    assert isinstance(made, TensorType)
    pair = [one, tensor] if packet == "rsub" else [tensor, one]
    return w.put(f"aten.{packet.removeprefix('r')}.Tensor", pair, made)


WITH_TENSORS = frozenset(f"aten.{name}.{form}" for name in ("add", "sub", "mul", "rsub", *_MIRRORED)
                         for form in ("Tensor", "Scalar"))  # fmt: skip
"""The operators that ``with_tensor`` takes."""


def _arithmetic(w: Writer, name: str, args: Sequence[Value]) -> Number:
    if len(args) != 2:
        raise NotOnDevice(name)
    kind: ScalarKind = "float" if "float" in map(kind_of, args) else "int"
    a, b = args
    if name != "sub" and not isinstance(a, Number):
        a, b = b, a
    if kind == "float":
        return w.give(kind, f"aten.{name}.Tensor", w.on_device(a, kind).var, w.second(b, kind))
    x, y = w.on_device(a, kind), b if not isinstance(b, Number) else w.on_device(b, kind)
    if name == "mul":
        if bound_of(x) * bound_of(y) > WHOLE:
            x = w.within(x, HALF)
            y = w.within(y, HALF) if isinstance(y, Number) else y
        if bound_of(x) * bound_of(y) > WHOLE:
            raise NotOnDevice("an int of more than 31 bits")
        bound = bound_of(x) * bound_of(y)
    else:
        bound = bound_of(x) + bound_of(y)
    return w.within(w.give(kind, f"aten.{name}.Tensor", x.var, w.second(y, kind), bound=bound), WHOLE)


def _quotient(w: Writer, name: str, args: Sequence[Value]) -> Number:
    a, b = args
    if type(b) not in (int, float) or b == 0:
        raise NotOnDevice("a divisor that may be zero")
    if name == "truediv":
        if kind_of(a) == "int":
            a = w.within(w.on_device(a, "int"), EXACT)
        if type(b) is int and abs(b) >= EXACT:
            raise NotOnDevice("an int that is no float")
        return w.give("float", "aten.div.Tensor", w.on_device(a, "float").var, w.on_device(b, "float").var)
    if kind_of(a) == "float" or type(b) is float or abs(b) >= HALF:
        raise NotOnDevice(f"{name} of floats")
    whole = w.on_device(a, "int")
    if name == "mod":
        return w.give("int", "aten.remainder.Scalar", whole.var, b, bound=abs(b))
    return w.give("int", "aten.div.Scalar_mode", whole.var, b, rounding_mode="floor", bound=whole.bound + 1)


def _signed(w: Writer, name: str, args: Sequence[Value]) -> Number:
    kind: ScalarKind = "float" if kind_of(args[0]) == "float" else "int"
    one = w.on_device(args[0], kind)
    return one if name == "pos" else w.give(kind, f"aten.{name}.default", one.var, bound=one.bound)


def _bits(w: Writer, name: str, args: Sequence[Value]) -> Number:
    kinds = {kind_of(one) for one in args}
    if "float" in kinds or len(args) != 2:
        raise NotOnDevice(name)
    kind: ScalarKind = "bool" if kinds == {"bool"} else "int"
    a, b = (w.on_device(one, kind).var for one in args)
    return w.give(kind, f"aten.bitwise_{name.rstrip('_')}.Tensor", a, b)


def _comparison(w: Writer, name: str, args: Sequence[Value]) -> Number:
    a, b = args
    if not isinstance(a, Number):
        a, b, name = b, a, _MIRRORED[name]
    kind: ScalarKind = "int"
    if "float" in (kind_of(a), kind_of(b)):
        kind = "float"
        for one in (a, b):
            if isinstance(one, Number) and kind_of(one) == "int":
                w.within(one, EXACT)
            elif isinstance(one, Variable) and kind_of(one) == "int":
                raise NotOnDevice("an int that may be no float")
            elif type(one) is int and abs(one) >= EXACT:
                raise NotOnDevice("an int that is no float")
    second = w.second(b, kind)
    which = "Tensor" if isinstance(b, Number) else "Scalar"
    return w.give("bool", f"aten.{name}.{which}", w.on_device(a, kind).var, second)


def truth(w: Writer, value: Value) -> Number:
    """Whether a number is not zero."""
    if kind_of(value) == "bool":
        return w.on_device(value, "bool")
    if not isinstance(value, Number):
        raise NotOnDevice(f"the truth of {value!r}")
    return w.give("bool", "aten.ne.Scalar", value.var, 0)


def _truth(w: Writer, name: str, args: Sequence[Value]) -> Number:
    found = truth(w, args[0])
    return w.opposite(found) if name == "not_" else found


def _converted(w: Writer, name: str, args: Sequence[Value]) -> Number:
    kind: ScalarKind = "float" if name == "float" else "int"
    if len(args) != 1:
        raise NotOnDevice(name)
    return w.on_device(args[0], kind)


def _extreme(w: Writer, name: str, args: Sequence[Value]) -> Value:
    """As Python's: the first of those that are alike."""
    found = args[0]
    for one in args[1:]:
        if isinstance(one, Number) or isinstance(found, Number):
            better = _comparison(w, "lt" if name == "min" else "gt", (one, found))
            found = w.either_of(better, one, found)
        else:
            raise NotOnDevice(name)
    return found


def _selected(w: Writer, name: str, args: Sequence[Value]) -> Value:
    return w.either_of(truth(w, args[0]), args[1], args[2])


_RULES: dict[str, Callable[[Writer, str, Sequence[Value]], Value]] = {
    **dict.fromkeys(("add", "sub", "mul"), _arithmetic), **dict.fromkeys(("truediv", "floordiv", "mod"), _quotient),
    **dict.fromkeys(("neg", "pos", "abs"), _signed), **dict.fromkeys(("and_", "or_", "xor"), _bits),
    **dict.fromkeys(_MIRRORED, _comparison), **dict.fromkeys(("truth", "bool", "not_"), _truth),
    **dict.fromkeys(("int", "float", "index"), _converted), **dict.fromkeys(("min", "max"), _extreme),
    "select": _selected,
}  # fmt: skip

__all__ = ["DTYPES", "WHOLE", "WITH_TENSORS", "NotOnDevice", "Number", "Value", "Writer", "bound_of", "compute",
           "kind_of", "read", "truth", "with_tensor"]  # fmt: skip
