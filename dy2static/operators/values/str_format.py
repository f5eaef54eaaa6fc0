"""``text.format(...)`` with values that are only known while the Program runs: each field as in an f-string.

    "{} of {n:>3}".format(a, n=b)   ->   f"{a} of {b:>3}"
"""

from __future__ import annotations

import string
from typing import Any

from dy2static.operators.shared.staging import any_staged
from dy2static.operators.values.attribute import attr
from dy2static.operators.values.f_string import format_value, fstring, is_told
from dy2static.operators.values.subscript import item

_FORMATTER = string.Formatter()


def is_staged(text: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether the text of a value to be formatted is made in converted code, or a field reads an attribute or item."""
    values = (*args, *kwargs.values())
    if _reads_inside(text):
        return True
    return any_staged(values) or any(map(is_told, values))


def _reads_inside(text: str) -> bool:
    """Whether a field reads an attribute or an item of a value: ``{0.a}``, ``{n[0]}``."""
    try:
        for _, field, spec, _ in _FORMATTER.parse(text):
            named = (field or "") + (spec if spec and "{" in spec else "")
            if "." in named or "[" in named:
                return True
        return False
    except ValueError:  # no text that can be formatted
        return False


def str_format(text: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``text.format(*args, **kwargs)``, plain or staged text.

    >>> str_format("{} {1[0]!r:>4} {{{n:{w}}}}", (1, "ab"), {"n": 2, "w": 3})
    Traceback (most recent call last):
    ValueError: cannot switch from automatic field numbering to manual field specification
    >>> str_format("{} {[0]!r:>4} {{{n:{w}}}}", (1, "ab"), {"n": 2, "w": 3})
    "1  'a' {  2}"
    """
    return _formatted(text, args, kwargs, _Numbering())


class _Value:
    """A value to be formatted, whose attributes and items are read as converted code does."""

    def __init__(self, value: Any) -> None:
        object.__setattr__(self, "_value", value)

    def __getattribute__(self, name: str) -> _Value:
        return _Value(attr(_held(self), name))

    def __getitem__(self, key: Any) -> _Value:
        return _Value(item(_held(self), key))


def _held(value: _Value) -> Any:
    return object.__getattribute__(value, "_value")


def _looked_up(field: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    given = [_Value(arg) for arg in args], {name: _Value(arg) for name, arg in kwargs.items()}
    return _held(_FORMATTER.get_field(field, *given)[0])


class _Numbering:
    """Which positional field comes next; None as soon as fields are numbered by hand."""

    def __init__(self) -> None:
        self._next: int | None = None
        self._manual = False

    def name(self, field: str) -> str:
        first = field.split(".")[0].split("[")[0]
        if first and not first.isdigit():
            return field
        if (not first and self._manual) or (first and self._next is not None):
            old, new = ("manual", "automatic") if not first else ("automatic", "manual")
            names = {"manual": "manual field specification", "automatic": "automatic field numbering"}
            raise ValueError(f"cannot switch from {names[old]} to {names[new]}")
        if first:
            self._manual = True
            return field
        number = self._next or 0
        self._next = number + 1
        return f"{number}{field}"


def _formatted(text: str, args: tuple[Any, ...], kwargs: dict[str, Any], numbering: _Numbering) -> Any:
    parts: list[Any] = []
    for literal, field, spec, conversion in _FORMATTER.parse(text):
        if literal:
            parts.append(literal)
        if field is None:
            continue
        name = numbering.name(field)
        try:
            value = _looked_up(name, args, kwargs)
        except IndexError:
            number = name.split(".")[0].split("[")[0]
            raise IndexError(f"Replacement index {number} out of range for positional args tuple") from None
        inner = _formatted(spec, args, kwargs, numbering) if spec else ""
        parts.append(format_value(value, conversion or -1, inner))
    return fstring(*parts) if parts else ""
