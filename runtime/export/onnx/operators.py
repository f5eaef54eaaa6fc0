"""ATen's operators: PyTorch's converters write them, after what these take for granted was done.

    %y = aten.add.Tensor(%x : i64[3], 1.5)    ->    y = Add(Cast(x, FLOAT), 1.5)

PyTorch's exporter has tensors of one dtype by the time it calls a converter, and numbers that are constants. Here they
are cast first (``_promoted``), numbers of the run go to the overload that takes a tensor in their place, and lists that
the run makes are put together by nodes of our own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import torch

from runtime.export.onnx import division, extremes, quantised
from runtime.export.onnx.composites import COMPOSITES, INSTEAD, RENAMED, Composite, parts
from runtime.export.onnx.translator import Translator, shape_of, told
from runtime.export.onnx.writer import NUMBERS, Refused, Value, dtype_of, is_sequence, torch_dtype
from runtime.export.shared import Nothing
from runtime.ir import ArrayType, Operator, ScalarType, TensorType, Variable
from runtime.ops import aten
from runtime.torch_internals.onnx_converters import NoConversion

_CAST = frozenset(
    "aten.sum aten.prod aten.cumsum aten.cumprod aten.cat aten.stack aten.hstack aten.vstack aten.where".split()
)
"""Operators that are not elementwise, and still compute in the dtype of their result."""
_FLAGS = frozenset({"condition", "mask"})
"""Arguments of elementwise operators that are no operands."""

Own = Callable[[Translator, Operator, Mapping[str, Any]], Value]


def of_operator(t: Translator, op: Operator) -> None:
    """Any ATen Operator that writes nothing."""
    op = renamed(op)
    overload = aten.resolve(op.name)
    if aten.writes(overload, op.args, op.kwargs):
        raise Refused("a write outside of an update")
    if op.autocast is not None:
        raise Refused("autocast")
    if aten.is_random(overload, op.args, op.kwargs):
        raise Refused("random numbers: no runtime draws those of PyTorch")
    bound = aten.arguments(overload, op.args, op.kwargs)
    packet = op.name.rpartition(".")[0]
    own = OWN.get(op.name) or OWN.get(packet)
    if packet in COMPOSITES:
        made = _apart(t, op, COMPOSITES[packet], bound)
    elif own is not None:
        made = own(t, op, bound)
    else:
        try:
            made = _converted(t, op, overload, bound)
        except Refused:
            if packet not in INSTEAD:
                raise
            made = _apart(t, op, INSTEAD[packet], bound)
    _give(t, op, extremes.with_nan(t, op, bound, made) if op.name in extremes.NAMES else made)


def renamed(op: Operator) -> Operator:
    """An Operator under the name that rules and converters know."""
    _, name, kind = op.name.split(".") if op.name.count(".") == 2 else ("", "", "")
    other, _, own_kind = RENAMED.get(name, "").partition(".")
    kind = own_kind or kind
    if not other or not hasattr(getattr(torch.ops.aten, other), kind):
        return op
    return replace(op, name=f"aten.{other}.{kind}")


def _apart(t: Translator, op: Operator, composite: Composite, bound: Mapping[str, Any]) -> Any:
    made = composite(parts(t, op, of_operator), op, bound)
    return [t.value(one) for one in made] if isinstance(made, list) else t.value(made)


def _give(t: Translator, op: Operator, made: Any) -> None:
    w = t.w
    if isinstance(made, Nothing):
        t.give(op.outputs[0], made)
        return
    if len(op.outputs) == 1 and not isinstance(op.outputs[0].type, ArrayType) and not (
            isinstance(made, (list, tuple)) or is_sequence_of(made)):  # fmt: skip
        made = [made]
    elif len(op.outputs) == 1 and isinstance(op.outputs[0].type, ArrayType):
        type_ = op.outputs[0].type
        if isinstance(made, (list, tuple)):
            made = w.node("SequenceConstruct", *made, dtype=t.dtype(type_), sequence=True)
        _typed(made, t.w.value(t.dtype(type_), sequence=True))
        t.give(op.outputs[0], made)
        return
    elif not isinstance(made, (list, tuple)):
        made = [w.node("SequenceAt", made, w.constant(place, torch.int64), dtype=t.dtype(out.type),
                       shape=shape_of(out.type)) for place, out in enumerate(op.outputs)]  # fmt: skip
    for out, value in zip(op.outputs, made):
        dtype = t.dtype(out.type)
        if value.type is None:
            _typed(value, w.value(dtype, shape_of(out.type)))
        elif torch_dtype(value) is not dtype:
            value = w.cast(value, dtype)
        if value.shape is None:
            value.shape = w.value(dtype, shape_of(out.type)).shape
        t.give(out, value)


def is_sequence_of(made: Any) -> bool:
    """Whether a converter's result is a sequence, as far as its node tells."""
    if made.type is not None:
        return is_sequence(made)
    producer = made.producer()
    return producer is not None and producer.op_type in ("SplitToSequence", "SequenceConstruct", "SequenceMap")


