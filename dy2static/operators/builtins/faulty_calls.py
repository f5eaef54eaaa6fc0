"""Calls that raise ValueError or OverflowError for some values, in a ``try`` that catches it: ``int(text)``,
``chr(n)``, ``math.sqrt(v)``, ``math.exp(v)``.

    if _d2s.lacks(text, int, "call"):             # whether only the run knows, and it raises
        raise _d2s.lookup_error(text, int, "call")
    _d2s.holds(text, int, "call")
    n = int(text)                                 # does not raise
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from dy2static.operators.builtins import faulty_calls_in_python as asking
from dy2static.operators.calls.call import traced
from dy2static.operators.shared.staging import Session, Staged, active
from dy2static.operators.values.f_string import format_value
from runtime.kinds import is_a
from runtime.tracer.recording import reads

_NUMBERS = ("int", "float", "bool")


def number_for(value: Any, function: Any) -> Any:
    """What such a function takes a tensor for: its number. Anything else as it is."""
    session = active()
    if session is not None and is_a(value, torch.Tensor) and session.knows(value) and _rule(function) is not None:
        return reads.number(session, value)
    return value


def fails(session: Session, value: Any, function: Any, kind: str) -> Any:
    """Whether ``function(value)`` raises ValueError, or OverflowError, of a value that only the run knows; False for
    others."""
    question = _question(value, function, kind)
    return traced(session, question, (value,), {}) if question is not None else False


def note_fits(session: Session, value: Any, function: Any, kind: str) -> None:
    """It does not, as ``fails`` said."""
    if _question(value, function, kind) is not None:
        error = OverflowError if kind == "overflow" else ValueError
        session.values.fitting.append((session.scope, value.var, f"scalar.{_rule(function)}", error))


def error(value: Any, function: Any, kind: str) -> Exception:
    """What Python says of such a value."""
    if kind == "overflow":
        return OverflowError(_words(function, math.inf if function is int else 1e9))
    if is_a(value, Staged) and value.kind == "str":
        words = _words(function, "")  # with the text at its end
        return ValueError(words.removesuffix("''") + format_value(value, "r"))
    return ValueError(_words(function, math.nan if function is int else -1))


def _words(function: Any, value: Any) -> str:
    try:
        function(value)
    except (ValueError, OverflowError) as error:
        return str(error)
    raise AssertionError("it did not raise")


def _rule(function: Any) -> str | None:
    """The name of such a function as a scalar Operator's."""
    return next((name for one, name, _ in (*_RULES, *_OVERFLOWS) if one is function), None)


def _question(value: Any, function: Any, kind: str) -> Callable[[Any], Any] | None:
    """What is asked of a number or text that only the run knows."""
    if not is_a(value, Staged):
        return None
    rules = _OVERFLOWS if kind == "overflow" else _RULES
    questions = next((questions for one, _, questions in rules if one is function), {})
    return questions.get(value.kind)


_Rule = tuple[Any, str, dict[str, Callable[[Any], Any]]]
_LOGARITHMS: list[_Rule] = [(one, f"math.{one.__name__}", dict.fromkeys(_NUMBERS, asking.is_not_positive))
                            for one in (math.log, math.log2, math.log10)]
_RULES: list[_Rule] = [
    (int, "int", {"str": asking.no_int, "float": asking.is_nan}),
    (float, "float", {"str": asking.no_float}),
    (chr, "chr", {"int": asking.is_no_character}),
    (math.sqrt, "math.sqrt", dict.fromkeys(_NUMBERS, asking.is_negative)),
    *_LOGARITHMS,
]
_OVERFLOWS: list[_Rule] = [
    (int, "int", {"float": asking.is_infinite}), (math.exp, "math.exp", dict.fromkeys(_NUMBERS, asking.exp_overflows)),
]
"""Functions, their names as scalar Operators, and what is asked of each kind of value."""

__all__ = ["error", "fails", "note_fits", "number_for"]
