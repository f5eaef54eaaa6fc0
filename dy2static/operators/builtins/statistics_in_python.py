"""Functions of ``statistics`` written in Python: what a trace runs where only the run knows the numbers.

``whole``: whether the data are ints. Where Python computes exactly and rounds once, ``exact`` does.

>>> mean([1, 2], True), mean([1, 3], True), mean([0.5, 1], False), median([3, 1, 2]), mode("abb")
(1.5, 2, 0.75, 2, 'b')
"""

from __future__ import annotations

import statistics
import sys
from typing import Any

from runtime.ops.exact import exact


def mean(data: Any, whole: bool) -> Any:
    items = list(data)
    if len(items) < 1:
        raise statistics.StatisticsError("mean requires at least one data point")
    return _ratio(sum(items), len(items)) if whole else exact(items, "mean")


def fmean(data: Any) -> float:
    items = list(data)
    if len(items) < 1:
        raise statistics.StatisticsError("fmean requires at least one data point")
    return exact(items, "fsum") / len(items)


def harmonic_mean(data: Any) -> Any:
    items = list(data)
    if len(items) < 1:
        raise statistics.StatisticsError("harmonic_mean requires at least one data point")
    for item in items:
        if item < 0:
            raise statistics.StatisticsError("harmonic mean does not support negative values")
        if item == 0 and len(items) > 1:
            return 0
    return items[0] if len(items) == 1 else exact(items, "harmonic_mean")


def geometric_mean(data: Any) -> float:
    return exact(list(data), "geometric_mean")


_OF_ONE = sys.version_info >= (3, 13)
"""Whether one item has quantiles."""


def _ratio(a: int, b: int) -> Any:
    """``a / b`` as ``statistics`` gives it for ints."""
    return a // b if a % b == 0 else a / b


def _median_of(data: Any) -> list[Any]:
    items = sorted(data)
    if len(items) == 0:
        raise statistics.StatisticsError("no median for empty data")
    return items


def median(data: Any) -> Any:
    items = _median_of(data)
    n = len(items)
    if n % 2 == 1:
        return items[n // 2]
    return (items[n // 2 - 1] + items[n // 2]) / 2


def median_low(data: Any) -> Any:
    items = _median_of(data)
    n = len(items)
    return items[n // 2] if n % 2 == 1 else items[n // 2 - 1]


def median_high(data: Any) -> Any:
    items = _median_of(data)
    return items[len(items) // 2]


def mode(data: Any) -> Any:
    most = multimode(data)
    if len(most) == 0:
        raise statistics.StatisticsError("no mode for empty data")
    return most[0]


def multimode(data: Any) -> list[Any]:
    items = list(data)
    counts = [max(sum([1 if one == item else 0 for one in items]), 1) for item in items]
    most = max(counts, default=0)
    found: list[Any] = []
    for item, count in zip(items, counts):
        if count == most and item not in found:
            found.append(item)
    return found


def quantiles(data: Any, n: int = 4, method: str = "exclusive") -> list[Any]:
    if n < 1:
        raise statistics.StatisticsError("n must be at least 1")
    items = sorted(data)
    count = len(items)
    if count == 1 and _OF_ONE:
        return items * (n - 1)
    if count < 2:
        raise statistics.StatisticsError(f"must have at least {'one data point' if _OF_ONE else 'two data points'}")
    result = []
    if method == "inclusive":
        for i in range(1, n):
            j, delta = divmod(i * (count - 1), n)
            result.append((items[j] * (n - delta) + items[j + 1] * delta) / n)
        return result
    if method == "exclusive":
        for i in range(1, n):
            j = min(max(i * (count + 1) // n, 1), count - 1)
            delta = i * (count + 1) - j * n
            result.append((items[j - 1] * (n - delta) + items[j] * delta) / n)
        return result
    raise ValueError(f"Unknown method: {method!r}")


def pvariance(data: Any, whole: bool) -> Any:
    items = list(data)
    if len(items) < 1:
        raise statistics.StatisticsError("pvariance requires at least one data point")
    return _ratio(_deviations(items), len(items) * len(items)) if whole else exact(items, "pvariance")


def variance(data: Any, whole: bool) -> Any:
    items = list(data)
    if len(items) < 2:
        raise statistics.StatisticsError("variance requires at least two data points")
    return _ratio(_deviations(items), len(items) * (len(items) - 1)) if whole else exact(items, "variance")


def _deviations(items: list[int]) -> int:
    """The sum of the squares of the deviations, times the number of items."""
    total = sum(items)
    return len(items) * sum([item * item for item in items]) - total * total


def pstdev(data: Any) -> float:
    items = list(data)
    if len(items) < 1:
        raise statistics.StatisticsError("pstdev requires at least one data point")
    return exact(items, "pstdev")


def stdev(data: Any) -> float:
    items = list(data)
    if len(items) < 2:
        raise statistics.StatisticsError("stdev requires at least two data points")
    return exact(items, "stdev")


def fsum(data: Any) -> float:
    return exact(list(data), "fsum")


def dist(p: Any, q: Any) -> float:
    first, second = list(p), list(q)
    if len(first) != len(second):
        raise ValueError("both points must have the same number of dimensions")
    return exact([float(a) - float(b) for a, b in zip(first, second)], "hypot")


def sumprod(p: Any, q: Any) -> int:
    """Of ints."""
    first, second = list(p), list(q)
    if len(first) != len(second):
        raise ValueError("Inputs are not the same length")
    return sum([a * b for a, b in zip(first, second)])
