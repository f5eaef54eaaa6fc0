"""What a derivative assumes of the sizes of arguments, because PyTorch's own formula asked for one as a number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, eq=False)
class Assumed:
    """``sizes``: arguments (inputs, then parameters), dimensions and what these are. ``facts``: what holds of symbols,
    as SymPy has it; ``places``: of which argument and dimension each symbol is the size."""

    sizes: tuple[tuple[int, int, int], ...]
    facts: tuple[Any, ...]
    places: Mapping[Any, tuple[int, int]]

    @staticmethod
    def exactly(shapes: Sequence[Sequence[int]]) -> Assumed:
        """These very shapes."""
        every = ((index, dim, size) for index, shape in enumerate(shapes) for dim, size in enumerate(shape))
        return Assumed(tuple(every), (), {})

    def holds(self, shapes: Sequence[Sequence[int]]) -> bool:
        """Whether arguments of these shapes are as it is assumed.

        >>> import sympy
        >>> s = sympy.Symbol("s", integer=True)
        >>> one = Assumed(((1, 0, 3),), (s > 1,), {s: (0, 1)})
        >>> one.holds([(5, 2), (3,)]), one.holds([(5, 1), (3,)]), one.holds([(5, 2), (4,)])
        (True, False, False)
        """
        import sympy

        if any(shapes[index][dim] != size for index, dim, size in self.sizes):
            return False
        numbers = {symbol: sympy.Integer(shapes[index][dim]) for symbol, (index, dim) in self.places.items()}
        return all(fact.xreplace(numbers) is sympy.true for fact in self.facts)


__all__ = ["Assumed"]
