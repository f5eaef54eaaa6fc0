"""Checks that torch offers to its own code and others: ``torch._check`` and its family, ``torch._assert``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

_NAMES = {
    "check": "_check", "index": "_check_index", "value": "_check_value", "type": "_check_type",
    "not_implemented": "_check_not_implemented", "with": "_check_with", "is_size": "_check_is_size",
    "tensor_all": "_check_tensor_all", "tensor_all_with": "_check_tensor_all_with", "assert": "_assert",
    "assert_scalar": "_assert_scalar", "assert_tensor_metadata": "_assert_tensor_metadata",
}  # fmt: skip

TORCH_CHECKS: dict[str, Callable[..., Any]] = {
    name: getattr(torch, private) for name, private in _NAMES.items() if hasattr(torch, private)
}
"""The functions, by what they check."""

_MATH = ("sqrt", "cos", "cosh", "sin", "sinh", "tan", "tanh", "asin", "acos", "atan", "log2")

SYMBOLIC_MATH: dict[str, Callable[..., Any]] = {
    name: getattr(torch, f"_sym_{name}") for name in _MATH if hasattr(torch, f"_sym_{name}")
}
"""torch's forms of functions of ``math``, by their name there."""



def expect(cond: torch.SymBool) -> None:
    """Let torch's shape rules rely on a fact about sizes. RuntimeError if they know that it is false."""
    TORCH_CHECKS["check"](cond)


__all__ = ["SYMBOLIC_MATH", "TORCH_CHECKS", "expect"]
