"""A deep copy of all that a call is given, so that it can run twice: tensors with a history, functions with their
closures and generators of random numbers included.

    twice, pairs = duplicate((module, args, kwargs))

What is shared stays shared (two views of one memory are two views of the copy); a tensor that autograd computed becomes
one that it computed from a leaf of its own, and that leaf is what gradients are asked for.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

_ATOMS: Any = getattr(copy, "_deepcopy_dispatch", {})
"""How ``copy.deepcopy`` copies what has no ``__deepcopy__``."""
_FOREIGN = ("_pytest", "pytest", "unittest", "hypothesis", "pluggy")
"""Whose objects are never copied: they hold the whole session."""


@dataclass(eq=False)
class Pair:
    """A tensor that needs a gradient, and its twin in the copy; ``leaf``: what the twin's gradient is asked for."""

    original: torch.Tensor
    twin: torch.Tensor
    leaf: torch.Tensor
    version: int
    """How often the original had been written."""


class CannotCopy(Exception):
    """What a call is given cannot be copied; the message says why."""


def duplicate(value: Any) -> tuple[Any, list[Pair]]:
    """A deep copy, and the tensors in it that gradients can be asked for. Raises CannotCopy."""
    pairs: list[Pair] = []
    with _copying(pairs):
        try:
            return copy.deepcopy(value, {}), pairs
        except Exception as error:  # whatever an object does when it is copied
            reason = str(error).strip().splitlines()
            raise CannotCopy(f"{type(error).__name__}: {reason[0] if reason else ''}") from error


@contextlib.contextmanager
def _copying(pairs: list[Pair]) -> Iterator[None]:
    before = {kind: _ATOMS.get(kind) for kind in (types.FunctionType, types.ModuleType, torch.Generator)}
    classes: tuple[Any, ...] = (torch.Tensor, torch.nn.Parameter)
    methods = [cls.__deepcopy__ for cls in classes]
    for cls, method in zip(classes, methods):
        cls.__deepcopy__ = functools.partialmethod(_tensor, own=method, pairs=pairs)
    _ATOMS.update({types.FunctionType: _function, types.ModuleType: _itself, torch.Generator: _generator})
    try:
        yield
    finally:
        for cls, method in zip(classes, methods):
            cls.__deepcopy__ = method
        for kind, how in before.items():
            if how is None:
                _ATOMS.pop(kind, None)
            else:
                _ATOMS[kind] = how


def _itself(value: Any, memo: dict[Any, Any]) -> Any:
    return value


def _generator(value: torch.Generator, memo: dict[Any, Any]) -> torch.Generator:
    twin = torch.Generator(value.device)
    twin.set_state(value.get_state())
    return twin


def _function(function: types.FunctionType, memo: dict[Any, Any]) -> types.FunctionType:
    """A function that changes variables around it changes those of the copy."""
    if not function.__closure__:
        return function
    new = [cell for cell in function.__closure__ if id(cell) not in memo]
    memo.update((id(cell), types.CellType()) for cell in new)  # functions that share a variable do so in the copy
    cells = tuple(memo[id(cell)] for cell in function.__closure__)
    twin = types.FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, cells
    )
    twin.__kwdefaults__, twin.__dict__ = function.__kwdefaults__, dict(function.__dict__)
    twin.__qualname__, twin.__module__ = function.__qualname__, function.__module__
    memo[id(function)] = twin
    for cell in new:
        with contextlib.suppress(ValueError):  # a variable that is not bound yet
            memo[id(cell)].cell_contents = _content(cell.cell_contents, memo)
    return twin


def _content(value: Any, memo: dict[Any, Any]) -> Any:
    foreign = (getattr(type(value), "__module__", "") or "").split(".")[0] in _FOREIGN
    if foreign or isinstance(value, types.ModuleType):  # a user's class of modules may answer any name
        return value
    try:
        return copy.deepcopy(value, memo)
    except Exception:  # a file, a lock: the two share it
        return value


def _tensor(
    value: torch.Tensor, memo: dict[Any, Any], own: Callable[..., Any], pairs: list[Pair]
) -> torch.Tensor:
    if id(value) in memo:
        found: torch.Tensor = memo[id(value)]
        return found
    version = 0 if value.is_inference() else value._version
    if value.is_leaf:
        twin: torch.Tensor = own(value, memo)
        for name in vars(value).keys() - vars(twin).keys():  # a parameter's copy has none of a user's attributes
            setattr(twin, name, copy.deepcopy(vars(value)[name], memo))
        if value.grad is not None and twin.grad is None:  # a parameter's copy has none
            twin.grad = copy.deepcopy(value.grad, memo)
        if value.requires_grad:
            pairs.append(Pair(value, twin, twin, version))
        return twin
    if type(value) is not torch.Tensor or value.layout is not torch.strided or value.is_conj() or value.is_neg():
        leaf = value.detach().clone()
    else:
        leaf = torch.empty(0, dtype=value.dtype, device=value.device)
        leaf.set_(copy.deepcopy(value.untyped_storage(), memo), value.storage_offset(), value.size(), value.stride())
    leaf.requires_grad_()
    with torch.enable_grad():
        twin = leaf.clone()
    memo[id(value)] = twin
    twin.__dict__.update(copy.deepcopy(value.__dict__, memo))
    pairs.append(Pair(value, twin, leaf, version))
    return twin


__all__ = ["CannotCopy", "Pair", "duplicate"]
