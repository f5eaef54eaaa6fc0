"""What a peer's process says and hears: one JSON document a line.

    {"prepare": "W3", "column": "jax.jit"}    ->   {"first": 1.2, "sum": 3.25}     or   {"error": "..."}
    {"time": "W3", "column": "jax.jit"}       ->   {"us": 812.5}
    {"versions": true}                        ->   {"versions": {"jax": "0.10.2"}}

``first`` is the wall time of the first call, ``sum`` a number to compare results by, ``us`` the processor time of the
best of the calls that fit into a twentieth of a second.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

Step = Callable[[], Any]
Make = Callable[[str], Step]
"""From a workload to a call, which gives arrays when it is done. Raises KeyError for a workload that is not written."""

ROOM = 0.05


def serve(columns: dict[str, Make], versions: dict[str, str]) -> None:
    """Answer until the input ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what frameworks print is no answer
    steps: dict[tuple[str, str], Step] = {}
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            said: dict[str, Any] = _answer(asked, columns, versions, steps)
        except KeyError as error:
            said = {"error": f"not written: {error}"}
        except Exception as error:  # whatever a framework raises is a row of the table
            said = {"error": f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"[:160]}
        answers.write(json.dumps(said) + "\n")
        answers.flush()


def _answer(asked: dict[str, Any], columns: dict[str, Make], versions: dict[str, str],
            steps: dict[tuple[str, str], Step]) -> dict[str, Any]:  # fmt: skip
    if "versions" in asked:
        return {"versions": versions, "columns": list(columns)}
    name, column = asked.get("prepare") or asked["time"], asked["column"]
    if "prepare" in asked:
        step = columns[column](name)
        begin = time.perf_counter()
        found = step()
        first = time.perf_counter() - begin
        steps[name, column] = step
        for _ in range(20):  # whatever is done in the first calls only
            step()
            if time.perf_counter() - begin > first + 5:
                break
        return {"first": first, "sum": total(found)}
    return {"us": timed(steps[name, column]) * 1e6}


def total(found: Any) -> float:
    """The sum of the magnitudes of what was computed."""
    if isinstance(found, (list, tuple)):
        return sum(map(total, found))
    return float(np.abs(np.asarray(found, dtype=np.float64)).sum())


def timed(step: Step) -> float:
    """Seconds of processor time of the best call."""
    best, end = float("inf"), time.perf_counter() + ROOM
    while True:
        begin = time.process_time()
        step()
        best = min(best, time.process_time() - begin)
        if time.perf_counter() > end:
            return best