def _typed(value: Value, like: Value) -> None:
    value.type, value.shape = like.type, like.shape


# --- calls of converters


def _converted(t: Translator, op: Operator, overload: Any, bound: Mapping[str, Any]) -> Any:
    overload, bound = _for_tensors(overload, bound)
    return call(t, overload, bound, _dtype_inside(t, op, overload, bound))


def call(t: Translator, overload: Any, bound: Mapping[str, Any], dtype: torch.dtype | None = None) -> Any:
    """An overload with arguments by name, operands cast to ``dtype`` where one is given. Errors raised: Refused."""
    found = t.w.converters.find(overload)
    if found is None:
        raise Refused("PyTorch has no ONNX form of it")
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for argument in overload._schema.arguments:
        if argument.name not in bound:
            continue
        cast = dtype if argument.name not in _FLAGS else None
        value = _given(t, bound[argument.name], str(argument.type), cast)
        if argument.name == "dtype" and value is None:
            value = -1
        if argument.kwarg_only:
            kwargs[argument.name] = value
        else:
            args.append(value)
    try:
        made = t.w.converters.call(found, args, kwargs)
    except NoConversion as error:
        raise Refused(f"PyTorch's ONNX form of it does not take these arguments: {error}") from None
    t.w.take(made)
    return made.results


def _given(t: Translator, value: Any, type_: str, dtype: torch.dtype | None) -> Any:
    """An argument as a converter takes it."""
    if isinstance(value, Variable):
        found = t.value(value)
        is_operand = "Tensor" in type_ or "Scalar" in type_ or "number" in type_.lower()
        if is_sequence(found):
            raise Refused("a list that the run makes, as an argument of this operator")
        return t.w.cast(found, dtype) if dtype is not None and is_operand else found
    if isinstance(value, (list, tuple)):
        return [_given(t, item, type_, dtype) for item in value]
    if isinstance(value, torch.dtype):
        return int(dtype_of(value))
    if isinstance(value, (torch.device, torch.layout, torch.memory_format)):
        return str(value)
    if isinstance(value, complex) or isinstance(value, slice):
        raise Refused(f"{value!r} as an argument")
    if type_ == "Tensor" and isinstance(value, (bool, int, float)) and dtype is not None:
        return t.w.constant(value, dtype)
    return value


def _for_tensors(overload: Any, bound: Mapping[str, Any]) -> tuple[Any, Mapping[str, Any]]:
    """The overload that takes a tensor where numbers of the run are given."""
    number = ("number", "optional[number", "float", "optional[float")
    staged = {one.name for one in overload._schema.arguments
              if isinstance(bound.get(one.name), Variable) and str(one.type).lower().startswith(number)}  # fmt: skip
    if not staged:
        return overload, bound
    names = {one.name for one in overload._schema.arguments}
    packet = overload.overloadpacket
    for name in packet.overloads():
        other = getattr(packet, name)
        arguments = {one.name: str(one.type) for one in other._schema.arguments}
        if any(one.is_out for one in other._schema.arguments) or not names >= set(arguments) >= staged:
            continue
        if all("Tensor" in arguments[one] for one in staged):
            return other, {key: value for key, value in bound.items() if key in arguments}
    raise Refused("a number of the run as an argument that has to be a constant")


def _dtype_inside(t: Translator, op: Operator, overload: Any, bound: Mapping[str, Any]) -> torch.dtype | None:
    """The dtype in which an elementwise operator computes; None if its operands are to stay as they are."""
    packet = op.name.rpartition(".")[0]
    if torch.Tag.pointwise not in overload.tags and packet not in _CAST:
        return None
    if len(op.outputs) > 1:
        return None
    (out,) = op.outputs or (None,)
    type_ = None if out is None else out.type
    if not isinstance(type_, TensorType):
        return None
    if type_.dtype is not torch.bool:
        return t.dtype(type_)
    operands = [bound[one.name] for one in overload._schema.arguments
                if one.name in ("self", "other", "input") and one.name in bound]  # fmt: skip
    if len(operands) != 2 or packet.startswith("aten.logical"):
        return None
    return torch.result_type(*(_sample(t, one) for one in operands))


