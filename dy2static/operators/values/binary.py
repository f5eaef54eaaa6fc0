"""Operators of what may be a set, or a view of a dict, whose items differ between paths, of users' classes, and of
lists that others hold by reference."""

from __future__ import annotations

import operator
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy
import torch

from dy2static.operators.calls import boundary, growing, keyed, numpy_arrays
from dy2static.operators.constructs import user_methods
from dy2static.operators.constructs.user_methods import NOT_USERS, operated
from dy2static.operators.provenance import observed
from dy2static.operators.provenance.provenance import memo
from dy2static.operators.shared import asked_methods
from dy2static.operators.shared.staging import Choice, Session, Staged, active, distribute
from dy2static.operators.values import sequence_operators, texts
from dy2static.operators.values.percent_format import percent
from runtime.kinds import is_a
from runtime.ops.keyed import Keyed
from runtime.tracer.numbers import scalars
from runtime.tracer.numbers.scalars import StagedBool, StagedFloat, StagedInt, StagedStr
from runtime.tracer.numbers.staged_size import StagedSize
from runtime.tracer.values import array, identities, structure
from runtime.tracer.values.containers import opened
from runtime.tracer.values.numpy_arrays import NumpyArray

_PLAIN: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "*": operator.mul, "@": operator.matmul, "/": operator.truediv, "//": operator.floordiv,
    "%": operator.mod, "**": operator.pow, "<<": operator.lshift, ">>": operator.rshift,
    "-": operator.sub, "&": operator.and_, "|": operator.or_, "^": operator.xor, "<": operator.lt, "<=": operator.le,
    ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


_ITSELF = frozenset((torch.Tensor, int, float, bool, str, StagedInt, StagedFloat, StagedBool, StagedStr))
"""Python's own operators are right for these: most of what operators meet."""


def binary(a: Any, op: str, b: Any) -> Any:
    """``a <op> b``.

    >>> binary({1, 2}, "-", {1}), binary(1, "<", 2)
    ({2}, True)
    """
    session = active()
    if op == "%" and is_a(a, (str, bytes)):
        return percent(a, b)
    if session is None or (type(a) in _ITSELF and type(b) in _ITSELF):
        return _PLAIN[op](a, b)
    if op == "%" and is_a(a, Choice) and any(is_a(option, (str, bytes)) for option in a.options):
        return distribute(session, a, lambda option: binary(option, op, option if b is a else b))
    if torch.Size in (type(a), type(b)):
        a, b = (StagedSize(one) if type(one) is torch.Size else one for one in (a, b))
    if is_a(a, Choice) and (numpy_arrays.holds_arrays(a) or is_a(b, numpy_arrays.OF_NUMPY)):
        return distribute(session, a, lambda option: binary(option, op, option if b is a else b))
    if is_a(b, Choice) and (numpy_arrays.holds_arrays(b) or is_a(a, numpy_arrays.OF_NUMPY)):
        return distribute(session, b, lambda option: binary(a, op, option))
    if op == "+" and is_a(a, Choice) and is_a(b, Choice):
        a, b = texts.few(session, (a, b))
    a, b = numpy_arrays.beside_numbers(session, a, op, b)
    if is_a(a, (NumpyArray, torch.Tensor)) and is_a(b, (NumpyArray, torch.Tensor)):
        a, b = numpy_arrays.beside_tensors(session, a, op, b)
        return _PLAIN[op](a, b)
    if is_a(b, Keyed) and keyed.is_kind(type(a)):
        a = keyed.of_real(session, a)
    first, second = opened(a), opened(b)
    if first is not a and is_a(first, Choice):
        return distribute(session, first, lambda option: binary(option, op, option if b is a else b))
    if second is not b and is_a(second, Choice):
        return distribute(session, second, lambda option: binary(a, op, option))
    if type(b) in _CONTAINERS and type(a) in _LIKE and not (op == "%" and type(a) is StagedStr):
        return _PLAIN[op](_LIKE[type(a)], type(b)())  # which Python refuses, in these words
    if type(a) in _CONTAINERS and type(b) in _LIKE:
        return _PLAIN[op](type(a)(), _LIKE[type(b)])
    if op in _ORDER and (_may_be_sequence(a) or _may_be_sequence(b)):
        chosen: Any = a if is_a(a, Choice) else b
        return distribute(session, chosen, lambda option: binary(
            option if a is chosen else a, op, option if b is chosen else b))
    if op in ("+", "*") and session.call.known.by_reference:
        if is_a(a, Choice) and _may_be_row(a):
            return distribute(session, a, lambda option: binary(option, op, option if b is a else b))
        if is_a(b, Choice) and _may_be_row(b):
            return distribute(session, b, lambda option: binary(a, op, option))
    if op == "*" and (is_a(a, _SEQUENCES) or is_a(b, _SEQUENCES)):
        product = sequence_operators.multiplied(session, a, b)
        if product is not sequence_operators.NOT_DONE:
            return product
    result = operated(session, a, op, b)
    if result is not NOT_USERS:
        return result
    if op not in _ORDER:
        require_number(a, b)
    if op in _ORDER and is_a(a, _SEQUENCES) and is_a(b, _SEQUENCES):
        found = sequence_operators.ordered(session, a, op, b)
        if found is not sequence_operators.NOT_DONE:
            return found
        boundary.require_none(session, f"'{op}'", (a, b))  # Python would compare lengths as well
    if op == "*":
        times = tuple(user_methods.as_number(session, one, "__index__") if is_a(other, _REPEATED) else one
                      for one, other in ((a, b), (b, a)))  # fmt: skip
        if times[0] is not a or times[1] is not b:
            return binary(times[0], op, times[1])
    if is_a(a, _HASHING) or is_a(b, _HASHING):
        asked_methods.require_hashed(session, f"'{op}'", [one for one in (a, b) if is_a(one, _HASHING)])
        if is_a(a, _HASHING) and is_a(b, _HASHING):
            identities.require_known_in_both(session, a, b)
    if structure.row_of(a) is not None or structure.row_of(b) is not None:
        return _of_rows(session, a, op, b)
    if op == "+" and type(a) is list and type(b) is list and (growing.is_growing(a) or growing.is_growing(b)):
        return array.concat(session, a, b)
    return _noted(session, _PLAIN[op](a, b))


