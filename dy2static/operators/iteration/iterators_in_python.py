"""Iterators that a path may advance, or whose items only the run counts, as objects with a place: what stands for
``itertools.count(...)`` and ``iter(items)`` of a list that grew. This code is converted like the user's.
"""

from __future__ import annotations

from typing import Any, NoReturn

from runtime.tracer.ambient.state import current
from runtime.tracer.values.transient import Transient


class _Placed(Transient):
    def leave(self) -> NoReturn:
        """Refuse to be a result.

        Raises:
            TraceError: D2S266.
        """
        raise current().error("an iterator that only the run advances leaves the function", code="D2S266",
                              hint="Return the items, or the number.")


class Count(_Placed):
    """``itertools.count``.

    >>> counter = Count(3, 2)
    >>> [next(counter), next(counter)]
    [3, 5]
    """

    def __init__(self, start: Any, step: Any) -> None:
        self.number, self.step = start, step

    def __iter__(self) -> Count:
        return self

    def __next__(self) -> Any:
        number = self.number
        self.number = number + self.step
        return number


class Items(_Placed):
    """What ``iter`` gives of a list or tuple: at its end it stays there, though the list may become longer.

    >>> items = Items("ab")
    >>> [next(items), next(items), items.otherwise("none")]
    ['a', 'b', 'none']
    """

    def __init__(self, items: Any) -> None:
        self.items, self.place, self.ended = items, 0, False

    def __iter__(self) -> Items:
        return self

    def __next__(self) -> Any:
        place = self.place
        if self.ended or place >= len(self.items):
            self.ended = True
            raise StopIteration
        self.place = place + 1
        return self.items[place]

    def otherwise(self, default: Any) -> Any:
        """``next(items, default)``."""
        place = self.place
        if self.ended or place >= len(self.items):
            self.ended = True
            return default
        self.place = place + 1
        return self.items[place]


__all__ = ["Count", "Items"]
