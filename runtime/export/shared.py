"""What several targets are written by alike: Blocks in place, the text of exceptions, places in the user's source.

    raise("no convergence after ", %n) {exception: "ValueError"}    ->    "ValueError: no convergence after {}"
"""

from __future__ import annotations

from pathlib import PurePath
from typing import Any, Protocol

from runtime.ir import Block, Operand, Operator, Variable
from runtime.ir.definition import definition_of
from runtime.ir.location import Location


def place(location: Location | None) -> str:
    """A place in the user's source, without folders: ``fit.py:12``."""
    return "" if location is None else f"{PurePath(location.file).name}:{location.line}"


class Nothing:
    """In place of a value that a run has no use for, and the target no form: None, text. Who reads it is refused."""

    def __init__(self, reason: str, constant: Any = None) -> None:
        self.reason, self.constant = reason, constant


class Translates(Protocol):
    """What knows the values of Variables while a Program is written."""

    def block(self, block: Block) -> None: ...

    def give(self, var: Variable, value: Any) -> None: ...

    def value(self, operand: Operand) -> Any: ...

    def nothing(self, operand: Operand) -> Nothing | None: ...


def message_of(t: Translates, op: Operator) -> str:
    """What the exception of a ``raise`` or ``assert`` says: its class, and its text as far as it is known."""
    parts = list(op.args)
    if definition_of(op.name).asserts:
        message = op.attrs.get("message")
        parts = [*([] if message is None else [message]), *parts[1:]]
    name = str(op.attrs["exception"]).rpartition(".")[2]
    text = "".join(_shown(t, part) for part in parts)
    return (f"{name}: {text}" if text else name)[:300]


def text_of(t: Translates, op: Operator) -> Nothing:
    """What an Operator that makes text stands for: nobody but exceptions can say it."""
    short = op.name.removeprefix("scalar.")
    parts = list(op.args) if short == "add" else list(op.args[:1])
    return Nothing("text as a value of the run", "".join(_shown(t, part) for part in parts))


def _shown(t: Translates, part: Operand) -> str:
    """A text as it is, and what only the run knows as ``{}``."""
    if not isinstance(part, Variable):
        return str(part)
    found = t.nothing(part)
    return str(found.constant) if found is not None and isinstance(found.constant, str) else "{}"


SPLIT = 2.0**27 + 1
"""A float times this, and the difference of that to itself, is its upper half of digits: products of halves are exact.
(Veltkamp's splitting; with it Dekker's product tells what a rounded product lacks.)"""


def halves(value: float) -> tuple[float, float]:
    """The upper and the lower half of a float's digits.

    >>> sum(halves(1e22)) == 1e22, halves(10.0)
    (True, (10.0, 0.0))
    """
    high = value * SPLIT - (value * SPLIT - value)
    return high, value - high


def no_digits(digits: Operand, kind: str) -> str:
    """Why ``round()`` to a number of digits has no form, if it has none. To 22 digits, the power of ten is exact."""
    if digits is None or (type(digits) is int and 0 <= digits <= (22 if kind == "float" else 2**31)):
        return ""
    return "round() to a number of digits that is no constant from 0 to 22"


__all__ = ["SPLIT", "Nothing", "Translates", "halves", "message_of", "no_digits", "place", "text_of"]
