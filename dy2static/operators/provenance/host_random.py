"""Python's and NumPy's random numbers, drawn by code that is not converted.

    @not_to_static
    def jitter(x): return x * random.random()      the Program is for this call alone, as others draw other numbers

While a trace lasts nothing else may draw from the generators that all share: what converted code draws is drawn by
runs.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy

from dy2static.operators.provenance.observed import done
from dy2static.operators.provenance.provenance import memo
from dy2static.operators.shared.staging import Session

_FAMILIES = {"Python's": "host.random.", "NumPy's": "host.numpy."}
"""What the Operators are called that draw from each generator."""


@contextmanager
def noted_draws(session: Session) -> Iterator[None]:
    """While the block runs code that is not converted: note that it draws from the generators that all share, or
    seeds them.

    Raises:
        TraceError: D2S277, on a path that only some inputs take; D2S214, where the Program draws before.
    """
    with watched_draws(session) as drawn:
        yield
    for name in drawn:
        done(session, f"{name} random numbers are drawn")


@contextmanager
def watched_draws(session: Session) -> Iterator[list[str]]:
    """Around what the trace may run: afterwards, from which generators it drew.

    Raises:
        TraceError: D2S214, where the Program draws before.
    """
    before, drawn = _states(*_now()), list[str]()
    yield drawn
    for name, now in _states(*_now()).items():
        if now != before[name]:
            _require_first(session, name)
            memo(session).streams[name] = now
            drawn.append(name)


def _require_first(session: Session, name: str) -> None:
    """Refuse a draw of the trace's after one that a run makes later: each would get the other's number."""
    for op in session.program.block.walk():
        if op.name.startswith(_FAMILIES[name]) and "generator" not in op.kwargs:
            raise session.error(
                f"{name} random numbers are drawn by code that is not converted, after "
                f"{op.name.partition('.')[2]}() of the Program",
                code="D2S214", hint="Let that code be converted, or call it before.")


@contextmanager
def put_back(session: Session) -> Iterator[None]:
    """Where the block, a trace, ends in an exception, both generators are where they were: it may be done again.

    Raises:
        TraceError: D2S214, if something drew that the trace did not notice: a default factory, a key function in C.
    """
    before = _now()
    memo(session).streams = _states(*before)
    try:
        yield
        for name, now in _states(*_now()).items():
            if now != memo(session).streams[name]:
                raise session.error(
                    f"{name} random numbers are drawn by code that is called from C, while the function is converted: "
                    "a run of the Program would not repeat it", code="D2S214",
                    hint="Draw them in converted code, and pass the numbers on.")
    except BaseException:
        random.setstate(before[0])
        numpy.random.set_state(before[1])
        raise


def _now() -> tuple[Any, Any]:
    return random.getstate(), numpy.random.get_state()


def _states(pythons: Any, numpys: Any) -> dict[str, Any]:
    """The states of both generators, as something to compare."""
    kind, words, *rest = numpys
    return {"Python's": pythons, "NumPy's": (kind, numpy.asarray(words).tobytes(), *rest)}


__all__ = ["noted_draws", "put_back", "watched_draws"]
