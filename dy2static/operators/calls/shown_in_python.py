"""The texts of Python's own objects that hold others, written in Python: what a trace runs where only the run knows
what some of these are.

>>> of_fields(ascii(1), [], repr), escaped("é!"), of_deque(__import__("collections").deque([1], 3), repr)
('str()', '\\\\xe9!', 'deque([1], maxlen=3)')
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def of_fields(value: Any, names: list[str], text: Callable[[Any], str]) -> str:
    """What ``dataclass`` writes as ``__repr__``, of these fields."""
    shown = [f"{name}={text(getattr(value, name))}" for name in names]
    return type(value).__qualname__ + "(" + ", ".join(shown) + ")"


def of_list(value: Any, text: Callable[[Any], str]) -> str:
    """Of a list of which only the run knows how many items it has."""
    return "[" + ", ".join([text(one) for one in value]) + "]"


def of_tuple(value: Any, text: Callable[[Any], str]) -> str:
    return "(" + ", ".join([text(one) for one in value]) + (",)" if len(value) == 1 else ")")


def of_deque(value: Any, text: Callable[[Any], str]) -> str:
    end = "" if value.maxlen is None else f", maxlen={value.maxlen}"
    return f"{type(value).__name__}({text(list(value))}{end})"


def of_default_dict(value: Any, text: Callable[[Any], str]) -> str:
    return f"{type(value).__name__}({text(value.default_factory)}, {text(dict(value))})"


def of_ordered_dict(value: Any, text: Callable[[Any], str]) -> str:
    return f"{type(value).__name__}({text(list(value.items())) if value else ''})"


def of_ordered_dict_as_dict(value: Any, text: Callable[[Any], str]) -> str:
    """From Python 3.12 on."""
    return f"{type(value).__name__}({text(dict(value)) if value else ''})"


def of_namespace(value: Any, text: Callable[[Any], str]) -> str:
    shown = [f"{name}={text(one)}" for name, one in vars(value).items()]
    return "namespace(" + ", ".join(shown) + ")"


def escaped(text: str) -> str:
    """What ``ascii`` makes of the text that a class gives for its ``repr``."""
    if text.isascii():
        return text
    return "".join([letter if letter.isascii() else ascii(letter)[1:-1] for letter in text])


__all__ = ["escaped", "of_deque", "of_default_dict", "of_fields", "of_list", "of_namespace", "of_ordered_dict",
           "of_ordered_dict_as_dict", "of_tuple"]  # fmt: skip
