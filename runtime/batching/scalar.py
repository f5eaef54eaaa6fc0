"""Scalar operators: Python's own function, row by row where rows differ; so numbers mean what they mean in Python."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch

from runtime.batching.machine import Machine, Scope, refuse
from runtime.batching.rows import Rows, row_by_row
from runtime.ir import Operator
from runtime.ops.scalar import FUNCTIONS, NO_INDEX, NOT_ONE
from runtime.torch_internals import batches

_OF_SIZES = ("scalar.size", "scalar.numel", "scalar.dim", "scalar.is_none")
_ITEMS = {"scalar.number": (ValueError, NOT_ONE), "scalar.index": (TypeError, NO_INDEX)}


def run(machine: Machine, op: Operator, scope: Scope) -> Sequence[Any]:
    """The number, for all rows or for each."""
    function: Callable[..., Any] = FUNCTIONS[op.name]
    args = [machine.read(arg, scope) for arg in op.args]
    if op.name not in _OF_SIZES and args and isinstance(args[0], torch.Tensor) and batches.levels_of(args[0]):
        return [_of_tensor(machine, op, args[0])]
    if op.kwargs:
        kwargs = {key: machine.read(value, scope) for key, value in op.kwargs.items()}
        function = functools.partial(_by_name, function, len(args), tuple(kwargs))
        args = [*args, *kwargs.values()]
    if len(args) == 1 and isinstance(args[0], list):
        args = args[0]
    if any(isinstance(arg, Rows) for arg in args):
        found = row_by_row(machine.domain, function, args)
        return [machine.value(found.values) if isinstance(found, Rows) else found]
    return [function(*args)]


def _by_name(function: Callable[..., Any], count: int, names: Sequence[str], *given: Any) -> Any:
    """The function's result, of which some arguments, the last, are given by name."""
    return function(*given[:count], **dict(zip(names, given[count:])))


def _of_tensor(machine: Machine, op: Operator, tensor: torch.Tensor) -> Any:
    if op.name not in ("scalar.item", "scalar.truth", *_ITEMS):
        refuse(op, op.outputs[0], "this asks for the text of a tensor, which is another in each row",
               "Give the tensor as a result, and look at it after the call.", "D2S284")
    if tensor.numel() != 1:
        if op.name in _ITEMS:
            kind, text = _ITEMS[op.name]
            raise kind(text)
        return FUNCTIONS[op.name](machine.domain.row(tensor, 0))  # raises what torch raises
    found = machine.numbers(tensor)
    return row_by_row(machine.domain, bool, [found]) if op.name == "scalar.truth" else found
