"""Whether a value of the trace is held by a Python object, in whatever way."""

from __future__ import annotations

import collections
import dataclasses
import functools
import gc
import types
from typing import Any

import torch

from runtime import torch_internals
from runtime.kinds import is_a
from runtime.tracer.ambient import objects
from runtime.tracer.ambient.walks import walk
from runtime.tracer.numbers.scalars import Staged
from runtime.tracer.python_state.held import RowField, RowKey
from runtime.tracer.values import structure

_DEPTH = 6


def holds_traced(value: Any, depth: int = 0) -> bool:
    """Whether a value of the trace is inside, however it is held."""
    return any(map(_is_traced, walk([value], _inside, _DEPTH + 1 - depth)))


def _is_traced(value: Any) -> bool:
    if is_a(value, torch.Tensor):
        return torch_internals.is_fake(value)
    return is_a(value, (Staged, structure.Choice, structure.Growing, torch.SymInt, torch.SymFloat,
                              torch.SymBool, RowField, RowKey))


def _inside(value: Any) -> list[Any]:
    if structure.is_plain(value) or is_a(value, (type, types.ModuleType, torch.nn.Module, torch.Tensor)):
        return []
    if is_a(value, (list, tuple, set, frozenset, collections.deque, dict)):
        return objects.own_items(value)
    if is_a(value, types.FunctionType):
        cells = [cell.cell_contents for cell in value.__closure__ or () if is_filled(cell)]
        return [*cells, *(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values()]
    if is_a(value, structure.BOUND):
        return [value.__self__]
    if is_a(value, functools.partial):
        return [value.func, *value.args, *value.keywords.values()]
    if is_a(value, types.GeneratorType):
        return list(value.gi_frame.f_locals.values()) if value.gi_frame is not None else []
    if objects.is_simple(type(value)) or dataclasses.is_dataclass(type(value)):
        return list(objects.attributes(value).values())
    return []


def leads_to_traced(value: Any) -> bool:
    """Whether a value of the trace can be come by from an object of whatever kind."""
    todo, seen = [value], {id(value)}
    while todo:
        one = todo.pop()
        if holds_traced(one, _DEPTH):
            return True
        for inner in _referents(one):
            if id(inner) not in seen and not is_a(inner, _NO_PARTS) and not structure.is_plain(inner):
                seen.add(id(inner))
                todo.append(inner)
        if len(seen) > 10_000:
            return False
    return False


def _referents(value: Any) -> list[Any]:
    """What an object refers to; of a function not the globals of its module, which are not the function's own."""
    found = gc.get_referents(value)
    if is_a(value, types.FunctionType):
        builtins = getattr(value, "__builtins__", None)
        return [one for one in found if one is not value.__globals__ and one is not builtins]
    return found


_NO_PARTS = (types.ModuleType, types.CodeType, types.FrameType, types.BuiltinFunctionType, type)


def is_filled(cell: types.CellType) -> bool:
    """Whether a cell holds something but None."""
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False


__all__ = ["holds_traced", "is_filled", "leads_to_traced"]
