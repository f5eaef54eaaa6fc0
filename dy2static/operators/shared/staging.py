"""What the operators share: does a value stage, and values that are only known by a choice at run time."""

from __future__ import annotations

import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from dy2static.operators.shared.module_parts import is_open, may_be_open
from dy2static.operators.shared.policy import has_converted_methods
from runtime.kinds import is_a
from runtime.tracer.ambient import state
from runtime.tracer.ambient.unasked import module_name
from runtime.tracer.ambient.walks import walk
from runtime.tracer.numbers.scalars import Staged
from runtime.tracer.numbers.staging import NoNames
from runtime.tracer.python_state.held import RowKey
from runtime.tracer.python_state.journal import MISSING, Place
from runtime.tracer.recording.session import Session
from runtime.tracer.values import structure
from runtime.tracer.values.choices import distribute, held_choice, spread, unbound_message
from runtime.tracer.values.containers import Several
from runtime.tracer.values.numpy_arrays import NumpyArray
from runtime.tracer.values.structure import Choice, Undefined

active = state.active

NO_NAMES = NoNames()


@dataclass(eq=False)
class LocalNames:
    """What an operator itself keeps from iteration to iteration, seen as local variables."""

    names: tuple[str, ...]
    get: Callable[[], tuple[Any, ...]]
    set: Callable[[tuple[Any, ...]], None]

    def holds(self, place: Place) -> bool:
        """Never: no function of the user's shares them."""
        return False


def stages(value: object) -> bool:
    """Whether a condition on this value is decided only when the Program runs."""
    return is_a(value, (torch.Tensor, Staged, Choice, NumpyArray))


def any_staged(values: Any) -> bool:
    """Whether a staged number or a choice is among the values, or inside lists, tuples, dicts and slices of them."""
    return any(is_a(value, (Staged, Choice, Several, RowKey)) for value in walk(values, _parts, 9))


def _parts(value: Any) -> Any:
    if is_a(value, (list, tuple)):
        return value
    if type(value) is dict:
        return [*(key for key in value if type(key) in (Several, RowKey)), *value.values()]
    if type(value) is slice:
        return value.start, value.stop, value.step
    return ()


METHOD_WATCHERS: list[Callable[[Session, object, str], None]] = []
"""What is told of each special method that somebody asks a value's class for."""


def python_method(value: object, name: str) -> types.FunctionType | None:
    """The special method of the value's class, if it is written in Python by a user, or by PyTorch for a module whose
    parts depend on the path. While tracing, the answer is a guard: the class may get another method, or one that it
    lacks."""
    session = active()
    if session is not None:
        for watch in METHOD_WATCHERS:
            watch(session, value, name)
    for cls in type(value).__mro__:
        if name in cls.__dict__:
            method = cls.__dict__[name]
            librarys = module_name(cls).startswith("torch.") and not has_converted_methods(module_name(cls))
            if librarys and session is not None and is_a(value, torch.nn.Module):
                librarys = not (may_be_open(session) and is_open(value))
            return method if is_a(method, types.FunctionType) and not librarys else None
    return None


__all__ = [
    "METHOD_WATCHERS", "MISSING", "NO_NAMES", "Choice", "LocalNames", "Session", "Staged", "Undefined", "active",
    "any_staged", "distribute", "held_choice", "python_method", "spread", "stages", "structure", "unbound_message",
]
