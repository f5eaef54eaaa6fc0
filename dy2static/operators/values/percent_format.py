"""``"text" % values`` with values that are only known while the Program runs: each field as in an f-string.

    "%d of %-5s" % (n, t)   ->   f"{n:d} of {t!s:<5}"
    "%*d" % (w, n)          ->   f"{n:<{-w}d}" if w < 0 else f"{n:>{w}d}"
"""

from __future__ import annotations

import operator
import re
from typing import Any

import torch

from dy2static.operators.calls import boundary, growing
from dy2static.operators.calls.call import call
from dy2static.operators.provenance.names_read import note_answers
from dy2static.operators.shared import asked_methods
from dy2static.operators.shared.staging import (
    NO_NAMES,
    Choice,
    Session,
    Staged,
    active,
    any_staged,
    distribute,
    spread,
)
from dy2static.operators.values import traced_subscript
from dy2static.operators.values.f_string import format_value, fstring, is_told
from runtime.kinds import is_a
from runtime.ops.keyed import Keyed
from runtime.tracer.ambient.theirs import theirs
from runtime.tracer.control import cond as tracer_cond
from runtime.tracer.values.containers import opened

_FIELD = re.compile(r"%(?:%|(?:\((\w+)\))?([-+ 0]*)(\d*|\*)(?:\.(\d+|\*))?([diouxXeEfFgGsra]))")


def percent(text: str | bytes, values: Any) -> Any:
    """``text % values``.

    >>> percent("%d%% of %5s", (3, "a")), percent("%(n)s", {"n": 1})
    ('3% of     a', '1')
    """
    session = active()
    if session is None:
        return text % values
    values = opened(values)
    if is_a(values, Choice) and (is_a(text, bytes) or any(
            is_a(option, (tuple, dict)) for option in values.options)):
        return distribute(session, values, lambda option: percent(text, option))
    given = values if is_a(values, tuple) else tuple(values.values()) if is_a(values, dict) else (values,)
    shown = [one for one in given if is_a(one, Keyed) or growing.is_growing(one)]  # as text_of puts them together
    others = [one for one in given if not any(one is other for other in shown)]
    boundary.require_none(session, "'%'", others)
    asked_methods.require_shown(session, "'%'", others)
    note_answers(session, *given)
    asks = is_a(values, dict) and type(values) is not dict  # a factory, or a user's method, may give others
    if not (asks or shown or any_staged(given) or any(map(is_told, given))):
        return text % values
    if is_a(text, str):
        fields = [found for found in _FIELD.finditer(text) if found[5]]
        given = _in_order(session, fields, values, given)
        count = sum(1 + len(_stars(found)) for found in fields)
        if "%" not in _FIELD.sub("", text) and count == len(given) and all(map(_is_spelled, fields)):
            return _formatted(session, text, given)
    boundary.require_none(session, "'%'", shown)
    # other fields need Python's own values: a located error
    return spread(session, values, lambda one: _by_python(session, text, one))


def _by_python(session: Session, text: str | bytes, values: Any) -> Any:
    """``text % values``.

    Errors raised: TraceError (D2S210) for a width or precision that Python would take from a staged number.
    """
    starred = re.search(r"%[-+ #0]*[\d.]*\*", text if is_a(text, str) else text.decode("latin-1"))
    if starred and any(is_a(one, Staged) for one in (values if is_a(values, tuple) else (values,))):
        raise session.error(
            "a width or precision of '%' (*) stands beside a number or text that is only known while the Program runs",
            hint="Use an f-string, or write the width into the text.", code="D2S210")
    return text % values


def _stars(found: re.Match[str]) -> list[int]:
    """The groups of a field that values tell: its width, its precision."""
    return [group for group in (3, 4) if found[group] == "*"]


