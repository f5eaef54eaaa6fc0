"""Activation functions and their gradients: elements again, in terms of ``exp``, ``tanh`` and ``erf``.

    aten.silu.default(%x)      ->      e9 = x3 / (1 + m_exp_f(-x3))
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch

from runtime.ir import Operator, TensorType, Variable
from runtime.native.lowering import Lowering
from runtime.native.nest import Nest
from runtime.native.pointwise import FLOATS, compute, element, narrowed, suffix, wide
from runtime.native.values import CTYPES, HALVES, Number, Tensor, Unsupported
from runtime.ops import aten

_ROOT_HALF = "0.70710678118654752440"
_ROOT_2_BY_PI = "0.79788456080286535588"


def _sigmoid(x: str, s: str) -> str:
    return f"1 / (1 + m_exp_{s}(-{x}))"


def _gelu(v: Mapping[str, str], s: str) -> str:
    x = v["self"]
    if v["approximate"] == "tanh":
        return f"(T)0.5 * {x} * (1 + m_tanh_{s}((T){_ROOT_2_BY_PI} * ({x} + (T)0.044715 * {x} * {x} * {x})))"
    return f"{x} * (T)0.5 * (1 + m_erf_{s}({x} * (T){_ROOT_HALF}))"


def _gelu_backward(v: Mapping[str, str], s: str) -> str:
    x, g = v["self"], v["grad_output"]
    if v["approximate"] == "tanh":
        t = f"m_tanh_{s}((T){_ROOT_2_BY_PI} * ({x} + (T)0.044715 * {x} * {x} * {x}))"
        return (f"{g} * ((T)0.5 * (1 + {t}) + (T)0.5 * {x} * (1 - {t} * {t}) * (T){_ROOT_2_BY_PI} * "
                f"(1 + (T)(3 * 0.044715) * {x} * {x}))")  # fmt: skip
    return (f"{g} * ((T)0.5 * (1 + m_erf_{s}({x} * (T){_ROOT_HALF})) + "
            f"{x} * (m_exp_{s}((T)-0.5 * {x} * {x}) * (T)0.39894228040143267794))")  # fmt: skip


def _silu_backward(v: Mapping[str, str], s: str) -> str:
    x, g = v["self"], v["grad_output"]
    t = f"({_sigmoid(x, s)})"
    return f"{g} * {t} * (1 + {x} * (1 - {t}))"


def _elu(v: Mapping[str, str], s: str) -> str:
    x = v["self"]
    return (f"({x} <= 0 ? ({v['alpha']} * {v['scale']}) * m_expm1_{s}({x} * {v['input_scale']}) : "
            f"{x} * {v['scale']})")  # fmt: skip


def _softplus(v: Mapping[str, str], s: str) -> str:
    x, beta = v["self"], v["beta"]
    return f"({x} * {beta} > {v['threshold']} ? {x} : m_log1p_{s}(m_exp_{s}({x} * {beta})) / {beta})"


def _softplus_backward(v: Mapping[str, str], s: str) -> str:
    x, g, beta = v["self"], v["grad_output"], v["beta"]
    z = f"m_exp_{s}({x} * {beta})"
    return f"({x} * {beta} > {v['threshold']} ? {g} : {g} * {z} / ({z} + 1))"


def _hardtanh(v: Mapping[str, str], s: str) -> str:
    x, low, high = v["self"], v["min_val"], v["max_val"]
    return f"({x} < {low} ? {low} : {x} > {high} ? {high} : {x})"


_TABLE: dict[str, Callable[[Mapping[str, str], str], str]] = {
    "gelu": _gelu,
    "gelu_backward": _gelu_backward,
    "silu": lambda v, s: f"{v['self']} / (1 + m_exp_{s}(-{v['self']}))",
    "silu_backward": _silu_backward,
    "elu": _elu,
    "softplus": _softplus,
    "softplus_backward": _softplus_backward,
    "hardtanh": _hardtanh,
    "relu6": lambda v, s: f"({v['self']} < 0 ? 0 : {v['self']} > 6 ? 6 : {v['self']})",
    "leaky_relu": lambda v, s: f"({v['self']} > 0 ? {v['self']} : {v['self']} * {v['negative_slope']})",
    "leaky_relu_backward": lambda v, s: (
        f"({v['self']} > 0 ? {v['grad_output']} : {v['grad_output']} * {v['negative_slope']})"),
    "addcmul": lambda v, s: f"{v['self']} + {v['value']} * {v['tensor1']} * {v['tensor2']}",
    "addcdiv": lambda v, s: f"{v['self']} + {v['value']} * {v['tensor1']} / {v['tensor2']}",
}  # fmt: skip
NAMES = tuple(_TABLE)


def emit(low: Lowering, op: Operator) -> None:
    """Tensors of one dtype of floats, numbers, and nothing else."""
    short = op.name.split(".")[1]
    call = aten.arguments(aten.resolve(op.name), op.args, op.kwargs)
    tensors: dict[str, Tensor] = {}
    numbers: dict[str, Number] = {}
    words: dict[str, str] = {}
    for name, value in call.items():
        if isinstance(value, Variable) and isinstance(value.type, TensorType):
            tensors[name] = low.tensor(value)
        elif isinstance(value, str):
            words[name] = value
        elif isinstance(value, (int, float)):
            numbers[name] = low.number(value)
        else:
            raise Unsupported(name)
    dtypes = {one.dtype for one in tensors.values()}
    dtype = next(iter(dtypes))
    if len(dtypes) > 1 or (dtype not in FLOATS and dtype not in HALVES):
        raise Unsupported("these dtypes")
    given: dict[str, Tensor | Number] = {**{name: wide(one) for name, one in tensors.items()}, **numbers}
    operands = [one for one in given.values() if isinstance(one, Tensor)]
    dtype = torch.float64 if dtype is torch.float64 else torch.float32
    s = suffix(dtype)
    ctype = CTYPES[dtype]

    def text(nest: Nest) -> str:
        values = {name: element(low, nest, one, dtype) for name, one in given.items()}
        return _TABLE[short]({**values, **words}, s).replace("(T)", f"({ctype})")

    low.give(op.outputs[0], compute(low, op.outputs[0], operands, *narrowed(op, operands, dtype, text)))
