"""Gradient operators: sums of gradients of which some may not exist (None), as on a path that was not taken.

``FUNCTIONS`` is their meaning. ``grad.accumulate`` uses its first argument up: it must be an accumulator that nothing
else reads, which is how the backward of a loop carries the gradient of a tensor from outside it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from runtime.ir.definition import Fail, OpDefinition
from runtime.ir.operator import Operator
from runtime.ops.arity import check_attrs, check_no_kwargs, check_plain


def sum_(a: torch.Tensor | None, b: torch.Tensor | None) -> torch.Tensor | None:
    """The sum of two gradients, either of which may be None."""
    if a is None:
        return b
    return a if b is None else a + b


def accumulate(total: torch.Tensor | None, grad: torch.Tensor | None) -> torch.Tensor | None:
    """The running total with one more gradient, in the total's own memory."""
    if grad is None:
        return total
    if total is None:
        return grad.clone(memory_format=torch.contiguous_format)
    return total.add_(grad)


def zeros_if_none(grad: torch.Tensor | None, shape: Sequence[int], dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """The gradient, or zeros where there is none."""
    return torch.zeros(tuple(shape), dtype=dtype, device=device) if grad is None else grad


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "grad.sum": sum_, "grad.accumulate": accumulate, "grad.zeros_if_none": zeros_if_none,
}
_ARGUMENTS = {"grad.sum": 2, "grad.accumulate": 2, "grad.zeros_if_none": 4}


def _verify(op: Operator, fail: Fail) -> None:
    count = _ARGUMENTS[op.name]
    check_plain(op, fail, count, count, 1)
    check_no_kwargs(op, fail)
    check_attrs(op, fail, {})


DEFINITIONS: Sequence[OpDefinition] = [
    OpDefinition(name, str(function.__doc__).partition("\n")[0], verify=_verify, evaluate=function)
    for name, function in FUNCTIONS.items()
]
