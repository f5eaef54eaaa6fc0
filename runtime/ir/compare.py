"""Are two Programs the same? Compared part by part, Variables by their names, constants by type and exact value."""

from __future__ import annotations

import math
import struct
from typing import Any

from runtime.ir.block import Block
from runtime.ir.operator import Operator
from runtime.ir.program import Program
from runtime.ir.tree import Leaf, Record
from runtime.ir.variable import Variable


def difference(a: Program, b: Program, locations: bool = True) -> str | None:
    """The path of the first difference (``"block.ops[3].args[0]"``), or None if the Programs are the same.

    ``locations=False`` ignores places in the source and the user's names of Variables.
    """
    return _Comparison(locations).same(a, b, "")


def _parts(value: Any, locations: bool) -> list[tuple[str, Any]] | None:
    """The named parts of an object of the IR; None for anything else."""
    if isinstance(value, Variable):
        parts = [("name", value.name), ("type", value.type)]
        return [*parts, ("hint", value.hint)] if locations else parts
    if isinstance(value, Operator):
        names = ["name", "args", "kwargs", "outputs", "blocks", "attrs", "grad_mode", "autocast"]
        return [(name, getattr(value, name)) for name in ([*names, "location"] if locations else names)]
    if isinstance(value, Block):
        return [(name, getattr(value, name)) for name in ("args", "ops", "yields")]
    if isinstance(value, (Leaf, Record)) or hasattr(type(value), "__dataclass_fields__"):
        return [
            (name, getattr(value, name))
            for name in type(value).__dataclass_fields__
            if locations or name != "location"
        ]
    return None


class _Comparison:
    def __init__(self, locations: bool) -> None:
        self.locations = locations
        self.pairs: dict[int, int] = {}

    def same(self, a: Any, b: Any, path: str) -> str | None:
        if type(a) is not type(b):
            return path
        if isinstance(a, Variable) and self.pairs.setdefault(id(a), id(b)) != id(b):
            return path
        if isinstance(a, (list, tuple)):
            return self.sequences(list(a), list(b), path)
        if isinstance(a, dict):
            return self.sequences(list(a.items()), list(b.items()), path)
        if isinstance(a, slice):
            return self.sequences([a.start, a.stop, a.step], [b.start, b.stop, b.step], path)
        parts = _parts(a, self.locations)
        if parts is None:
            return None if _equal(a, b) else path
        others = _parts(b, self.locations) or []
        for (name, one), (_, other) in zip(parts, others, strict=True):
            found = self.same(one, other, f"{path}.{name}".lstrip("."))
            if found is not None:
                return found
        return None

    def sequences(self, a: list[Any], b: list[Any], path: str) -> str | None:
        if len(a) != len(b):
            return path
        for index, (one, other) in enumerate(zip(a, b, strict=True)):
            found = self.same(one, other, f"{path}[{index}]")
            if found is not None:
                return found
        return None


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, float):
        if math.isnan(a) or math.isnan(b):
            return math.isnan(a) and math.isnan(b) and math.copysign(1, a) == math.copysign(1, b)
        return struct.pack("d", a) == struct.pack("d", b)
    if isinstance(a, complex):
        return _equal(a.real, b.real) and _equal(a.imag, b.imag)
    return bool(a == b)
