"""Variables: values of a Program, each assigned once."""

from __future__ import annotations

from typing import Any

from runtime.ir.types import Type


class Variable:
    """One value: a Block argument or an Operator's output. Compared by identity; ``name`` is unique in its Program."""

    __slots__ = ("name", "type", "hint")

    def __init__(self, name: str, type: Type, hint: str = "") -> None:
        self.name = name
        self.type = type
        self.hint = hint
        """The user's name for the value, when it has one (for error messages)."""

    def __repr__(self) -> str:
        return f"%{self.name}"


class Undef:
    """The operand of a yield on a path where the value does not exist. A single instance, ``UNDEF``."""

    _instance: Undef | None = None

    def __new__(cls) -> Undef:
        if cls._instance is None:
            cls._instance = super().__new__(cls)
        return cls._instance

    def __repr__(self) -> str:
        return "undef"

    def __reduce__(self) -> str:
        return "UNDEF"


UNDEF = Undef()

Operand = Variable | Any
"""A Variable, a constant (None, bool, int, float, complex, str, torch dtype, device, layout, memory format, slice),
``UNDEF`` (in yields only), or a list, tuple or dict of operands."""
