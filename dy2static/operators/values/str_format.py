"""``text.format(...)`` with values that are only known while the Program runs: each field as in an f-string.

    "{} of {n:>3}".format(a, n=b)   ->   f"{a} of {b:>3}"
"""

from __future__ import annotations

import string
from typing import Any

import torch

from dy2static.operators.shared.staging import any_staged
from dy2static.operators.values.f_string import format_value, fstring

_FORMATTER = string.Formatter()


def is_staged(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether a value to be formatted is a tensor, or holds staged numbers."""
    values = (*args, *kwargs.values())
    return any_staged(values) or any(isinstance(value, torch.Tensor) for value in values)


def str_format(text: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``text.format(*args, **kwargs)``, plain or staged text.

    >>> str_format("{} {1[0]!r:>4} {{{n:{w}}}}", (1, "ab"), {"n": 2, "w": 3})
    Traceback (most recent call last):
    ValueError: cannot switch from automatic field numbering to manual field specification
    >>> str_format("{} {[0]!r:>4} {{{n:{w}}}}", (1, "ab"), {"n": 2, "w": 3})
    "1  'a' {  2}"
    """
    return _formatted(text, args, kwargs, _Numbering())


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
            value, _ = _FORMATTER.get_field(name, args, kwargs)
        except IndexError:
            number = name.split(".")[0].split("[")[0]
            raise IndexError(f"Replacement index {number} out of range for positional args tuple") from None
        inner = _formatted(spec, args, kwargs, numbering) if spec else ""
        parts.append(format_value(value, conversion or -1, inner))
    return fstring(*parts) if parts else ""
