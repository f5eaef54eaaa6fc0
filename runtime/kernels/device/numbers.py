"""Operators of Python's numbers as PyTorch's operators on tensors without dimensions.

    %n : int = scalar.add(%i, 1)    ->    %3 : i64[] = aten.add.Tensor(%i, 1)

A rule gives exactly what Python gives, has ``Writer.fail`` set where it does not, or raises NotOnDevice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from runtime.ir import Operator, TensorType, Variable
from runtime.ir.types import ScalarKind, said
from runtime.kernels.device.writer import DTYPES, WHOLE, NotOnDevice, Number, Value, Writer, bound_of, kind_of

HALF = 1 << 31
"""Ints that are smaller have a product that is smaller than ``WHOLE``."""
EXACT = 1 << 53
"""Ints that are smaller are floats, too."""
_MIRRORED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}
_READABLE = (torch.float16, torch.bfloat16, torch.float32)
_WHOLE = (torch.int8, torch.int16, torch.int32, torch.uint8)


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
        raise NotOnDevice("the truth of what is no number of the device's")
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

__all__ = ["WITH_TENSORS", "compute", "read", "truth", "with_tensor"]
