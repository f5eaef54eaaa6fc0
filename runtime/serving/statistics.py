"""What a Predictor has done so far: numbers for a metrics page."""

from __future__ import annotations

import threading
import time
from collections import deque
from dataclasses import dataclass


@dataclass(frozen=True)
class Statistics:
    """Since the Predictor was made: requests answered and failed, runs and the rows in them, seconds.

    ``p50`` and ``p99``: of the last requests (at most 2048), seconds from a request's arrival to its answer.
    """

    requests: int
    errors: int
    runs: int
    running: float
    p50: float
    p99: float


class Counters:
    """Numbers that several threads add to."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests = self._errors = self._runs = 0
        self._running = 0.0
        self._latencies: deque[float] = deque(maxlen=2048)

    def request(self, began: float, failed: bool) -> None:
        """One more request, which arrived at ``began`` (``time.perf_counter``)."""
        spent = time.perf_counter() - began
        with self._lock:
            self._requests += not failed
            self._errors += failed
            self._latencies.append(spent)

    def run(self, spent: float) -> None:
        """One more run of the Program."""
        with self._lock:
            self._runs += 1
            self._running += spent

    def told(self) -> Statistics:
        """What there is to tell."""
        with self._lock:
            ordered = sorted(self._latencies)
            return Statistics(self._requests, self._errors, self._runs, self._running, percentile(ordered, 50),
                              percentile(ordered, 99))  # fmt: skip


def percentile(ordered: list[float], percent: int) -> float:
    """The least value that so many percent of the values do not exceed; 0 of none.

    >>> percentile([1.0, 2.0, 3.0, 4.0], 50), percentile([1.0, 2.0, 3.0, 4.0], 99)
    (2.0, 4.0)
    """
    return ordered[max(-(-len(ordered) * percent // 100) - 1, 0)] if ordered else 0.0


__all__ = ["Counters", "Statistics", "percentile"]