def _may_be_sequence(value: Any) -> bool:
    """Whether a path chose which of several values it is, and one of them is a list or tuple."""
    return is_a(value, Choice) and any(is_a(one, _SEQUENCES) for one in value.options)


def _noted(session: Session, result: Any) -> Any:
    """An operator of NumPy's arrays gives a new one."""
    if type(result) is numpy.ndarray and result.base is None:
        memo(session).created[id(result)] = result
    return observed.made(session, result)


def require_number(a: Any, b: Any) -> None:
    """Refuse an operation of a staged number and a library's (``Fraction(3) ** n`` is a float to ``fractions``).

    Raises:
        TraceError: D2S210.
    """
    for staged, other in ((a, b), (b, a)):
        if is_a(staged, Staged) and staged.kind != "str" and scalars.computes_with_numbers("pow", other):
            scalars.refuse(staged, f"used together with a {type(other).__name__}")


def _may_be_row(value: Any) -> bool:
    value = opened(value)
    if is_a(value, Choice):
        return any(map(_may_be_row, value.options))
    return structure.row_of(value) is not None


def _of_rows(session: Session, a: Any, op: str, b: Any) -> Any:
    """``a + b`` and ``a * b`` of lists that others hold by reference: what they hold now."""
    if op == "+" and type(a) is list and type(b) is list:
        return array.concat(session, a, b)
    row, count = (a, b) if structure.row_of(a) is not None else (b, a)
    if op == "*" and type(count) in (int, bool):
        made = array.copy(row)
        array.repeat(session, made, count)
        return made
    merged = op == "|" and type(a) is type(b) is dict
    if not merged and (type(count) in _PLAIN_TYPES or is_a(count, torch.Tensor)):
        return _PLAIN[op](a, b)  # which Python refuses, whatever the row holds
    raise growing.refusal(session, op)


_CONTAINERS = (list, tuple, dict, deque, set, frozenset)
_LIKE: dict[type, Any] = {StagedFloat: 0.5, StagedStr: ""}
"""What has the operators of a number or text that only the run knows."""
_PLAIN_TYPES = (bool, int, float, complex, str, bytes, type(None), tuple, list, dict, set, frozenset, deque)
_ORDER = ("<", "<=", ">", ">=")
_REPEATED = (list, tuple, deque, str, bytes, bytearray)
_HASHING: tuple[Any, ...] = (set, frozenset, dict, type({}.keys()), type({}.items()))
_SEQUENCES = (list, tuple, deque)


_UNARY: dict[str, Callable[[Any], Any]] = {"-": operator.neg, "+": operator.pos, "~": operator.invert}


def unary(op: str, value: Any) -> Any:
    """``<op> value``.

    >>> unary("-", 1)
    -1
    """
    session = active()
    result = NOT_USERS if session is None or type(value) in _ITSELF else user_methods.unary(session, op, value)
    return _UNARY[op](value) if result is NOT_USERS else result