_SAMPLES = {"int": 1, "float": 1.5, "bool": True}


def _sample(t: Translator, operand: Any) -> Any:
    """Something that torch promotes as it promotes an operand."""
    if not isinstance(operand, Variable):
        return operand
    if isinstance(operand.type, ScalarType):
        return _SAMPLES[t.kind(operand)]
    shape = shape_of(operand.type)
    if shape is None:
        raise Refused("an operand whose number of dimensions only the run knows")
    return torch.empty([1] * len(shape), dtype=t.dtype(operand.type), device="meta")


# --- operators with rules of our own


def functional(t: Translator, op: Operator, before: Value) -> Value:
    """What an in-place Operator writes, as a value; ``before``: what it writes to."""
    overload = aten.resolve(op.name)
    bound = aten.arguments(overload, op.args, op.kwargs)
    _, name, kind = op.name.split(".")
    if any(one.is_out for one in overload._schema.arguments):
        return _of_out(t, op, overload, bound)
    own = _IN_PLACE.get(name)
    if own is not None:
        return own(t, before, bound)
    packet = getattr(torch.ops.aten, name.removesuffix("_"), None)
    other = getattr(packet, kind, None)
    if other is None or not name.endswith("_"):
        raise Refused("an operator that writes, and has no form that does not")
    shape = None if before.shape is None else tuple(map(_dim, before.shape))
    target = Variable("", TensorType(torch_dtype(before), shape))
    first = overload._schema.arguments[0].name
    given = {**bound, first: target}
    t.give(target, before)
    args = [given[one.name] for one in other._schema.arguments if not one.kwarg_only and one.name in given]
    kwargs = {one.name: given[one.name] for one in other._schema.arguments if one.kwarg_only and one.name in given}
    made = Variable("", target.type)
    same = Operator(str(other), tuple(args), kwargs, (made,), location=op.location)
    (type_,) = told(same)
    if isinstance(type_, TensorType):
        made.type = TensorType(type_.dtype, shape)
    of_operator(t, same)
    return t.value(made)


def _dim(dim: Any) -> int | str:
    return dim if isinstance(dim, int) else str(dim)


def _of_out(t: Translator, op: Operator, overload: Any, bound: Mapping[str, Any]) -> Value:
    other = aten.without_out(overload)
    if other is None:
        raise Refused("an operator that writes to out=, and has no form that does not")
    args = [bound[one.name] for one in other._schema.arguments if not one.kwarg_only and one.name in bound]
    kwargs = {one.name: bound[one.name] for one in other._schema.arguments if one.kwarg_only and one.name in bound}
    made = Variable("", op.outputs[0].type)
    same = Operator(str(other), tuple(args), kwargs, (made,), location=op.location)
    (type_,) = told(same)
    made.type = type_ or made.type
    of_operator(t, same)
    return t.value(made)


def _expand_like(t: Translator, value: Value, like: Value) -> Value:
    return t.w.node("Expand", value, t.w.sizes(like), dtype=torch_dtype(value),
                    shape=None if like.shape is None else list(like.shape))  # fmt: skip


def _copy_(t: Translator, before: Value, bound: Mapping[str, Any]) -> Value:
    return _expand_like(t, t.value(bound["src"], torch_dtype(before)), before)


def _fill_(t: Translator, before: Value, bound: Mapping[str, Any]) -> Value:
    return _expand_like(t, t.value(bound["value"], torch_dtype(before)), before)


def _zero_(t: Translator, before: Value, bound: Mapping[str, Any]) -> Value:
    return _expand_like(t, t.w.constant(0, torch_dtype(before)), before)


_IN_PLACE: dict[str, Callable[[Translator, Value, Mapping[str, Any]], Value]] = {
    "copy_": _copy_, "fill_": _fill_, "zero_": _zero_,
}  # fmt: skip


def _same(t: Translator, op: Operator, bound: Mapping[str, Any]) -> Value:
    value = t.value(next(iter(bound.values())))
    return t.w.node("Identity", value, like=value)


