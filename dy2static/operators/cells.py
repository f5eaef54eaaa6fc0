"""The local variables that a construct hands over: the cells that its blocks share with the function around them.

    def body():                      blocks are closures: Python keeps ``y`` in a cell that ``body`` knows, too
        nonlocal y
        y = 1
    _d2s.if_stmt(c, body, None, "y")
"""

from __future__ import annotations

from collections.abc import Callable
from types import CellType
from typing import Any

from dy2static.names import is_generated
from runtime.tracer.journal import Place, cell_value, set_cell


class Cells:
    """The variables called ``names``, read and written through the closures of a construct's ``functions``.

    One that is not bound has an empty cell, as Python leaves it; the tracer is given `Undefined` for it.
    """

    def __init__(self, names: str, *functions: Callable[..., Any] | None) -> None:
        known: dict[str, CellType] = {}
        for function in functions:
            closure = getattr(function, "__closure__", None)
            if closure is not None:
                known.update(zip(function.__code__.co_freevars, closure))  # type: ignore[union-attr] # a function's
        own = names.split()
        self._cells = [(name, known[name]) for name in own]
        self._owners = {id(cell) for _, cell in self._cells}
        self.names = tuple("" if is_generated(name) else name for name in own)

    def get(self) -> tuple[Any, ...]:
        """Their values now."""
        return tuple(cell_value(cell, name) for name, cell in self._cells)

    def set(self, values: tuple[Any, ...]) -> None:
        """Assign them; what is unbound is deleted."""
        for (_, cell), value in zip(self._cells, values):
            set_cell(cell, value)

    def holds(self, place: Place) -> bool:
        """Whether the place is the cell of one of them, which a function that declares it ``nonlocal`` stores to."""
        return id(place.owner) in self._owners


__all__ = ["Cells"]
