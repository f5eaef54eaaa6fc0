"""Operators that PyTorch's converters do not have, taken apart into operators that they have.

    %y = aten.trace.default(%x)    ->    %d = aten.diagonal.default(%x);  %y = aten.sum.default(%d)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from runtime.export.onnx.translator import Translator, shape_of, told
from runtime.export.onnx.writer import Refused
from runtime.ir import Operator, TensorType, Variable

Parts = Callable[..., Any]
"""Calls an ATen operator: ``aten("mm.default", a, b)`` is its result."""

Composite = Callable[[Parts, Operator, Mapping[str, Any]], Any]


def parts(t: Translator, op: Operator, emit: Callable[[Translator, Operator], None]) -> Parts:
    """Operators in place of one, written by ``emit``; their types are told by torch's shape rules."""

    def call(name: str, *args: Any, **kwargs: Any) -> Any:
        name = f"aten.{name}"
        out = Variable("", TensorType(None, None))
        one = Operator(name, args, kwargs, (out,), location=op.location)
        types = told(one)
        if len(types) != 1 or not isinstance(types[0], TensorType):
            raise Refused("its parts have sizes that only the run knows")
        out.type = types[0]
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


def _heads(aten: Parts, a: Mapping[str, Any], value: Any) -> Any:
    """Attention of a tensor to itself, as PyTorch's quick path for inference has it: one weight for all three."""
    if a.get("mask") is not None:
        raise Refused("a mask in PyTorch's quick path for inference")
    if len(_sizes(value)) != 3:
        raise Refused("attention of other than three dimensions")
    heads, width = a["num_heads"], a["embed_dim"]
    joined = aten("linear.default", value, a["qkv_weight"], a["qkv_bias"])

    def part(place: int) -> Any:
        own = aten("slice.Tensor", joined, -1, place * width, (place + 1) * width)
        return aten("transpose.int", aten("unflatten.int", own, -1, [heads, width // heads]), 1, 2)

    query, key, values = map(part, range(3))
    scores = aten("matmul.default", query, aten("transpose.int", key, -1, -2))
    scores = aten("mul.Tensor", scores, (width // heads) ** -0.5)
    mixed = aten("matmul.default", aten("softmax.int", scores, -1), values)
    rows = aten("flatten.using_ints", aten("transpose.int", mixed, 1, 2), 2, 3)
    return aten("linear.default", rows, a["proj_weight"], a["proj_bias"])


def _encoder_layer(aten: Parts, op: Operator, a: Mapping[str, Any]) -> Any:
    """``nn.TransformerEncoderLayer`` in PyTorch's quick path for inference."""
    def normal(value: Any, which: int) -> Any:
        return aten("layer_norm.default", value, [a["embed_dim"]], a[f"norm_weight_{which}"], a[f"norm_bias_{which}"],
                    a["eps"])  # fmt: skip

    def fed(value: Any) -> Any:
        inner = aten("linear.default", value, a["ffn_weight_1"], a["ffn_bias_1"])
        inner = aten("gelu.default" if a["use_gelu"] else "relu.default", inner)
        return aten("linear.default", inner, a["ffn_weight_2"], a["ffn_bias_2"])

    value = a["src"]
    if a["norm_first"]:
        value = aten("add.Tensor", value, _heads(aten, a, normal(value, 1)))
        return aten("add.Tensor", value, fed(normal(value, 2)))
    value = normal(aten("add.Tensor", value, _heads(aten, a, value)), 1)
    return normal(aten("add.Tensor", value, fed(value)), 2)


def _square(aten: Parts, op: Operator, a: Mapping[str, Any]) -> Any:
    return aten("mul.Tensor", a["self"], a["self"])


def _sizes(var: Any) -> Any:
    shape = shape_of(var.type)
    if shape is None:
        raise Refused("an argument whose number of dimensions only the run knows")
    return shape


def _variance(aten: Parts, op: Operator, a: Mapping[str, Any]) -> Any:
    """``var`` and ``std``, over some dimensions or all: squares of what is left of the mean."""
    shape = _sizes(a["self"])
    dims = a.get("dim")
    dims = list(range(len(shape))) if not dims else list(dims)
    if not all(isinstance(shape[dim], int) for dim in dims):
        raise Refused("the variance over a size that only the run knows")
    count = 1
    for dim in dims:
        count *= int(shape[dim])
    correction = a["correction"] if a.get("correction") is not None else int(a.get("unbiased", True))
    left = aten("sub.Tensor", a["self"], aten("mean.dim", a["self"], dims, True))
    total = aten("sum.dim_IntList", aten("mul.Tensor", left, left), dims, a.get("keepdim", False))
    made = aten("div.Tensor", total, max(count - correction, 0) or float("nan"))
    return aten("sqrt.default", made) if op.name.startswith("aten.std.") else made


def _norm(aten: Parts, op: Operator, a: Mapping[str, Any]) -> Any:
    if a.get("p", 2) not in (2, 2.0, None) or a.get("dtype") is not None:
        raise Refused("a norm other than the second")
    squares = aten("mul.Tensor", a["self"], a["self"])
    dims = a.get("dim")
    total = aten("sum.dim_IntList", squares, list(dims), a.get("keepdim", False)) if dims else (
        aten("sum.default", squares))  # fmt: skip
    return aten("sqrt.default", total)


def _outer(aten: Parts, op: Operator, a: Mapping[str, Any]) -> Any:
    return aten("mul.Tensor", aten("unsqueeze.default", a["self"], 1), aten("unsqueeze.default", a["vec2"], 0))


def _pooled(aten: Parts, op: Operator, a: Mapping[str, Any]) -> Any:
    """Adaptive pools to one place."""
    size = a["output_size"]
    if any(one != 1 for one in size):
        raise Refused("an adaptive pool to more than one place")
    return aten("mean.dim", a["self"], list(range(-len(size), 0)), True)


def _hypot(aten: Parts, op: Operator, a: Mapping[str, Any]) -> Any:
    both = [aten("mul.Tensor", a[name], a[name]) for name in ("self", "other")]
    return aten("sqrt.default", aten("add.Tensor", *both))


def _rms_norm(aten: Parts, op: Operator, a: Mapping[str, Any]) -> Any:
    dims = list(range(-len(a["normalized_shape"]), 0))
    eps = a.get("eps")
    value = a["input"]
    if eps is None:
        eps = torch.finfo(value.type.dtype).eps
    mean = aten("mean.dim", aten("mul.Tensor", value, value), dims, True)
    made = aten("mul.Tensor", value, aten("rsqrt.default", aten("add.Tensor", mean, eps)))
    return made if a.get("weight") is None else aten("mul.Tensor", made, a["weight"])


def _moved(aten: Parts, op: Operator, a: Mapping[str, Any]) -> Any:
    rank = len(_sizes(a["self"]))
    sources = [a["source"]] if isinstance(a["source"], int) else a["source"]
    targets = [a["destination"]] if isinstance(a["destination"], int) else a["destination"]
    where = {target % rank: source % rank for source, target in zip(sources, targets)}
    rest = iter([dim for dim in range(rank) if dim not in where.values()])
    return aten("permute.default", a["self"], [where[dim] if dim in where else next(rest) for dim in range(rank)])


def _turned(aten: Parts, op: Operator, a: Mapping[str, Any]) -> Any:
    return aten("permute.default", a["self"], list(range(len(_sizes(a["self"])) - 1, -1, -1)))


def _one_hot(aten: Parts, op: Operator, a: Mapping[str, Any]) -> Any:
    if not isinstance(a["num_classes"], int) or a["num_classes"] < 1:
        raise Refused("one_hot without the number of classes")
    classes = aten("arange.default", a["num_classes"])
    return aten("to.dtype", aten("eq.Tensor", aten("unsqueeze.default", a["self"], -1), classes), torch.int64)


def _all_true(aten: Parts, op: Operator, a: Mapping[str, Any]) -> Any:
    return aten("all.default", a["self"])


def _count_nonzero(aten: Parts, op: Operator, a: Mapping[str, Any]) -> Any:
    flags = aten("ne.Scalar", a["self"], 0)
    dims = a.get("dim")
    if dims is None or dims == []:
        return aten("sum.default", flags)
    return aten("sum.dim_IntList", flags, [dims] if isinstance(dims, int) else list(dims))


def _transposed_convolution(aten: Parts, op: Operator, a: Mapping[str, Any]) -> Any:
    count = len(_sizes(a["weight"])) - 2

    def each(name: str) -> list[int]:
        given = list(a[name])
        return given * count if len(given) == 1 else given

    return aten("convolution.default", a["input"], a["weight"], a.get("bias"), each("stride"), each("padding"),
                each("dilation"), True, each("output_padding"), a["groups"])  # fmt: skip


def _l1(aten: Parts, op: Operator, a: Mapping[str, Any]) -> Any:
    made = aten("abs.default", aten("sub.Tensor", a["self"], a["target"]))
    return made if a["reduction"] == 0 else aten("mean.default" if a["reduction"] == 1 else "sum.default", made)


def _taken(aten: Parts, op: Operator, a: Mapping[str, Any]) -> Any:
    if a.get("dim") is None:
        flat = aten("reshape.default", a["self"], [-1])
        return aten("gather.default", flat, 0, aten("reshape.default", a["indices"], [-1]))
    sizes, others = list(_sizes(a["self"])), list(_sizes(a["indices"]))
    dim = a["dim"] % len(sizes)
    if [one for place, one in enumerate(sizes) if place != dim] != [one for place, one in enumerate(others)
                                                                      if place != dim]:  # fmt: skip
        raise Refused("indices that are broadcast")
    return aten("gather.default", a["self"], dim, a["indices"])


def _side_by_side(aten: Parts, op: Operator, a: Mapping[str, Any]) -> Any:
    """``hstack`` and ``vstack``."""
    tensors = list(a["tensors"])
    ranks = [len(_sizes(one)) for one in tensors]
    if op.name.startswith("aten.hstack."):
        tensors = [aten("reshape.default", one, [1]) if not rank else one for one, rank in zip(tensors, ranks)]
        return aten("cat.default", tensors, 0 if ranks[0] <= 1 else 1)
    return aten("cat.default", [one if rank > 1 else aten("reshape.default", one, [1, -1])
                                for one, rank in zip(tensors, ranks)], 0)  # fmt: skip


def _eye(aten: Parts, op: Operator, a: Mapping[str, Any]) -> Any:
    if not isinstance(a["n"], int) or not isinstance(a.get("m", a["n"]), int):
        raise Refused("a size that only the run knows")
    rows = aten("unsqueeze.default", aten("arange.default", a["n"]), 1)
    flags = aten("eq.Tensor", rows, aten("arange.default", a.get("m", a["n"])))
    return aten("to.dtype", flags, op.outputs[0].type.dtype)  # type: ignore[union-attr]  # it gives a tensor


RENAMED: dict[str, str] = {
    "__and__": "bitwise_and", "__or__": "bitwise_or", "__xor__": "bitwise_xor", "absolute": "abs", "negative": "neg",
    "multiply": "mul", "subtract": "sub", "divide": "div", "true_divide": "div", "greater": "gt", "less": "lt",
    "greater_equal": "ge", "less_equal": "le", "not_equal": "ne", "clip": "clamp", "concat": "cat",
    "concatenate": "cat", "arccos": "acos", "arcsin": "asin", "arctan": "atan", "arctan2": "atan2", "fix": "trunc",
    "special_expit": "sigmoid", "swapaxes": "transpose.int", "swapdims": "transpose.int", "special_erf": "erf",
    "special_exp2": "exp2", "special_log1p": "log1p", "special_softmax": "softmax",
}  # fmt: skip
"""Other names of operators: the arguments are the same."""


def _filled(aten: Parts, op: Operator, a: Mapping[str, Any]) -> Any:
    """``index_fill``, as newer versions of PyTorch record ``x[:, index] = 3``."""
    kind, dim, value = a["self"].type, a["dim"], a["value"]
    if dim < 0:
        shape = shape_of(kind)
        if shape is None:
            raise Refused("a dimension counted from the end, where only the run knows how many there are")
        dim += len(shape)
    if not isinstance(value, Variable) or not isinstance(value.type, TensorType):
        value = aten("full.default", [], value, dtype=kind.dtype)
    return aten("index_put.default", a["self"], [*[None] * dim, a["index"]], value)


def _added(aten: Parts, op: Operator, a: Mapping[str, Any]) -> Any:
    """``index_add``: rows are added at places, at one several times, too."""
    dim, alpha = a["dim"] % max(len(_sizes(a["self"])), 1), a.get("alpha", 1)
    source = a["source"] if alpha == 1 else aten("mul.Tensor", a["source"], alpha)
    return aten("index_put.default", a["self"], [*[None] * dim, a["index"]], source, True)


COMPOSITES: dict[str, Composite] = {
    "aten.square": _square, "aten.var": _variance, "aten.std": _variance, "aten.norm": _norm, "aten.outer": _outer,
    "aten.adaptive_avg_pool1d": _pooled, "aten.adaptive_avg_pool2d": _pooled, "aten.adaptive_avg_pool3d": _pooled,
    "aten.hypot": _hypot, "aten.rms_norm": _rms_norm, "aten.movedim": _moved, "aten.moveaxis": _moved,
    "aten.numpy_T": _turned, "aten.one_hot": _one_hot, "aten._is_all_true": _all_true,
    "aten.count_nonzero": _count_nonzero, "aten.conv_transpose1d": _transposed_convolution,
    "aten.conv_transpose2d": _transposed_convolution, "aten.conv_transpose3d": _transposed_convolution,
    "aten.hstack": _side_by_side, "aten.vstack": _side_by_side, "aten.eye": _eye,
    "aten.index_add": _added, "aten.index_fill": _filled, "aten.l1_loss": _l1, "aten.take_along_dim": _taken,
    "aten.gru_cell": _gru_cell, "aten.lstm_cell": _lstm_cell, "aten.rnn_tanh_cell": _rnn_cell("tanh.default"),
    "aten._transformer_encoder_layer_fwd": _encoder_layer, "aten.rnn_relu_cell": _rnn_cell("relu.default"),
    "aten.batch_norm": _batch_norm, "aten.trace": _trace,
}  # fmt: skip
"""By the operator's name."""

INSTEAD: dict[str, Composite] = {"aten.scaled_dot_product_attention": _attention}
"""What is tried where PyTorch's converter does not take the arguments."""

__all__ = ["COMPOSITES", "INSTEAD", "RENAMED", "Composite", "parts"]