def _to(t: Translator, op: Operator, bound: Mapping[str, Any]) -> Value:
    return t.w.cast(t.value(bound["self"]), t.dtype(op.outputs[0].type))


def _rsub(t: Translator, op: Operator, bound: Mapping[str, Any]) -> Value:
    dtype = t.dtype(op.outputs[0].type)
    alpha = t.value(bound["alpha"], dtype)
    subtracted = t.value(bound["self"], dtype)
    if bound["alpha"] != 1:
        subtracted = t.w.node("Mul", subtracted, alpha, like=subtracted)
    return t.w.node("Sub", t.value(bound["other"], dtype), subtracted, dtype=dtype, shape=shape_of(op.outputs[0].type))


def _scalar_tensor(t: Translator, op: Operator, bound: Mapping[str, Any]) -> Value:
    return t.value(bound["s"], t.dtype(op.outputs[0].type))


def _row(t: Translator, sizes: Any) -> Value:
    """Sizes as one row."""
    w = t.w
    if all(type(one) is int for one in sizes):
        return w.constant(list(sizes), torch.int64)
    parts = [w.flat(t.number(one, "int")) for one in sizes]
    return w.node("Concat", *parts, dtype=torch.int64, shape=[len(parts)], axis=0)


def _full(t: Translator, op: Operator, bound: Mapping[str, Any]) -> Value:
    """``full``, ``zeros``, ``ones``, ``empty`` and their ``new_`` and ``_like`` forms: ``empty`` is zeros."""
    w, type_ = t.w, op.outputs[0].type
    dtype = t.dtype(type_)
    name = op.name.split(".")[1]
    value = bound["fill_value"] if "fill_value" in bound else int("ones" in name)
    if shape_of(type_) == ():  # OpenVINO expands a number to no dimensions as one element
        return t.value(value, dtype)
    if "size" in bound:
        sizes = _row(t, bound["size"])
        if any(isinstance(one, Variable) for one in bound["size"]):
            least = w.node("ReduceMin", sizes, dtype=torch.int64, shape=[], keepdims=0)
            w.fail_if(w.test("Less", least, w.constant(0, torch.int64)), "RuntimeError: a size below 0")
    else:
        sizes = w.sizes(t.value(bound["self"]))
    return w.node("Expand", t.value(value, dtype), sizes, dtype=dtype, shape=shape_of(type_))


def _arange(t: Translator, op: Operator, bound: Mapping[str, Any]) -> Value:
    w, type_ = t.w, op.outputs[0].type
    dtype = t.dtype(type_)
    numbers = [bound.get("start", 0), bound["end"], bound.get("step", 1)]
    inside = torch.int64 if all(type(one) is int or (isinstance(one, Variable) and t.kind(one) == "int")
                                for one in numbers) else torch.float64  # fmt: skip
    if inside is not torch.int64 and not all(isinstance(one, (int, float)) for one in numbers):
        raise Refused("arange of floats that only the run knows")
    if inside is torch.float64:
        return w.cast(w.constant(torch.arange(*numbers, dtype=torch.float64).tolist(), torch.float64), dtype)
    made = w.node("Range", *(t.value(one, inside) for one in numbers), dtype=inside, shape=shape_of(type_))
    return w.cast(made, dtype)


def _put_together(new_axis: int) -> Own:
    def rule(t: Translator, op: Operator, bound: Mapping[str, Any]) -> Any:
        tensors = bound["tensors"]
        overload = aten.resolve(op.name)
        if not isinstance(tensors, Variable) or not is_sequence(t.value(tensors)):
            return _converted(t, op, overload, bound)
        out = op.outputs[0].type
        return t.w.node("ConcatFromSequence", t.value(tensors), dtype=t.dtype(out), shape=shape_of(out),
                        axis=bound.get("dim", 0), new_axis=new_axis)  # fmt: skip

    return rule


def _index(t: Translator, op: Operator, bound: Mapping[str, Any]) -> Any:
    """``x[mask]``: the places where the mask is true; other indices are PyTorch's."""
    w = t.w
    indices = bound["indices"]
    masks = [one for one in indices if isinstance(one, Variable) and isinstance(one.type, TensorType)
             and one.type.dtype in (torch.bool, torch.uint8)]  # fmt: skip
    if not masks:
        return _converted(t, op, aten.resolve(op.name), bound)
    if len(indices) > 1 or len(masks) > 1:
        raise Refused("a mask beside other indices")
    where = w.node("NonZero", t.value(masks[0], torch.bool), dtype=torch.int64, shape=["?", "?"])
    places = w.node("Transpose", where, dtype=torch.int64, shape=["?", "?"], perm=[1, 0])
    return w.node("GatherND", t.value(bound["self"]), places, dtype=t.dtype(op.outputs[0].type),
                  shape=shape_of(op.outputs[0].type))  # fmt: skip


