"""The local variables that a construct hands over: the cells that its blocks share with the function around them.

    def body():                      blocks are closures: Python keeps ``y`` in a cell that ``body`` knows, too
        nonlocal y
        y = 1
    _d2s.if_stmt(c, body, None, "y")
"""

from __future__ import annotations

from collections.abc import Callable
from types import CellType, FunctionType
from typing import Any

from dy2static.origin import is_made
from runtime.kinds import is_a
from runtime.tracer.python_state.journal import Place, cell_value, set_cell


class Cells:
    """The variables called ``names``, read and written through the closures of a construct's ``functions``.

    One that is not bound has an empty cell, as Python leaves it; the tracer is given `Undefined` for it.
    """

    def __init__(self, names: str, *functions: Callable[..., Any] | None) -> None:
        blocks = [function for function in functions if is_a(function, FunctionType)]
        known: dict[str, CellType] = {}
        for block in blocks:
            known.update(zip(block.__code__.co_freevars, block.__closure__ or ()))
        own = names.split()
        self._cells = [(name, known[name]) for name in own]
        self._owners = {id(cell) for _, cell in self._cells}
        self.names = tuple("" if any(is_made(name, block.__code__) for block in blocks) else name for name in own)

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
