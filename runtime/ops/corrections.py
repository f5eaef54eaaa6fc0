"""Where operator schemas lie: memory written or shared, and random numbers drawn, unannounced.

Each row is held against real tensors by ``tests/runtime/ops/test_corrections.py``. Keys are ``namespace.name``, for all
overloads; ``when`` says from a call's arguments whether the row applies (an argument that is not known counts as yes).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Call = Mapping[str, Any]
When = Callable[[Call], bool]


def always(call: Call) -> bool:
    """Whatever the arguments."""
    return True


def unless(name: str, value: object) -> When:
    """Unless the argument is known to be this value (a bool or number)."""

    def when(call: Call) -> bool:
        return not (type(call.get(name)) in (bool, int, float) and call[name] == value)

    return when


def _drops(call: Call) -> bool:
    return unless("train", False)(call) and unless("p", 0)(call)


def _known(call: Call, name: str) -> bool:
    return type(call.get(name)) in (bool, int, float)


def _keeps(call: Call) -> bool:
    """A dropout returns its input itself if it does not train or p is 0 (or it is empty: no memory to share)."""
    return not (call.get("train") is True and _known(call, "p") and call["p"] != 0)


def _surely_keeps(call: Call) -> bool:
    return call.get("train") is False or (_known(call, "p") and call["p"] == 0)


def _recurrent_drops(call: Call) -> bool:
    return unless("train", False)(call) and unless("dropout", 0)(call) and unless("num_layers", 1)(call)


def _native_drops(call: Call) -> bool:
    return unless("train", False)(call)


@dataclass(frozen=True)
class Hidden:
    """Arguments that are written or shared, and when."""

    names: tuple[str, ...]
    when: When = always


_RUNNING = ("running_mean", "running_var")

WRITES: dict[str, Hidden] = {
    "aten.batch_norm": Hidden(_RUNNING, unless("training", False)),
    "aten.instance_norm": Hidden(_RUNNING, unless("use_input_stats", False)),
    "aten._batch_norm_impl_index": Hidden(_RUNNING, unless("training", False)),
    "aten.native_batch_norm": Hidden(_RUNNING, unless("training", False)),
    "aten.cudnn_batch_norm": Hidden(_RUNNING, unless("training", False)),
    "aten.miopen_batch_norm": Hidden(_RUNNING, unless("training", False)),
    "aten.batch_norm_update_stats": Hidden(_RUNNING),
    "aten.batch_norm_gather_stats": Hidden(_RUNNING),
    "aten.batch_norm_gather_stats_with_counts": Hidden(_RUNNING),
}
"""Arguments written although the schema announces no write."""

_SELF = Hidden(("self",))
_LIST = Hidden(("tensors",))

ALIASES: dict[str, Hidden] = {
    "aten.dropout": Hidden(("input",), _keeps),
    "aten.feature_dropout": Hidden(("input",), _keeps),
    "aten.alpha_dropout": Hidden(("input",), _keeps),
    "aten.feature_alpha_dropout": Hidden(("input",), _keeps),
    "aten.sparse_coo_tensor": Hidden(("indices", "values")),  # it holds what it is made of
    "aten.to_dense": _SELF,
    "aten.type_as": _SELF,
    "aten.sum_to_size": _SELF,
    "aten.conj_physical": _SELF,
    "aten.dequantize": Hidden(("self", "tensors")),
    "aten.data": _SELF,
    "aten.lift": _SELF,
    "aten._unsafe_view": _SELF,
    "aten.unsafe_chunk": _SELF,
    "aten.unsafe_split": _SELF,
    "aten.unsafe_split_with_sizes": _SELF,
    "aten.atleast_1d": Hidden(("self", "tensors")),
    "aten.atleast_2d": Hidden(("self", "tensors")),
    "aten.atleast_3d": Hidden(("self", "tensors")),
    "aten.broadcast_tensors": _LIST,
    "aten.meshgrid": _LIST,
    "aten.cartesian_prod": _LIST,
    "aten.flatten_dense_tensors": _LIST,
    "aten.unflatten_dense_tensors": Hidden(("flat",)),
    "aten.einsum": _LIST,
    "aten._to_cpu": _LIST,
    "aten._remove_batch_dim": _SELF,
    "aten.set": Hidden(("source",)),
    "aten.histogramdd": Hidden(("bins",)),
    "aten._saturate_weight_to_fp16": Hidden(("weight",)),
    **{f"aten._cast_{kind}": _SELF for kind in ("Byte", "Char", "Double", "Float", "Half", "Int", "Long", "Short")},
}
"""Arguments a result may share memory with although the schema announces no alias."""

MAYBE_VIEWS: frozenset[str] = frozenset(
    f"aten.{name}"
    for name in (
        "reshape", "reshape_as", "flatten", "ravel", "contiguous", "to", "resolve_conj",
        "resolve_neg", "pin_memory", "_autocast_to_reduced_precision", "_autocast_to_full_precision", "lift_fresh",
    )
)  # fmt: skip
"""Operators that announce a view but may return a copy."""

SURE_VIEWS: dict[str, When] = {
    "aten.dropout": _surely_keeps,
    "aten.feature_dropout": _surely_keeps,
    "aten.alpha_dropout": _surely_keeps,
    "aten.feature_alpha_dropout": _surely_keeps,
    "aten._unsafe_view": always,
    "aten.unsafe_chunk": always,
    "aten.unsafe_split": always,
    "aten.unsafe_split_with_sizes": always,
}
"""Operators that announce no view, and the calls that surely give one. An argument not known counts as no."""

RANDOM: dict[str, When] = {
    "aten.dropout": _drops,
    "aten.feature_dropout": _drops,
    "aten.alpha_dropout": _drops,
    "aten.feature_alpha_dropout": _drops,
    "aten.dropout_": _drops,
    "aten.feature_dropout_": _drops,
    "aten.alpha_dropout_": _drops,
    "aten.feature_alpha_dropout_": _drops,
    "aten.native_dropout": _native_drops,
    "aten.rrelu": unless("training", False),
    "aten.rrelu_": unless("training", False),
    "aten.rrelu_with_noise": unless("training", False),
    "aten.rrelu_with_noise_": unless("training", False),
    "aten.lstm": _recurrent_drops,
    "aten.gru": _recurrent_drops,
    "aten.rnn_tanh": _recurrent_drops,
    "aten.rnn_relu": _recurrent_drops,
    "aten.scaled_dot_product_attention": unless("dropout_p", 0),
}
"""Operators whose randomness depends on arguments, or that the schema's tags do not announce."""
