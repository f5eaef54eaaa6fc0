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


MOST = 16
"""Derivatives of one Program for one kind of arguments that hold for some sizes only."""
_MOST_SHAPES = 1024
"""Shapes of arguments of which it is kept which derivative serves them."""


class OfSizes:
    """Which of several derivatives serves arguments of which sizes, where each holds for some only.

    A key says what else a derivative depends on.
    """

    def __init__(self) -> None:
        self._limits: dict[Any, list[list[Assumed]]] = {}
        """What each derivative assumes."""
        self._of_shapes: dict[Any, int] = {}

    def is_full(self, key: Any) -> bool:
        """Whether there are so many derivatives already that there shall be no more."""
        return len(self._limits.get(key, ())) >= MOST

    def find(self, key: Any, arguments: Sequence[Any]) -> Any:
        """The key of the first derivative of which all holds that it assumes; of one that is not there yet if there is
        none. ``key`` itself where one serves all sizes."""
        every = self._limits.get(key)
        if every is None:
            return key
        shapes = tuple(getattr(argument, "shape", ()) for argument in arguments)
        number = self._of_shapes.get((key, shapes))
        if number is None:
            found = (place for place, limits in enumerate(every) if all(limit.holds(shapes) for limit in limits))
            number = next(found, len(every))
            if number < len(every):
                if len(self._of_shapes) > _MOST_SHAPES:
                    self._of_shapes.clear()
                self._of_shapes[key, shapes] = number
        return key, number

    def add(self, key: Any, limits: Sequence[Assumed], arguments: Sequence[Any]) -> Any:
        """The key of a derivative that was made for these arguments and holds within ``limits``."""
        shapes = tuple(getattr(argument, "shape", ()) for argument in arguments)
        told = all(limit.holds(shapes) for limit in limits)  # else what it says cannot be told by numbers
        every = self._limits.setdefault(key, [])
        every.append([*limits] if told else [Assumed.exactly(shapes)])
        return key, len(every) - 1


__all__ = ["Assumed", "OfSizes"]
