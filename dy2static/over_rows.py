"""Calls under ``torch.vmap``: a function is traced for one row, and its Program runs for all.

    vmap(f)(x), x : f32[8, 3]  ->  f is called with a batched tensor of [3]  ->  traced with the first row, f32[3]
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch

from runtime.kinds import is_a
from runtime.torch_internals import batches
from runtime.tracer.ambient.unasked import has_unasked, unasked
from runtime.tracer.values.arguments import Arguments


def is_for_rows(module: torch.nn.Module | None, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether a call is one of many rows: an argument is batched, or a tensor of the module it belongs to."""
    return _holds(args, set()) or _holds(kwargs, set()) or (module is not None and any(_batched(module)))


def _holds(value: Any, seen: set[int]) -> bool:
    if is_a(value, torch.Tensor):
        return bool(batches.levels_of(value))
    if id(value) in seen:
        return False
    if is_a(value, (list, tuple, dict)):
        seen.add(id(value))
        return any(_holds(item, seen) for item in (value.values() if is_a(value, dict) else value))
    if has_unasked(value, "__dataclass_fields__") and not is_a(value, type):
        seen.add(id(value))
        return any(_holds(item, seen) for item in (unasked(value, "__dict__") or {}).values())
    return False


def row_of(arguments: Arguments) -> Arguments:
    """The arguments of a call for one row."""
    return replace(arguments, tensors=[batches.like_a_row(tensor) for tensor in arguments.tensors])


def _batched(module: torch.nn.Module) -> Iterator[tuple[dict[str, Any], str, torch.Tensor]]:
    for inner in module.modules():
        for slots in (inner._parameters, inner._buffers):
            for name, tensor in slots.items():
                if tensor is not None and batches.levels_of(tensor):
                    yield slots, name, tensor


@contextlib.contextmanager
def one_row(module: torch.nn.Module | None) -> Iterator[None]:
    """Find or make a Program as if only one row was there; batched parameters, as ``functional_call`` puts them into a
    module, are those of one row so long."""
    found = [] if module is None else list(_batched(module))
    rows = {id(tensor): batches.like_a_row(tensor) for _, _, tensor in found}
    for slots, name, tensor in found:
        slots[name] = rows[id(tensor)]
    try:
        with batches.without_transforms():
            yield
    finally:
        for slots, name, tensor in found:
            slots[name] = tensor


__all__ = ["is_for_rows", "one_row", "row_of"]
