"""What the operators share: does a value stage, its truth, and values that are only known by a choice at run time."""

from __future__ import annotations

import operator
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from runtime.tracer import cond as tracer_cond
from runtime.tracer import state, structure
from runtime.tracer.choices import distribute, held_choice, spread, unbound_message
from runtime.tracer.cond import NoNames
from runtime.tracer.containers import Several, opened
from runtime.tracer.held import RowKey
from runtime.tracer.journal import MISSING, Place
from runtime.tracer.scalars import Staged
from runtime.tracer.session import Session
from runtime.tracer.structure import Choice, Undefined

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
    return isinstance(value, (torch.Tensor, Staged, Choice))


def any_staged(values: Any, depth: int = 0) -> bool:
    """Whether a staged number or a choice is among the values, or inside lists, tuples, dicts and slices of them."""
    return any(_is_or_holds_staged(value, depth) for value in values)


def _is_or_holds_staged(value: Any, depth: int) -> bool:
    if isinstance(value, (Staged, Choice, Several, RowKey)):
        return True
    if depth > 8:
        return False
    if isinstance(value, (list, tuple)):
        return any_staged(value, depth + 1)
    if type(value) is dict:
        return any(type(key) in (Several, RowKey) for key in value) or any_staged(value.values(), depth + 1)
    if type(value) is slice:
        return any_staged((value.start, value.stop, value.step), depth + 1)
    return False


def truth_of(session: Session, value: Any) -> Any:
    """``bool(value)``: a staged bool where it is only known at run time, else a plain one."""
    value = opened(value)
    if isinstance(value, Choice):
        return distribute(session, value, lambda option: truth_of(session, option))
    if isinstance(value, (torch.Tensor, Staged)):
        return tracer_cond.truth(session, value)
    if isinstance(value, Undefined):
        raise UnboundLocalError(unbound_message(value.name))
    length = _staged_length(session, value)
    if length is not None:
        return truth_of(session, length)
    if is_iterator(value):
        return True
    name = "__bool__" if hasattr(type(value), "__bool__") else "__len__"
    method = python_method(value, name)
    if method is None:
        return bool(value)
    from dy2static.operators.call import call

    result = call(method, value)  # once: it may have effects
    if isinstance(result, Staged):
        return tracer_cond.truth(session, result)
    if name == "__bool__" and type(result) is not bool:
        raise TypeError(f"__bool__ should return bool, returned {type(result).__name__}")
    if type(result) in (int, bool) and result < 0:
        raise ValueError("__len__() should return >= 0")
    return bool(operator.index(result))


def _staged_length(session: Session, value: Any) -> Any:
    """The length of a sequence whose length is staged, None for anything else."""
    from dy2static.operators.sequences import StagedSequence
    from runtime.tracer import array

    if isinstance(value, StagedSequence):
        return None if is_iterator(value) else value.length(session)
    return array.length(session, value) if structure.growing(value) is not None else None


def is_iterator(value: object) -> bool:
    """Whether a value stands for an iterator of Python's (``zip``, ``map``), which is always true."""
    from dy2static.operators.sequences import StagedIterator

    return isinstance(value, StagedIterator)


def python_method(value: object, name: str) -> types.FunctionType | None:
    """The special method of the value's class, if it is written in Python by a user."""
    for cls in type(value).__mro__:
        if name in cls.__dict__:
            method = cls.__dict__[name]
            if isinstance(method, types.FunctionType) and not cls.__module__.startswith("torch."):
                return method
            return None
    return None


__all__ = [
    "MISSING", "NO_NAMES", "Choice", "LocalNames", "Session", "Staged", "Undefined", "active", "any_staged",
    "distribute", "held_choice", "python_method", "spread", "stages", "structure", "truth_of", "unbound_message",
]
