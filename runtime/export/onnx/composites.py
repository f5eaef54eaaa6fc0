"""Operators that PyTorch's converters do not have, taken apart into operators that they have.

    %y = aten.trace.default(%x)    ->    %d = aten.diagonal.default(%x);  %y = aten.sum.default(%d)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from runtime.export.onnx.translator import Translator, shape_of
from runtime.export.onnx.writer import Refused
from runtime.ir import Operator, TensorType, Variable
from runtime.ir.definition import definition_of

Parts = Callable[..., Any]
"""Calls an ATen operator: ``aten("mm.default", a, b)`` is its result."""

Composite = Callable[[Parts, Operator, Mapping[str, Any]], Any]


def parts(t: Translator, op: Operator, emit: Callable[[Translator, Operator], None]) -> Parts:
    """Operators in place of one, written by ``emit``; their types are told by torch's shape rules."""

    def call(name: str, *args: Any, **kwargs: Any) -> Any:
        name = f"aten.{name}"
        out = Variable("", TensorType(None, None))
        one = Operator(name, args, kwargs, (out,), location=op.location)
        told = definition_of(name).infer(one)
        if len(told) != 1 or not isinstance(told[0], TensorType):
            raise Refused("its parts have sizes that only the run knows")
        out.type = told[0]
        emit(t, one)
        return out

    return call


def _gates(aten: Parts, a: Mapping[str, Any]) -> tuple[Any, Any]:
    return (aten("linear.default", a["input"], a["w_ih"], a.get("b_ih")),
            aten("linear.default", a["hx"], a["w_hh"], a.get("b_hh")))  # fmt: skip


def _third(aten: Parts, gates: Any, weight: Any, place: int, count: int) -> Any:
    shape = shape_of(weight.type)
    if shape is None or not isinstance(shape[0], int):
        raise Refused("weights whose sizes only the run knows")
    size = shape[0] // count
    return aten("slice.Tensor", gates, -1, place * size, (place + 1) * size)


def _gru_cell(aten: Parts, op: Operator, a: Mapping[str, Any]) -> Any:
    ours, theirs = _gates(aten, a)
    r, z, n = (_third(aten, ours, a["w_ih"], place, 3) for place in range(3))
    hr, hz, hn = (_third(aten, theirs, a["w_ih"], place, 3) for place in range(3))
    reset = aten("sigmoid.default", aten("add.Tensor", hr, r))
    update = aten("sigmoid.default", aten("add.Tensor", hz, z))
    new = aten("tanh.default", aten("add.Tensor", n, aten("mul.Tensor", hn, reset)))
    return aten("add.Tensor", aten("mul.Tensor", aten("sub.Tensor", a["hx"], new), update), new)


def _lstm_cell(aten: Parts, op: Operator, a: Mapping[str, Any]) -> Any:
    hx, cx = a["hx"]
    ours, theirs = _gates(aten, {**a, "hx": hx})
    gates = aten("add.Tensor", ours, theirs)
    i, f, g, o = (_third(aten, gates, a["w_ih"], place, 4) for place in range(4))
    kept = aten("mul.Tensor", aten("sigmoid.default", f), cx)
    cell = aten("add.Tensor", kept, aten("mul.Tensor", aten("sigmoid.default", i), aten("tanh.default", g)))
    return [aten("mul.Tensor", aten("sigmoid.default", o), aten("tanh.default", cell)), cell]


def _rnn_cell(activation: str) -> Composite:
    def rule(aten: Parts, op: Operator, a: Mapping[str, Any]) -> Any:
        return aten(activation, aten("add.Tensor", *_gates(aten, a)))

    return rule


def _batch_norm(aten: Parts, op: Operator, a: Mapping[str, Any]) -> Any:
    if a["training"]:
        raise Refused("batch normalisation of a module in training")
    shape = shape_of(a["input"].type)
    if shape is None:
        raise Refused("an argument whose number of dimensions only the run knows")
    after = [1] * (len(shape) - 2)

    def row(tensor: Any) -> Any:
        return aten("view.default", tensor, [-1, *after])

    spread = aten("rsqrt.default", aten("add.Tensor", a["running_var"], a["eps"]))
    weight = spread if a.get("weight") is None else aten("mul.Tensor", spread, a["weight"])
    made = aten("mul.Tensor", aten("sub.Tensor", a["input"], row(a["running_mean"])), row(weight))
    return made if a.get("bias") is None else aten("add.Tensor", made, row(a["bias"]))


def _trace(aten: Parts, op: Operator, a: Mapping[str, Any]) -> Any:
    return aten("sum.default", aten("diagonal.default", a["self"]))


def _attention(aten: Parts, op: Operator, a: Mapping[str, Any]) -> Any:
    """Attention of any number of dimensions, without the forms that converters have for four."""
    if a["dropout_p"] or a.get("enable_gqa"):
        raise Refused("attention with dropout, or with groups of queries")
    query, mask = a["query"], a.get("attn_mask")
    shape = shape_of(query.type)
    scale = a.get("scale")
    if scale is None:
        if shape is None or not isinstance(shape[-1], int):
            raise Refused("attention over a size that only the run knows")
        scale = shape[-1] ** -0.5
    scores = aten("mul.Tensor", aten("matmul.default", query, aten("transpose.int", a["key"], -1, -2)), scale)
    if a.get("is_causal"):
        sizes = shape_of(scores.type)
        if sizes is None or not all(isinstance(one, int) for one in sizes[-2:]):
            raise Refused("causal attention over sizes that only the run knows")
        mask = aten("tril.default", aten("ones.default", list(sizes[-2:]), dtype=torch.bool))
    if mask is not None:
        if isinstance(mask.type, TensorType) and mask.type.dtype is torch.bool:
            scores = aten("masked_fill.Scalar", scores, aten("logical_not.default", mask), float("-inf"))
        else:
            scores = aten("add.Tensor", scores, mask)
    return aten("matmul.default", aten("softmax.int", scores, -1), a["value"])


COMPOSITES: dict[str, Composite] = {
    "aten.gru_cell": _gru_cell, "aten.lstm_cell": _lstm_cell, "aten.rnn_tanh_cell": _rnn_cell("tanh.default"),
    "aten.rnn_relu_cell": _rnn_cell("relu.default"), "aten.batch_norm": _batch_norm, "aten.trace": _trace,
}  # fmt: skip
"""By the operator's name."""

INSTEAD: dict[str, Composite] = {"aten.scaled_dot_product_attention": _attention}
"""What is tried where PyTorch's converter does not take the arguments."""

__all__ = ["COMPOSITES", "INSTEAD", "parts"]
