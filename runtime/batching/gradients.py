"""Gradients inside: the operators that a Program has once ``torch.autograd.grad`` in it is written out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import torch

from runtime.batching.machine import Machine, Scope, refuse
from runtime.ir import Operator
from runtime.ops.grad import FUNCTIONS, leaf
from runtime.torch_internals import batches


def _accumulate(total: torch.Tensor | None, grad: torch.Tensor | None) -> torch.Tensor | None:
    """The sum, in new memory: a total of all rows has no room for what is another in each."""
    return total if grad is None else grad if total is None else total + grad


def _accumulate_product(total: torch.Tensor | None, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a.mm(b) if total is None else total + a.mm(b)


def _leaf(tensor: torch.Tensor) -> torch.Tensor:
    if batches.levels_of(tensor):
        return tensor.detach()
    with batches.without_transforms():  # which let nothing made inside of them be a leaf
        return leaf(tensor)


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    **FUNCTIONS, "grad.accumulate": _accumulate, "grad.accumulate_product": _accumulate_product,
    "grad.leaf": _leaf,
}  # fmt: skip


def run_needed(machine: Machine, op: Operator, scope: Scope) -> Sequence[Any]:
    """Whether a tensor needs a gradient, which it may in some rows only."""
    domain, rows = machine.domain, machine.domain.history(machine.read(op.args[0], scope))
    if rows in (0, domain.all):
        return [bool(rows)]
    return [machine.value([bool(rows >> row & 1) for row in range(domain.count)])]


def run(machine: Machine, op: Operator, scope: Scope) -> Sequence[Any]:
    """What the function gives that defines the operator."""
    given = _FUNCTIONS[op.name](*(machine.read(arg, scope) for arg in op.args))
    return list(given) if len(op.outputs) > 1 else [given]


def run_unlowered(machine: Machine, op: Operator, scope: Scope) -> NoReturn:
    """Refused: this gradient could not be written out as Operators."""
    refuse(op, op.outputs[0], "this gradient cannot be computed for many rows at once",
           "Use torch.func.grad around the function instead, inside of vmap.", "D2S285")
