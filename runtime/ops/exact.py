"""Functions that compute exactly with the items of a list and round once: ``scalar.exact.<name>``, given the numbers or
a list whose length only the run knows.

    %m : float = scalar.exact.mean(%a, %b, 2.0)      %s : float = scalar.exact.fsum(%xs)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

_OF_STATISTICS = ("geometric_mean", "harmonic_mean", "mean", "pstdev", "pvariance", "stdev", "variance")
NAMES = ("fsum", "hypot", *_OF_STATISTICS)


def exact(items: list[Any], name: str) -> float:
    """What the function of that name gives for the items, as a float.

    >>> exact([0.1] * 10, "fsum"), exact([1, 2.5], "mean"), exact([3.0, 4.0], "hypot")
    (1.0, 1.75, 5.0)
    """
    if name == "fsum":
        return math.fsum(items)
    if name == "hypot":
        return math.hypot(*items)
    import statistics  # brings the modules for fractions and decimals

    function: Callable[..., Any] = getattr(statistics, name)
    return float(function(items))


def _of(name: str) -> Callable[..., float]:
    def apply(*items: Any) -> float:
        return exact(items[0] if len(items) == 1 and isinstance(items[0], list) else list(items), name)

    return apply


FUNCTIONS: dict[str, Callable[..., float]] = {name: _of(name) for name in NAMES}
