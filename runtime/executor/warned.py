"""Warnings of PyTorch's kernels, made where the user's code calls the operator, through Python's ``warnings``.

PyTorch hands what a kernel warns of to Python under its generated bindings only. An operator that is called through
``torch.ops`` prints it, and under an ``autograd.Function`` it is said of the place that applies that. These are the
kernels that warn at every call, for the sizes they are given:

    x.std()   of one element     std(): degrees of freedom is <= 0
"""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch

from runtime import torch_internals
from runtime.ir import Location, Operator
from runtime.ops import aten

_SPREADS: dict[str, Callable[..., Any]] = {
    f"aten.{name}.{overload}": getattr(torch, name)
    for name in ("std", "var", "std_mean", "var_mean") for overload in ("default", "dim", "correction")
}  # fmt: skip


def function_of(op: Operator) -> Callable[..., Any] | None:
    """What calls an Operator whose kernel may warn; None for all others."""
    function = _SPREADS.get(op.name)
    return None if function is None else _Spread(op, function)


class _Spread:
    """``std``, ``var`` and the like: they warn where fewer elements than the correction are left."""

    def __init__(self, op: Operator, function: Callable[..., Any]) -> None:
        self._function = function
        self._raw = torch_internals.raw_call(aten.resolve(op.name))
        self._location = op.location
        self._is_correction = op.name.endswith(".correction")

    def __call__(self, x: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        if self._degrees(x, *args, **kwargs) > 0:
            return self._raw(x, *args, **kwargs)
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            result = self._function(x, *args, **kwargs)
        for one in seen:
            say(str(one.message), one.category, self._location)
        return result

    def _degrees(self, x: torch.Tensor, *args: Any, **kwargs: Any) -> float:
        """How many elements each result is made of, less the correction."""
        dims: Any = kwargs.get("dim")
        lessens: Any = kwargs.get("correction" if self._is_correction else "unbiased", True)
        if args and (self._is_correction or not isinstance(args[0], bool)):
            dims, *args = args  # type: ignore[assignment]
        if args and not self._is_correction:
            lessens = args[0]
        sizes: Sequence[int] = x.shape
        if dims is not None and dims != []:
            sizes = [x.shape[dim] for dim in ([dims] if isinstance(dims, int) else dims)] if x.dim() else []
        return math.prod(sizes) - (1 if lessens is None else lessens)


def say(message: str, category: type[Warning], location: Location | None) -> None:
    """A warning at a place of the user's; the filters in force decide."""
    file, line = (location.file, location.line) if location is not None else ("<string>", 1)
    names = next((vars(one) for one in list(sys.modules.values()) if getattr(one, "__file__", None) == file), {})
    registry = names.setdefault("__warningregistry__", {})
    warnings.warn_explicit(message, category, file, line, names.get("__name__"), registry, names or None)


__all__ = ["function_of", "say"]