def _in_order(session: Session, fields: list[re.Match[str]], values: Any, given: tuple[Any, ...]) -> tuple[Any, ...]:
    """The values that go into the fields: those that a dict has for their names where they have names."""
    named = [found[1] for found in fields if found[1] is not None]
    if not named:
        return (values,) if is_a(values, dict) else given
    if not is_a(values, dict) or len(named) != len(fields):
        return ()
    return tuple(traced_subscript.read(session, values, name) for name in named)  # it may have a __missing__


def _formatted(session: Session, text: str, given: tuple[Any, ...]) -> Any:
    parts: list[Any] = []
    end = 0
    remaining = iter(given)
    for found in _FIELD.finditer(text):
        parts.append(text[end:found.start()])
        stars = {group: next(remaining) for group in _stars(found)}
        parts.append(_starred(session, found, stars, next(remaining)) if found[5] else "%")
        end = found.end()
    return fstring(*(part for part in (*parts, text[end:]) if not is_a(part, str) or part))


def _is_spelled(found: re.Match[str]) -> bool:
    """Whether a format specification says the same."""
    return not (found[5] in "diouxX" and found[4]) and not (found[5] == "a")


def _starred(session: Session, found: re.Match[str], stars: dict[int, Any], value: Any) -> Any:
    """The text of a field with the width and precision that ``stars`` tell. A negative width is one on the left."""
    for group, star in stars.items():
        if is_a(star, Choice):
            return distribute(session, star, lambda option, group=group: _starred(  # type: ignore[misc]
                session, found, {**stars, group: option}, value))
        if star.kind not in ("int", "bool") if is_a(star, Staged) else not is_a(star, int):
            raise TypeError("* wants int")
    flags, width, precision, kind = found[2], found[3], found[4], found[5]
    if 4 in stars:
        star = stars[4]
        precision = session.scalar("str", call(max, call(int, star), 0)) if is_a(star, Staged) else (
            str(max(int(star), 0)))
    if 3 not in stars:
        return _field(flags, width, precision, kind, value)
    told: Any = call(int, stars[3])
    if not any_staged([told]):
        return _field(flags + "-" if told < 0 else flags, str(abs(told)), precision, kind, value)
    return tracer_cond.cond(
        session, told < 0, lambda: _field(flags + "-", session.scalar("str", -told), precision, kind, value),
        lambda: _field(flags, session.scalar("str", told), precision, kind, value), NO_NAMES)


def _field(flags: str, width: Any, precision: Any, kind: str, value: Any) -> Any:
    """``width`` and ``precision``: digits, or nothing; they may be text that only the run knows."""
    is_known = not is_a(width, Staged) and not is_a(precision, Staged)
    is_wide = is_a(width, Staged) or width != ""
    tail: Any = "" if precision is None else fstring(".", precision)
    side = "<" if "-" in flags else ">" if is_wide else ""
    if kind in "sr":
        return format_value(value, kind, fstring(side, width, tail))
    if is_a(value, torch.Tensor):
        if kind in "oxX" and (value.is_floating_point() or value.is_complex()):
            raise TypeError(f"%{kind} format: an integer is required, not {type(value).__name__}")
        value = call(int if kind in "diu" else operator.index if kind in "oxX" else float, value)
    if is_a(value, Staged) and value.kind == "str":
        return theirs(operator.mod, f"%{kind}", "")  # raises what eager raises
    if kind in "diu":
        value = call(int, value) if is_a(value, Staged) else int("%d" % value)  # noqa: UP031
        kind = "d"
    elif not is_a(value, Staged):
        if is_known:
            return f"%{flags}{width}{tail}{kind}" % value
        plain = f"%{kind}" % value  # raises what eager raises
        value = int(plain, 8 if kind == "o" else 16) if kind in "oxX" else float(value)
    elif kind not in "oxX" and value.kind != "float":
        value = call(float, value)
    sign = "+" if "+" in flags else " " if " " in flags else ""
    zeros = "0" if "0" in flags and "-" not in flags and is_wide else ""
    return format_value(value, -1, fstring("" if zeros else side, sign, zeros, width, tail, kind))
