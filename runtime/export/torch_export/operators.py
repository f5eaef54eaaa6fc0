"""ATen's Operators: the same overload, on tensors that PyTorch's exporter traces.

    %y = aten.mul.Tensor(%x, %n : int)      ->      aten.mul.Tensor(x, n.item())
    %b = update(%a) { aten.fill_(%a, 0) }   ->      b = a.clone(); b.fill_(0)
"""

from __future__ import annotations

from typing import Any

import torch

from runtime.export.shared import Nothing
from runtime.export.torch_export.translator import Translator, aten
from runtime.export.torch_export.values import SYMBOLS, Refused
from runtime.ir import ArrayType, Operator, TensorType, Variable
from runtime.ir.variable import UNDEF
from runtime.ops import aten as facts
from runtime.torch_internals.export_settings import require

_OF_SIZES = frozenset(
    "zeros ones empty full rand randn new_zeros new_ones new_empty new_full eye randint".split())  # fmt: skip
"""Operators that make a tensor of sizes that have to be at least 0."""


def emit(t: Translator, op: Operator) -> None:
    """Any ATen Operator that writes nothing."""
    overload = facts.resolve(op.name)
    if facts.writes(overload, op.args, op.kwargs):
        raise Refused("a write outside of an update")
    call(t, op)


def call(t: Translator, op: Operator) -> None:
    """The operator, on its operands."""
    overload = facts.resolve(op.name)
    args = [_given(t, one) for one in op.args]
    kwargs = {name: _given(t, one) for name, one in op.kwargs.items()}
    _require_sizes(op, facts.arguments(overload, args, kwargs))
    written_out = op.name.split(".")[1].startswith("fake_quantize_per_")  # PyTorch's exporter has no shape rule for it
    made = _rounded(facts.arguments(overload, args, kwargs)) if written_out else overload(*args, **kwargs)
    _give(t, op, overload, made)
    _check(t, op)


def _rounded(bound: dict[str, Any]) -> torch.Tensor:
    """What ``fake_quantize`` computes, step by step."""
    x, scale, zero = bound["self"], bound["scale"], bound["zero_point"]
    if "axis" in bound:
        sizes = [-1 if place == bound["axis"] % x.dim() else 1 for place in range(x.dim())]
        scale, zero = scale.view(sizes), zero.view(sizes)
    elif not isinstance(scale, torch.Tensor):
        scale = torch.full((), scale, dtype=x.dtype, device=x.device)
    places = (x * scale.reciprocal()).round() + zero
    return (places.clamp(bound["quant_min"], bound["quant_max"]) - zero) * scale


def _given(t: Translator, operand: Any) -> Any:
    """An operand as the operator takes it."""
    if isinstance(operand, Variable):
        found = t.argument(operand) if not isinstance(operand.type, TensorType) else t.value(operand)
        return [_item(one) for one in found] if isinstance(found, list) else found
    if type(operand) in (list, tuple):
        return [_given(t, one) for one in operand]
    if operand is UNDEF or isinstance(operand, Nothing):
        raise Refused("None as a value of the run")
    return operand


def _item(value: Any) -> Any:
    if isinstance(value, Nothing):
        raise Refused(value.reason)
    return value


def _require_sizes(op: Operator, bound: dict[str, Any]) -> None:
    if op.name.split(".")[1] not in _OF_SIZES:
        return
    for one in bound.get("size", ()):
        if isinstance(one, torch.SymInt):
            require(one >= 0, "a size below 0")


def _give(t: Translator, op: Operator, overload: Any, made: Any) -> None:
    returns = overload._schema.returns
    if len(returns) == 1:
        is_list = str(returns[0].type).startswith("List[")
        whole = len(op.outputs) == 1 and not isinstance(op.outputs[0].type, TensorType)
        if is_list and not whole:
            if op.outputs and len(made) != len(op.outputs):
                raise Refused("a number of results that only the run knows")
            results = list(made)
        else:
            results = [list(made) if is_list else made]
    else:
        several = any(isinstance(out.type, ArrayType) for out in op.outputs)
        results = [list(one) if isinstance(one, (list, tuple)) else one for one in made or ()]
        if not several and len(results) != len(op.outputs):
            results = [item for one in results for item in (one if isinstance(one, list) else [one])]
    for out, value in zip(op.outputs, results):
        known = isinstance(value, (torch.Tensor, list, bool, int, float, *SYMBOLS))
        t.give(out, value if known else Nothing(f"{type(value).__name__} as a value of the run"))


def _check(t: Translator, op: Operator) -> None:
    """What was taken for fixed when the Program was made has to be what the exporter finds."""
    for out, check in zip(op.outputs, op.attrs.get(facts.CHECKED, ())):
        if check is None:
            continue
        dtype, sizes, _ = check
        value = t.tensor(out)
        same = value.dtype == dtype and value.dim() == len(sizes)
        if not same or any(size is not None and size != real for size, real in zip(sizes, value.shape)):
            raise Refused("results whose dtype and sizes PyTorch's rules do not tell")


def emit_update(t: Translator, op: Operator) -> None:
    """``update``: the writes, on copies."""
    (block,) = op.blocks
    for arg, given in zip(block.args, op.args):
        t.give(arg, aten.clone.default(t.tensor(given)))
    for inner in block.ops:
        t.shared.last = inner
        try:
            if inner.name.startswith("aten."):
                call(t, inner)
            else:
                t.operator(inner)
        except Refused as error:
            error.op = error.op or inner
            raise
    for out, value in zip(op.outputs, block.yields):
        t.give(out, t.value(value))


__all__ = ["call", "emit", "emit_update"]
