"""Calls of PyTorch's operators, made from their schemas: arguments that eager takes."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator
from typing import Any

import torch

from runtime import torch_internals
from runtime.errors import ProgramError
from runtime.ops import aten
from runtime.storage.allowed import allowed_operators


def _t(*shape: int) -> torch.Tensor:
    """Numbers between 0 and 1 that no two elements share."""
    count = torch.Size(shape).numel()
    return ((torch.arange(1, count + 1) * 0.618) % 1).reshape(shape)


def _recurrent(gates: int, *state: torch.Tensor) -> list[Any]:
    weights = [_t(gates * 3, 4), _t(gates * 3, 3), _t(gates * 3), _t(gates * 3)]
    hidden = list(state) if gates == 4 else state[0]
    return [_t(2, 5, 4), hidden, weights, True, 1, 0.0, False, False, False]


def _packed(gates: int, *state: torch.Tensor) -> list[Any]:
    _, hidden, weights, *_ = _recurrent(gates, *state)
    return [_t(9, 4), torch.tensor([5, 4]), hidden, weights, True, 1, 0.0, False, False]


def _cell(gates: int) -> list[Any]:
    hidden = [_t(2, 3), _t(2, 3)] if gates == 4 else _t(2, 3)
    return [_t(2, 4), hidden, _t(gates * 3, 4), _t(gates * 3, 3), _t(gates * 3), _t(gates * 3)]


GIVEN: dict[str, list[Any]] = {
    "aten.einsum.default": ["ij,kj->ik", [_t(2, 3), _t(4, 3)]],
    "aten.tensordot.default": [_t(2, 3), _t(3, 4), [1], [0]],
    "aten.chain_matmul.default": [[_t(2, 3), _t(3, 4), _t(4, 2)]],
    "aten.linalg_multi_dot.default": [[_t(2, 3), _t(3, 4), _t(4, 2)]],
    "aten.bilinear.default": [_t(2, 3), _t(2, 4), _t(5, 3, 4), _t(5)],
    "aten._trilinear.default": [_t(2, 3), _t(5, 3, 4), _t(2, 4), [1, 3], [0], [1, 2], [2, 3]],
    "aten.gru.input": _recurrent(3, _t(1, 2, 3))[:3] + [True, 1, 0.0, False, False, True],
    "aten.gru.data": _packed(3, _t(1, 5, 3)),
    "aten.lstm.input": _recurrent(4, _t(1, 2, 3), _t(1, 2, 3))[:3] + [True, 1, 0.0, False, False, True],
    "aten.lstm.data": _packed(4, _t(1, 5, 3), _t(1, 5, 3)),
    "aten.rnn_tanh.input": _recurrent(1, _t(1, 2, 3))[:3] + [True, 1, 0.0, False, False, True],
    "aten.rnn_tanh.data": _packed(1, _t(1, 5, 3)),
    "aten.rnn_relu.input": _recurrent(1, _t(1, 2, 3))[:3] + [True, 1, 0.0, False, False, True],
    "aten.rnn_relu.data": _packed(1, _t(1, 5, 3)),
    "aten.gru_cell.default": _cell(3),
    "aten.lstm_cell.default": _cell(4),
    "aten.rnn_tanh_cell.default": _cell(1),
    "aten.rnn_relu_cell.default": _cell(1),
    "aten.linalg_pinv.default": [_t(3, 4), 1e-4],
    "aten.clip.default": [_t(3, 4), -0.5, 0.5],
    "aten.clip.Tensor": [_t(3, 4), _t(4), _t(3, 1) + 1],
    "aten.linalg_matrix_norm.default": [_t(3, 3), 2.0],
    "aten.matrix_power.default": [_t(3, 3), 3],
    "aten.linalg_matrix_power.default": [_t(3, 3), 3],
    "aten.embedding_bag.default": [_t(5, 3), torch.tensor([0, 2, 4]), torch.tensor([0, 1])],
    "aten.pad.default": [_t(2, 3), [1, 1]],
    "aten.one_hot.default": [torch.tensor([0, 2]), 3],
    "aten.layer_norm.default": [_t(2, 3), [3], _t(3), _t(3)],
    "aten.rms_norm.default": [_t(2, 3), [3], _t(3)],
    "aten.group_norm.default": [_t(2, 4, 3), 2, _t(4), _t(4)],
    "aten.batch_norm.default": [_t(2, 3), _t(3), _t(3), _t(3), _t(3), True, 0.1, 1e-5, False],
    "aten.instance_norm.default": [_t(2, 3, 4), _t(3), _t(3), None, None, True, 0.1, 1e-5, False],
    "aten.thnn_conv2d.default": [_t(1, 2, 5, 5), _t(3, 2, 3, 3), [3, 3]],
    "aten.slow_conv3d.default": [_t(1, 2, 5, 5, 5), _t(3, 2, 3, 3, 3), [3, 3, 3]],
    "aten._convolution_mode.default": [_t(1, 2, 5, 5), _t(3, 2, 3, 3), None, [1, 1], "same", [1, 1], 1],
    "aten._weight_norm.default": [_t(3, 4), _t(3, 1), 0],
    "aten.nll_loss_nd.default": [_t(2, 3), torch.tensor([0, 2])],
    "aten.kron.default": [_t(2, 2), _t(2, 3)],
    "aten.take_along_dim.default": [_t(3, 3), torch.zeros(3, 3, dtype=torch.int64), 1],
    "aten.repeat_interleave.self_Tensor": [_t(3), torch.tensor([1, 2, 1])],
    "aten.native_batch_norm.default": [_t(2, 3), _t(3), _t(3), _t(3), _t(3), True, 0.1, 1e-5],
    "aten.upsample_bilinear2d.vec": [_t(1, 2, 3, 3), [6, 6], False, None],
    "aten._scaled_dot_product_attention_math.default": [_t(1, 2, 3, 4), _t(1, 2, 3, 4), _t(1, 2, 3, 4)],
}
"""Calls whose arguments depend on each other."""

UNSAFE = frozenset(
    f"aten.{name}.default"
    for name in ("_thnn_differentiable_gru_cell_backward", "_saturate_weight_to_fp16", "_shape_as_tensor")
)
"""Operators that read past the end of arguments that do not fit each other, or read memory without asking torch."""

_SHAPES: tuple[tuple[int, ...], ...] = ((3, 3), (2, 3, 4), (3,), (2, 3, 4, 4), (), (1, 2, 4, 4, 4))
_LISTS = ([1], [0, 1], [2, 2], [3, 3], [0], [4, 4, 4], [1, 1, 2])


def composites() -> Iterator[str]:
    """The allow-listed operators that are written in terms of others and that autocast does not cast as a whole."""
    for name in sorted(allowed_operators()):
        try:
            overload = aten.resolve(name)
        except ProgramError:  # of another version of torch
            continue
        if not torch_internals.is_composite(overload):
            continue
        if not torch._C._dispatch_has_kernel_for_dispatch_key(overload.name(), "AutocastCPU"):
            yield name


def call_of(name: str) -> list[Any] | None:
    """Arguments that eager takes; None if none were found (sparse and quantized tensors are not tried)."""
    if name in GIVEN or name in UNSAFE or "fbgemm" in name or "qparams" in name:
        return GIVEN.get(name)
    overload = aten.resolve(name)
    for shape in _SHAPES:
        for sizes in _LISTS if "int[" in str(overload._schema).lower() else _LISTS[:1]:
            args = _arguments(overload, shape, sizes)
            if args is not None and _works(overload, args):
                return args
    return None


def _works(overload: Any, args: list[Any]) -> bool:
    if any(argument.kwarg_only and not argument.has_default_value() for argument in overload._schema.arguments):
        return False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = overload(*copy.deepcopy(args))
    except Exception:
        return False
    results = found if isinstance(found, (list, tuple)) else [found]
    return bool(results) and all(
        isinstance(one, torch.Tensor) and one.layout is torch.strided and not one.is_quantized for one in results
    )


def _arguments(overload: Any, shape: tuple[int, ...], sizes: list[int]) -> list[Any] | None:
    args = []
    for argument in overload._schema.arguments:
        if argument.kwarg_only or argument.has_default_value():
            break
        kind = str(argument.type)
        if kind == "Tensor":
            value: Any = _t(*shape)
        elif kind == "List[Tensor]":
            value = [_t(*shape), _t(*shape) * 0.5]
        elif kind.startswith("List[int]") or kind.startswith("List[SymInt]"):
            value = sizes
        elif kind in ("int", "SymInt"):
            value = 1
        elif kind in ("number", "float"):
            value = 0.5
        elif kind == "bool":
            value = False
        elif kind.startswith("Optional"):
            value = None
        else:
            return None
        args.append(value)
    return args
