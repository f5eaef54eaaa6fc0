"""Python's and NumPy's random numbers, drawn by code that is not converted.

    @not_to_static
    def jitter(x): return x * random.random()      the Program is for this call alone, as others draw other numbers
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy

from dy2static.operators.provenance.observed import done
from dy2static.operators.shared.staging import Session


@contextmanager
def noted_draws(session: Session) -> Iterator[None]:
    """While the block runs code that is not converted: note that it draws from the generators that all share, or
    seeds them.

    Raises:
        TraceError: D2S277, on a path that only some inputs take.
    """
    before = _states()
    yield
    for (name, now), (_, then) in zip(_states(), before):
        if now != then:
            done(session, f"{name} random numbers are drawn")


@contextmanager
def put_back() -> Iterator[None]:
    """Where the block, a trace, ends in an exception, both generators are where they were: it may be done again."""
    before = random.getstate(), numpy.random.get_state()
    try:
        yield
    except BaseException:
        random.setstate(before[0])
        numpy.random.set_state(before[1])
        raise


def _states() -> list[tuple[str, Any]]:
    kind, words, *rest = numpy.random.get_state()
    return [("Python's", random.getstate()), ("NumPy's", (kind, numpy.asarray(words).tobytes(), *rest))]


__all__ = ["noted_draws", "put_back"]
