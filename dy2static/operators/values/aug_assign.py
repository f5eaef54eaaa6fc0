"""Augmented assignment: in place where the value allows it.

    x += y   ->   x = aug("+=", x, y)
"""

from __future__ import annotations

import array
import operator
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy
import torch

from dy2static.operators.calls import boundary, growing, keyed, numpy_arrays, numpy_writes
from dy2static.operators.calls.call import call
from dy2static.operators.constructs import user_methods
from dy2static.operators.constructs.user_methods import NOT_USERS, operated
from dy2static.operators.iteration import generator_uses, iterators
from dy2static.operators.iteration.generator_uses import Asks
from dy2static.operators.provenance import keyed_keys, made_inside
from dy2static.operators.provenance.iterators_apart import for_option
from dy2static.operators.provenance.names_read import note_answers
from dy2static.operators.provenance.observed import observed
from dy2static.operators.shared import asked_methods
from dy2static.operators.shared.staging import Choice, Session, Staged, active, distribute, python_method
from dy2static.operators.values import sequence_operators
from dy2static.operators.values.added import added_to
from dy2static.operators.values.binary import binary
from runtime.kinds import is_a
from runtime.ops.keyed import Keyed
from runtime.tracer.memory import host_memory
from runtime.tracer.values.containers import is_container, opened, several
from runtime.tracer.values.numpy_arrays import NumpyArray, NumpyScalar
from runtime.tracer.values.structure import row_of

_IN_PLACE: dict[str, Callable[[Any, Any], Any]] = {
    "+=": operator.iadd, "-=": operator.isub, "*=": operator.imul, "@=": operator.imatmul, "/=": operator.itruediv,
    "//=": operator.ifloordiv, "%=": operator.imod, "**=": operator.ipow, "<<=": operator.ilshift,
    ">>=": operator.irshift, "&=": operator.iand, "^=": operator.ixor, "|=": operator.ior,
}  # fmt: skip


_WATCHED = (bytearray, array.array, memoryview, numpy.ndarray)
"""Types of Python's own, and NumPy's, that are changed in place, and of which no journal is kept."""


def aug(op: str, target: Any, value: Any) -> Any:
    """What ``target <op> value`` leaves in the target.

    >>> aug("+=", 1, 2), aug("*=", [0], 3)
    (3, [0, 0, 0])
    """
    session = active()
    if session is None:
        return _IN_PLACE[op](target, value)
    if is_a(value, Keyed) and keyed.is_kind(type(target)):
        keyed_keys.begin_again(session, target)
    if is_a(target, torch.Tensor) and type(value) is NumpyScalar:  # a number for torch
        value = numpy_arrays.number(session, value)
    if is_a(target, numpy.ndarray) and is_a(value, (Staged, NumpyArray)):
        host_memory.require_of_program(session, target)
    if is_a(target, NumpyArray) or is_a(value, NumpyArray) and not is_a(target, Choice):
        return _of_array(session, op, target, value)
    return _traced(session, op, target, value)


def _of_array(session: Session, op: str, target: Any, value: Any) -> Any:
    """An array is written; a scalar of NumPy's or a number gets another value.

    Raises:
        TraceError: D2S213, a tensor and an array, or an array from outside is written.
    """
    if is_a(target, numpy.ndarray):
        raise session.error(f"'{op}' writes what only a run knows to a NumPy array that the function did not make",
                            code="D2S213", hint="Write the operation out, and bind its result.")
    if is_a(target, torch.Tensor):
        raise session.error(f"'{op}' of a tensor and a NumPy array", code="D2S213",
                            hint="Make the array a tensor (torch.from_numpy).")
    result = binary(target, op[:-1], value)
    if is_a(target, NumpyArray) and not is_a(target, NumpyScalar):
        return numpy_writes.augmented(session, op, target, value, result)
    return result


def _change(session: Session, op: str, hidden: Any, value: Any) -> None:
    """The same of a container that stands for one that may hold several things, and stays itself.

    Raises:
        TraceError: D2S254, the operator makes another one.
    """
    if _traced(session, op, hidden, value) is not hidden:
        raise session.error(
            f"'{op}' makes another {type(hidden).__name__} of one that holds different things on different paths",
            hint="Write the operation out, and bind its result.", code="D2S254")


def _traced(session: Session, op: str, target: Any, value: Any) -> Any:
    if is_a(target, Choice):
        return distribute(session, target, lambda option: aug(op, option, for_option(session, value)), itself=True)
    if is_container(target):
        value = opened(value)
    if is_a(value, Choice):
        return distribute(session, value, lambda option: aug(op, target, option))
    if is_a(target, (str, bytes)) or is_a(target, Staged) and is_a(value, numpy_arrays.OF_NUMPY):
        return binary(target, op.removesuffix("="), value)
    own = f"__{_IN_PLACE[op].__name__}__"
    method = python_method(target, own)
    if method is not None:
        result = call(method, target, value)
        if result is not NotImplemented:
            return result
    if not hasattr(type(target), own):
        result = operated(session, target, op.removesuffix("="), value)
        if result is not NOT_USERS:
            return result
    inside = several(target)
    if inside is not None:
        distribute(session, inside, lambda option: _change(session, op, option, for_option(session, value)))
        return target
    if op == "*=" and is_a(target, (list, deque)):
        value = user_methods.as_number(session, value, "__index__") if not hasattr(type(value), "__rmul__") else value
    if op == "*=" and is_a(target, (list, deque)) and sequence_operators.multiply(session, target, value):
        return target
    if op == "*=" and type(target) is tuple:
        return binary(target, "*", value)
    if type(target) is tuple and growing.is_growing(target):
        if type(value) is not tuple and growing.is_growing(value):
            boundary.require_none(session, f"'{op}'", [value, target])
        return _IN_PLACE[op](target, value)
    more = added_to(session, target, "extend") if op == "+=" else None
    if more is not None:
        _traced(session, op, more, value)
        return target
    if growing.is_growing(target):
        growing.add_in_place(session, target, op, value)
        return target
    if type(target) is tuple and type(value) is tuple:
        return _IN_PLACE[op](target, value)
    if is_a(target, torch.nn.Module):
        made_inside.require_made_inside(session, target)
    if op == "+=" and is_a(target, (list, deque)):
        value = generator_uses.listed(session, value, Asks.ITSELF if is_a(target, list) else Asks.NOBODY)
    if op == "|=" and is_a(target, dict):
        value = generator_uses.mapped_items(session, value)
    iterators.require_own(session, value)
    noted = is_a(target, (list, dict, set, deque))
    if noted:
        session.journal.note_content(target)
    if not is_a(target, (list, deque)) or is_a(target, deque) and target.maxlen is not None:
        given = [one for one in (value, target) if is_a(one, (list, dict)) or row_of(one) is None]
        boundary.require_none(session, f"'{op}'", given)
    if is_a(target, torch.Tensor) and is_a(value, Staged):
        value = session.sizes.symbolic(value)
    if op == "+=" and is_a(target, (list, deque)) or op == "|=" and is_a(target, dict):
        asked_methods.require_items(session, f"'{op}'", [value], is_converted=False)
        note_answers(session, value)
    if is_a(target, (set, dict)):
        asked_methods.require_hashed(session, f"'{op}'", [target, *boundary.keys_of(type(target), [value])])
    if noted or type(target) not in _WATCHED:
        return _IN_PLACE[op](target, value)
    with observed(session, target):
        result = _IN_PLACE[op](target, value)
    return result
