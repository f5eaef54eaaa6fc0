"""``"text" % values`` with values that are only known while the Program runs: each field as in an f-string.

    "%d of %-5s" % (n, t)   ->   f"{n:d} of {t!s:<5}"
"""

from __future__ import annotations

import operator
import re
from typing import Any

import torch

from dy2static.operators.calls import boundary
from dy2static.operators.calls.call import call
from dy2static.operators.constructs import user_methods
from dy2static.operators.provenance.names_read import note_answers
from dy2static.operators.shared import asked_methods
from dy2static.operators.shared.staging import (
    Choice,
    Staged,
    active,
    any_staged,
    distribute,
    python_method,
    spread,
)
from dy2static.operators.values.f_string import format_value, fstring
from runtime.tracer.values.identities import Identity

_FIELD = re.compile(r"%(?:%|(?:\((\w+)\))?([-+ 0]*)(\d*)(?:\.(\d+))?([diouxXeEfFgGsra]))")


def _tells(value: Any) -> bool:
    """Whether a value is a tensor, or a user's class tells its text."""
    return isinstance(value, torch.Tensor) or user_methods.is_users(
        python_method(value, "__str__") or python_method(value, "__repr__"))


def percent(text: str | bytes, values: Any) -> Any:
    """``text % values``.

    >>> percent("%d%% of %5s", (3, "a")), percent("%(n)s", {"n": 1})
    ('3% of     a', '1')
    """
    session = active()
    if session is None:
        return text % values
    if isinstance(values, Choice) and (isinstance(text, bytes) or any(
            isinstance(option, (tuple, dict)) for option in values.options)):
        return distribute(session, values, lambda option: percent(text, option))
    given = values if isinstance(values, tuple) else tuple(values.values()) if isinstance(values, dict) else (values,)
    boundary.require_none(session, "'%'", given)
    asked_methods.require_shown(session, "'%'", given)
    note_answers(session, *given)
    for value in given:
        if type(value) is Identity:
            value.refuse()
    if not (any_staged(given) or any(map(_tells, given))):
        return text % values
    if isinstance(text, str):
        fields = [found for found in _FIELD.finditer(text) if found[5]]
        given = _in_order(fields, values, given)
        if "%" not in _FIELD.sub("", text) and len(fields) == len(given) and all(map(_is_spelled, fields)):
            return _formatted(text, given)
    # other fields need Python's own values: a located error
    return spread(session, values, lambda one: text % one)


def _in_order(fields: list[re.Match[str]], values: Any, given: tuple[Any, ...]) -> tuple[Any, ...]:
    """The values that go into the fields: those that a dict has for their names where they have names."""
    named = [found[1] for found in fields if found[1] is not None]
    if not named:
        return (values,) if isinstance(values, dict) else given
    if type(values) is not dict or len(named) != len(fields) or not values.keys() >= set(named):
        return ()
    return tuple(values[name] for name in named)


def _formatted(text: str, given: tuple[Any, ...]) -> Any:
    parts: list[Any] = []
    end = 0
    remaining = iter(given)
    for found in _FIELD.finditer(text):
        parts.append(text[end:found.start()])
        parts.append(_field(found, next(remaining)) if found[5] else "%")
        end = found.end()
    return fstring(*(part for part in (*parts, text[end:]) if not isinstance(part, str) or part))


def _is_spelled(found: re.Match[str]) -> bool:
    """Whether a format specification says the same."""
    return not (found[5] in "diouxX" and found[4]) and not (found[5] == "a")


def _field(found: re.Match[str], value: Any) -> Any:
    flags, width, precision, kind = found[2], found[3], found[4], found[5]
    tail = f".{precision}" if precision else ""
    side = "<" if "-" in flags else ">" if width else ""
    if kind in "sr":
        return format_value(value, kind, side + width + tail)
    if isinstance(value, torch.Tensor):
        if kind in "oxX" and (value.is_floating_point() or value.is_complex()):
            raise TypeError(f"%{kind} format: an integer is required, not {type(value).__name__}")
        value = call(int if kind in "diu" else operator.index if kind in "oxX" else float, value)
    if isinstance(value, Staged) and value.kind == "str":
        return found[0] % ""  # raises what eager raises
    if kind in "diu":
        kind, value = "d", call(int, value) if isinstance(value, Staged) else int(found[0] % value)
    elif not isinstance(value, Staged):
        return found[0] % value
    elif kind not in "oxX" and value.kind != "float":
        value = call(float, value)
    sign = "+" if "+" in flags else " " if " " in flags else ""
    zeros = "0" if "0" in flags and "-" not in flags and width else ""
    return format_value(value, -1, f"{'' if zeros else side}{sign}{zeros}{width}{tail}{kind}")
