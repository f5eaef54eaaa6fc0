"""The index: how each operator becomes C. What is not here, Python runs for C (``calls``), or in its own place."""

from __future__ import annotations

from runtime.ir import Operator
from runtime.native import (
    activations,
    array,
    attention,
    branches,
    calls,
    factories,
    gather,
    grad,
    loops,
    losses,
    noise,
    padding,
    pointwise,
    products,
    reductions,
    rows,
    scalar,
    scatter,
    update,
    views,
)
from runtime.native.lowering import FAMILIES, OF_HALVES, RULES, Lowering, Rule
from runtime.native.values import Nothing


def _raise(low: Lowering, op: Operator) -> None:
    """Python raises it, at the user's line."""
    low.w.line("goto bail;")
    for out in op.outputs:
        low.give(out, Nothing())


def _assert(low: Lowering, op: Operator) -> None:
    """A flag that is false ends the attempt: Python raises what it says, at the user's line."""
    flag = branches.flag_of(low, op.args[0])
    low.w.bail(f"!({flag})")


RULES |= {
    "cond": branches.emit_cond,
    "switch": branches.emit_switch,
    "while_loop": loops.emit_while,
    "scan": loops.emit_scan,
    "update": update.emit,
    "write": update.write,
    "assert": _assert,
    "raise": _raise,
    "call": calls.emit,
}

FAMILIES |= {"scalar": scalar.emit, "array": array.emit, "grad": grad.emit}

OVERLOADS: dict[Rule, list[str]] = {
    pointwise.emit: [
        *(f"{name}.default" for name in (*pointwise.UNARY_NAMES, "maximum", "minimum", "logical_and", "logical_or",
                                         "logical_xor", "tanh_backward", "sigmoid_backward", "floor_divide")),
        "max.other", "min.other",
        *(f"{name}.{kind}" for name in (*pointwise.BINARY_NAMES,) for kind in ("Tensor", "Scalar")),
        "pow.Tensor_Scalar",
    ],
    pointwise.emit_where: ["where.self", "where.ScalarSelf", "where.ScalarOther", "where.Scalar"],
    pointwise.emit_masked_fill: ["masked_fill.Scalar"],
    pointwise.emit_clamp: ["clamp.default", "clamp_min.default", "clamp_max.default"],
    pointwise.emit_threshold_backward: ["threshold_backward.default"],
    pointwise.emit_to: ["to.dtype", "to.dtype_layout", "to.device", "to.other", "type_as.default", "_to_copy.default"],
    pointwise.emit_clone: ["clone.default", "lift_fresh_copy.default"],
    activations.emit: [f"{name}.default" for name in activations.NAMES],
    rows.emit_softmax: ["softmax.int", "log_softmax.int", "_softmax.default", "_log_softmax.default"],
    rows.emit_softmax_backward: ["_softmax_backward_data.default", "_log_softmax_backward_data.default"],
    rows.emit_layer_norm: ["layer_norm.default", "native_layer_norm.default"],
    rows.emit_layer_norm_backward: ["native_layer_norm_backward.default"],
    rows.emit_rms_norm: ["rms_norm.default"],
    gather.emit_index: ["index.Tensor"],
    gather.emit_embedding: ["embedding.default"],
    gather.emit_index_put: ["index_put.default"],
    gather.emit_embedding_backward: ["embedding_dense_backward.default"],
    gather.emit_argmax: ["argmax.default"],
    losses.emit_nll: ["nll_loss_forward.default"],
    losses.emit_nll_backward: ["nll_loss_backward.default"],
    losses.emit_cross_entropy: ["cross_entropy_loss.default"],
    views.emit_select: ["select.int"],
    views.emit_slice: ["slice.Tensor"],
    views.emit_split: ["split.Tensor", "unsafe_split.Tensor", "chunk.default", "split.sizes",
                       "split_with_sizes.default"],
    views.emit_transpose: ["t.default", "transpose.int", "permute.default", "numpy_T.default", "mT.default",
                          "swapaxes.default", "swapdims.default"],
    views.emit_unsqueeze: ["unsqueeze.default"],
    views.emit_squeeze: ["squeeze.dim"],
    views.emit_expand: ["expand.default"],
    views.emit_view: ["view.default", "_unsafe_view.default", "reshape.default"],
    views.emit_flatten: ["flatten.using_ints"],
    noise.emit_dropout: ["dropout.default"],
    views.emit_alias: ["detach.default", "alias.default"],
    views.emit_contiguous: ["contiguous.default"],
    views.emit_unbind: ["unbind.int"],
    factories.emit: [f"{name}.default" for name in ("zeros", "ones", "full", "scalar_tensor", "zeros_like",
                     "ones_like", "full_like", "new_zeros", "new_ones", "new_full", "empty_like")],
    factories.emit_arange: ["arange.default", "arange.start", "arange.start_step"],
    attention.emit: ["scaled_dot_product_attention.default"],
    reductions.emit: ["sum.default", "sum.dim_IntList", "mean.default", "mean.dim", "max.default", "min.default",
                      "amax.default", "amin.default", "any.default", "all.default", "linalg_vector_norm.default"],
    scatter.emit_select: ["select_backward.default"],
    scatter.emit_slice: ["slice_backward.default"],
    products.emit_mm: ["mm.default"],
    products.emit_matmul: ["matmul.default"],
    products.emit_addmm: ["addmm.default"],
    products.emit_linear: ["linear.default"],
    products.emit_bmm: ["bmm.default"],
    products.emit_baddbmm: ["baddbmm.default"],
    array.emit_stack: ["stack.default"],
    array.emit_cat: ["cat.default"],
    padding.emit: ["pad.default", "constant_pad_nd.default"],
    padding.emit_repeat: ["repeat_interleave.self_int"],
}  # fmt: skip

RULES |= {f"aten.{name}": rule for rule, names in OVERLOADS.items() for name in names}

_WHOLE = {"remainder", "floor_divide", "pow", "erf", *pointwise.BITWISE, "bitwise_not"}
_MOVE = (pointwise.emit_where, pointwise.emit_masked_fill, pointwise.emit_to, pointwise.emit_clone, views.emit_select,
         views.emit_slice, views.emit_split, views.emit_transpose, views.emit_unsqueeze, views.emit_squeeze,
         views.emit_expand, views.emit_view, views.emit_flatten, views.emit_alias,
         views.emit_contiguous, array.emit_stack, array.emit_cat, noise.emit_dropout, padding.emit,
         padding.emit_repeat)  # fmt: skip
OF_HALVES |= {f"aten.{name}" for rule in _MOVE for name in OVERLOADS[rule]}
OF_HALVES |= {f"aten.{name}" for name in OVERLOADS[pointwise.emit] if name.split(".")[0] not in _WHOLE}
