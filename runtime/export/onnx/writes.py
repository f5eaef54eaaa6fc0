"""``update`` without writing: in-place operators as functional ones, and their results put where the views are.

    %y = update(%x) { %r = aten.select.int(%b, 0, 2); aten.mul_.Tensor(%r, 3); yield %b }

becomes, whatever views there are between the base and what is written,

    r = select(x, 0, 2) * 3;    places = select(arange(x.numel()).view_as(x), 0, 2);    y = x with r at places
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from runtime.export.onnx.operators import functional, of_operator
from runtime.export.onnx.translator import Translator
from runtime.export.onnx.writer import Refused, Value, torch_dtype
from runtime.ir import Operator, TensorType, Variable
from runtime.ops import aten


def emit(t: Translator, op: Operator) -> None:
    """``update``."""
    (block,) = op.blocks
    bases = {arg: t.value(given) for arg, given in zip(block.args, op.args)}
    for arg, value in bases.items():
        t.give(arg, value)
    views: dict[Variable, tuple[Variable, list[Operator]]] = {arg: (arg, []) for arg in block.args}
    for inner in block.ops:
        overload = aten.resolve(inner.name) if inner.name.startswith("aten.") else None
        if overload is None:
            raise Refused(f"{inner.name} among writes", inner)
        if aten.writes(overload, inner.args, inner.kwargs):
            _write(t, inner, views, bases)
            continue
        t.operator(inner)
        source = next((one for one in inner.inputs if one in views), None)
        if source is not None and aten.may_alias(overload, inner.args, inner.kwargs):
            for out in inner.outputs:
                views[out] = (views[source][0], [*views[source][1], inner])
    for out, value in zip(op.outputs, block.yields):
        t.give(out, t.value(value))


def _write(t: Translator, op: Operator, views: dict[Variable, tuple[Variable, list[Operator]]],
           bases: dict[Variable, Value]) -> None:  # fmt: skip
    """One in-place Operator: what it gives goes into the base, and all views of that are taken again."""
    overload = aten.resolve(op.name)
    names = aten.writes(overload, op.args, op.kwargs)
    target = aten.arguments(overload, op.args, op.kwargs)[names[0]]
    if len(names) > 1 or not isinstance(target, Variable) or target not in views:
        raise Refused("an operator that writes several tensors", op)
    base, steps = views[target]
    place = _place(steps, views)
    others = [one for one in op.inputs if one in views and views[one][0] is base
              and _place(views[one][1], views) != place]  # fmt: skip
    if others:
        raise Refused("a write that reads other elements of what it writes: PyTorch refuses some of these", op)
    repeated = next((one for one in steps if one.name.rpartition(".")[0] in _REPEATING), None)
    if repeated is not None:
        raise Refused(f"a write through {repeated.name}, whose elements may be one memory", op)
    before = t.value(target)
    made = functional(t, op, before)
    if torch_dtype(made) is not torch_dtype(before):
        made = t.w.cast(made, torch_dtype(before))
    if steps:
        made = _put(t, base, bases[base], steps, target, made)
    bases[base] = made
    t.give(base, made)
    for above, chain in list(views.values()):
        if above is base and chain:
            t.operator(chain[-1])  # in order: a view of a view comes after it
    for out in op.outputs:
        t.give(out, t.value(target))
        views[out] = views[target]


def _place(steps: Sequence[Operator], views: Mapping[Variable, object]) -> list[object]:
    """Where views lead to, for comparison: their names and arguments, whatever they are taken of."""
    def told(operand: Any) -> Any:
        return None if isinstance(operand, Variable) and operand in views else operand

    return [(step.name, [told(one) for one in step.args], dict(step.kwargs)) for step in steps]


_REPEATING = frozenset(f"aten.{name}" for name in (
    "expand", "expand_as", "broadcast_to", "as_strided", "unfold"))  # fmt: skip
"""Views in which one element may stand at several places: PyTorch refuses most writes to those."""


def _put(t: Translator, base: Variable, whole: Value, steps: Sequence[Operator], target: Variable, made: Value,
         ) -> Value:  # fmt: skip
    """The base with a value where a view of it is: the same views of its places say where that is."""
    w = t.w
    size = w.node("Size", whole, dtype=torch.int64, shape=[])
    count = w.node("Range", w.constant(0, torch.int64), size, w.constant(1, torch.int64), dtype=torch.int64,
                   shape=["?"])  # fmt: skip
    sizes = w.sizes(whole)
    shape = None if whole.shape is None else list(whole.shape)
    places: dict[Variable, Value] = {base: w.node("Reshape", count, sizes, dtype=torch.int64, shape=shape,
                                                  allowzero=1)}  # fmt: skip
    for step in steps:
        kept = {var: t.values[var] for var in (*step.inputs, *step.outputs)}
        types = {var: var.type for var in (*step.inputs, *step.outputs)}
        try:
            for var in step.inputs:
                if var in places:
                    t.give(var, places[var])
                    _as_places(var)
            for var in step.outputs:
                _as_places(var)
            of_operator(t, step)
            places.update({var: t.value(var) for var in step.outputs})
        finally:
            t.values.update(kept)
            for var, type_ in types.items():
                var.type = type_
    flat = w.ints(-1)
    where = w.node("Reshape", places[target], flat, dtype=torch.int64, shape=["?"])
    values = w.node("Reshape", _spread(t, made, places[target]), flat, dtype=torch_dtype(made), shape=["?"])
    row = w.node("Reshape", whole, flat, dtype=torch_dtype(whole), shape=["?"])
    put = w.node("ScatterElements", row, where, values, like=row, axis=0)
    return w.node("Reshape", put, sizes, like=whole, allowzero=1)


def _as_places(var: Variable) -> None:
    type_ = var.type
    assert isinstance(type_, TensorType)
    var.type = TensorType(torch.int64, type_.shape)


def _spread(t: Translator, made: Value, like: Value) -> Value:
    """A value with the sizes of what it is written to."""
    return t.w.node("Expand", made, t.w.sizes(like), dtype=torch_dtype(made),
                    shape=None if like.shape is None else list(like.shape))  # fmt: skip


__all__: list[Any] = ["emit"]
