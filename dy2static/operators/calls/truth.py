"""Whether a value is true: PyTorch's rules for tensors, Python's for everything else, staged where a run decides."""

from __future__ import annotations

import operator
from typing import Any

import torch

from dy2static.operators.calls import numpy_arrays
from dy2static.operators.calls.call import call
from dy2static.operators.calls.sequences import StagedIterator, StagedSequence
from dy2static.operators.shared.staging import (
    Choice,
    Session,
    Staged,
    Undefined,
    distribute,
    python_method,
    unbound_message,
)
from runtime.kinds import is_a
from runtime.tracer.control import cond as tracer_cond
from runtime.tracer.values import array, structure
from runtime.tracer.values.containers import opened
from runtime.tracer.values.numpy_arrays import NumpyArray


def truth_of(session: Session, value: Any) -> Any:
    """``bool(value)``: a staged bool where it is only known at run time, else a plain one."""
    value = opened(value)
    if is_a(value, Choice):
        return distribute(session, value, lambda option: truth_of(session, option))
    if is_a(value, NumpyArray):
        return truth_of(session, numpy_arrays.truth(session, value))
    if is_a(value, (torch.Tensor, Staged)):
        return tracer_cond.truth(session, value)
    if is_a(value, Undefined):
        raise UnboundLocalError(unbound_message(value.name))
    python_method(value, "__bool__")  # a guard also where the class has none
    name = "__bool__" if hasattr(type(value), "__bool__") else "__len__"
    grown = structure.growing(value) is not None
    method = python_method(value, name) if grown and type(value) not in (list, tuple) else None
    length = _staged_length(session, value) if method is None else None
    if length is not None:
        return truth_of(session, length)
    if is_iterator(value):
        return True
    method = python_method(value, name)
    if method is None:
        return bool(value)
    result = call(method, value)  # once: it may have effects
    if is_a(result, Staged):
        return tracer_cond.truth(session, result)
    if name == "__bool__" and type(result) is not bool:
        raise TypeError(f"__bool__ should return bool, returned {type(result).__name__}")
    if type(result) in (int, bool) and result < 0:
        raise ValueError("__len__() should return >= 0")
    return bool(operator.index(result))


def _staged_length(session: Session, value: Any) -> Any:
    """The length of a sequence whose length is staged, None for anything else."""
    if is_a(value, StagedSequence):
        return None if is_iterator(value) else value.length(session)
    return array.length(session, value) if structure.growing(value) is not None else None


def is_iterator(value: object) -> bool:
    """Whether a value stands for an iterator of Python's (``zip``, ``map``), which is always true."""
    return is_a(value, StagedIterator)


__all__ = ["is_iterator", "truth_of"]
