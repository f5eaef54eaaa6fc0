"""Values that are one of several texts: where each of all combinations would be a case of its own, texts of the run."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable
from typing import Any

from dy2static.operators.shared.staging import Choice, Session, Staged, distribute
from runtime.ir import ScalarType
from runtime.kinds import is_a
from runtime.tracer.numbers import scalars

_COMBINATIONS = 8


def is_chosen(value: Any) -> bool:
    """Whether a value is one of several texts."""
    return is_a(value, Choice) and all(
        type(option) is str or is_a(option, scalars.StagedStr) for option in value.options)


def many(values: Iterable[Any]) -> bool:
    """Whether values of which some are one of several have too many combinations to go through them all."""
    return math.prod(len(value.options) for value in values if is_a(value, Choice)) > _COMBINATIONS


def of_the_run(session: Session, text: Any) -> Any:
    """A text, or one of several, as one that only the run knows."""
    if is_a(text, Choice):
        return distribute(session, text, functools.partial(of_the_run, session))
    if is_a(text, Staged):
        return text
    return scalars.wrap(session.emit("scalar.str", [text], types=[ScalarType("str")])[0])


__all__ = ["is_chosen", "many", "of_the_run"]
