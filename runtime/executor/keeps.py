"""What ATen operators keep for backward, and whether their results are new memory.

Facts that no schema tells. A missing row costs a copy, a wrong one a gradient: every row is held against PyTorch by
``tests/runtime/executor/test_keeps.py``.
"""

from __future__ import annotations

from runtime import torch_internals
from runtime.ir import Operator, Variable, leaves
from runtime.ops import aten, corrections

FRESH = frozenset(
    f"aten.{name}"
    for name in (
        "zeros", "ones", "empty", "full", "zeros_like", "ones_like", "empty_like", "full_like", "new_zeros",
        "new_ones", "new_empty", "new_full", "empty_strided", "new_empty_strided", "arange", "linspace", "logspace",
        "eye", "clone", "lift_fresh_copy", "scalar_tensor", "rand", "randn", "randint", "rand_like", "randn_like",
        "randint_like", "tril_indices", "triu_indices",
        "add", "sub", "rsub", "mul", "div", "neg", "mm", "bmm", "addmm", "baddbmm", "matmul", "linear", "cat", "stack",
        "sum", "mean", "conv1d", "conv2d", "conv3d", "layer_norm", "batch_norm", "group_norm", "embedding",
        "index_select", "gather", "where", "masked_fill", "cumsum", "roll", "flip",
    )
)  # fmt: skip
"""Operators whose result is new memory that their own backward does not need."""

_WHOLE = frozenset(
    f"aten.{name}"
    for name in (
        "linear", "matmul", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d",
        "layer_norm", "batch_norm", "group_norm", "instance_norm", "softmax", "log_softmax", "rand", "randn", "randint",
        "scaled_dot_product_attention", "cross_entropy_loss", "embedding_bag", "outer", "inner", "where",
    )
)  # fmt: skip
"""Composite operators whose results are known to be new memory; of any other it is not known."""

READS_SIZES_ONLY = frozenset(
    f"aten.{name}"
    for name in (
        "clone", "add", "sub", "rsub", "neg", "sum", "mean", "cat", "stack", "zeros_like", "ones_like", "empty_like",
        "full_like", "new_zeros", "new_ones", "new_empty", "new_full", "rand_like", "randn_like", "randint_like",
        "lift_fresh_copy", "eq", "ne", "lt", "le", "gt", "ge", "isnan", "isinf", "isfinite", "argmax", "argmin",
        "equal", "allclose", "is_nonzero", "cumsum", "roll", "flip",
    )
)  # fmt: skip
"""Operators that keep no operand for backward, only sizes and numbers."""

_WRITES_KEEPING_NOTHING = frozenset(f"aten.{name}_" for name in ("copy", "fill", "zero", "add", "sub", "neg"))

_WRITES_KEEPING_SOURCES = frozenset(
    f"aten.{name}_"
    for name in (
        "mul", "div", "index_put", "index_add", "index_copy", "index_fill", "scatter", "scatter_add", "masked_fill",
        "masked_scatter", "addmm", "addmv", "addr", "baddbmm", "lerp", "addcmul", "addcdiv", "random", "normal",
        "uniform", "bernoulli", "tril", "triu", "clamp", "clamp_min", "clamp_max", "logical_and", "logical_or",
        "logical_xor", "logical_not", "eq", "ne", "lt", "le", "gt", "ge", "sign", "floor", "ceil", "round", "trunc",
    )
)  # fmt: skip
"""Operators that write and do not keep what they wrote (``tanh_`` does, and ``batch_norm`` its statistics)."""


def packet_of(op: Operator) -> str:
    """``aten.add`` of ``aten.add.Tensor``."""
    return op.name.rpartition(".")[0]


def changes_storage(op: Operator) -> bool:
    """Whether an Operator gives its argument other memory."""
    return packet_of(op) in ("aten.set_", "aten.set")


def may_share(op: Operator) -> list[Variable]:
    """Operands whose memory the results may share."""
    overload = aten.resolve(op.name)
    if changes_storage(op):
        return op.inputs
    if torch_internals.is_composite(overload) and packet_of(op) not in _WHOLE and not aten.returns_alias(overload):
        return op.inputs
    call = aten.arguments(overload, op.args, op.kwargs)
    return [var for name in aten.may_alias(overload, op.args, op.kwargs) for var in leaves(call.get(name))]


def kept(op: Operator) -> list[Variable]:
    """Operands whose values backward may read, if the Operator runs with gradients."""
    overload = aten.resolve(op.name)
    packet = packet_of(op)
    if packet in READS_SIZES_ONLY or packet in _WRITES_KEEPING_NOTHING or packet in corrections.MAYBE_VIEWS:
        return []
    if aten.is_view(overload):
        return []
    if packet in _WRITES_KEEPING_SOURCES:
        call = aten.arguments(overload, op.args, op.kwargs)
        written = aten.writes(overload, op.args, op.kwargs)
        return [var for name, value in call.items() if name not in written for var in leaves(value)]
    return op.inputs