def _places(t: Translator, op: Operator, bound: Mapping[str, Any]) -> list[Value]:
    """``torch.where(flags)``: the places of what is true, a row for each dimension."""
    w = t.w
    flags = t.value(bound.get("condition", bound.get("self")))
    if not len(flags.shape or ()):
        raise Refused("the places of what is true, in a tensor without dimensions or with ones that only the run knows")
    where = w.node("NonZero", flags, dtype=torch.int64, shape=["?", "?"])
    return [w.node("Gather", where, w.constant(place, torch.int64), dtype=torch.int64, shape=shape_of(out.type), axis=0)
            for place, out in enumerate(op.outputs)]  # fmt: skip


def _index_put(t: Translator, op: Operator, bound: Mapping[str, Any]) -> Any:
    indices = bound["indices"]
    mask = indices[0] if len(indices) == 1 else None
    values = bound["values"]
    is_mask = isinstance(mask, Variable) and isinstance(mask.type, TensorType) and mask.type.dtype is torch.bool
    if not is_mask or bound.get("accumulate"):
        return _converted(t, op, aten.resolve(op.name), bound)
    shape = shape_of(values.type) if isinstance(values, Variable) else ()
    assert isinstance(mask, Variable)
    whole, flags = shape_of(op.outputs[0].type), shape_of(mask.type)
    if shape is None or len(shape) or whole is None or flags is None:
        return _converted(t, op, aten.resolve(op.name), bound)
    w, before = t.w, t.value(bound["self"])
    flag = t.value(mask)
    for _ in range(len(whole) - len(flags)):
        flag = w.node("Unsqueeze", flag, w.ints(-1), dtype=torch.bool)
    return w.node("Where", flag, t.value(values, torch_dtype(before)), before, like=before)


def _dtype_of(t: Translator, op: Operator, bound: Mapping[str, Any]) -> Any:
    return Nothing("a dtype as a value of the run")


def _broadcast(t: Translator, op: Operator, bound: Mapping[str, Any]) -> Any:
    """``broadcast_tensors``: each to the sizes that their sum has."""
    w = t.w
    zeros = [w.cast(w.node("Identity", t.value(one), like=t.value(one)), torch.float32) for one in bound["tensors"]]
    whole = zeros[0]
    for one in zeros[1:]:
        whole = w.node("Add", whole, one, dtype=torch.float32)
    sizes = w.sizes(whole)
    return [w.node("Expand", t.value(one), sizes, dtype=t.dtype(out.type), shape=shape_of(out.type))
            for one, out in zip(bound["tensors"], op.outputs)]  # fmt: skip


OWN: dict[str, Own] = {
    "aten.promote_types": _dtype_of, "aten.broadcast_tensors": _broadcast,
    **dict.fromkeys(
        ("aten.alias", "aten.detach", "aten.clone", "aten.contiguous", "aten.lift_fresh", "aten.lift_fresh_copy",
         "aten.positive", "aten.real"), _same),
    **dict.fromkeys(("aten.to", "aten._to_copy", "aten.type_as"), _to),
    "aten.rsub": _rsub, "aten.scalar_tensor": _scalar_tensor, "aten.arange": _arange, "aten.index.Tensor": _index,
    "aten.index_put": _index_put, "aten.where.default": _places, "aten.nonzero_numpy": _places,
    **dict.fromkeys(
        (f"aten.{stem}{form}" for stem in ("full", "zeros", "ones", "empty") for form in ("", "_like")), _full),
    **dict.fromkeys((f"aten.new_{stem}" for stem in ("full", "zeros", "ones", "empty")), _full),
    "aten.cat": _put_together(0), "aten.stack": _put_together(1), **division.RULES, **quantised.RULES,
    **dict.fromkeys(("aten.clamp", "aten.clamp_min", "aten.clamp_max"), extremes.clamped), "aten.sign": extremes.sign,
}  # fmt: skip
"""Rules by the operator's name, with or without its overload."""

__all__ = ["NUMBERS", "OWN", "call", "functional", "of_operator"]
