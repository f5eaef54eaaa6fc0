"""Random generators that a function makes (``random.Random(3)``): made by each run, so nothing draws while tracing.

The trace has an object of the user's class, which stays as it was made; the Program has a ``runtime.ops.host.Made`` or
``MadeTorch``.
"""

from __future__ import annotations

import random
from typing import Any

import torch

from runtime import torch_internals
from runtime.kinds import is_a
from runtime.ops.host import Made, MadeTorch
from runtime.tracer.ambient.unasked import has_unasked
from runtime.tracer.recording.session import Session


def note(session: Session, family: str, made: Any) -> None:
    """Note one that is made here.

    Raises:
        TraceError: D2S214, in a loop or recursion, where there may be several at a time.
    """
    if session.constructs.touched or session.code.recursions:
        raise session.error(f"a {type(made).__name__} that is made in a loop or recursion is another one each time",
                            hint="Make it before the loop.", code="D2S214")
    stands_for = MadeTorch(made.device) if is_a(made, torch.Generator) else Made(family)
    session.objects.generators[id(made)] = made, stands_for, (place_of(made), session.location())


def place_of(generator: Any) -> Any:
    """Where the numbers of a generator are; None if it is of no class that has such a place."""
    if is_a(generator, random.Random):
        return generator.getstate()
    if is_a(generator, torch.Generator):
        with torch_internals.no_modes():
            return generator.get_state().numpy().tobytes()
    if has_unasked(generator, "bit_generator"):
        return repr(generator.bit_generator.state)
    return repr(generator.get_state(legacy=False)) if has_unasked(generator, "get_state") else None


def require_not_drawn(session: Session) -> None:
    """Require that nothing but the Program draws from the generators that the function makes.

    Raises:
        TraceError: D2S214.
    """
    for made, _, (before, location) in session.objects.generators.values():
        if place_of(made) != before:
            raise session.error(
                f"code that is not converted draws from a {type(made).__name__} that the function makes",
                hint="Make the generator outside, or let that code be converted.", code="D2S214", location=location)


def require_no_copy(session: Session) -> None:
    """Require that a generator, which code that is not converted has made, is no copy of one that the function makes.

    Raises:
        TraceError: D2S214.
    """
    for made, _, _ in session.objects.generators.values():
        raise session.error(f"a generator may be a copy of the {type(made).__name__} that the function makes",
                            hint="Make the generator outside, or a second one with the same seed.", code="D2S214")


__all__ = ["note", "place_of", "require_no_copy", "require_not_drawn"]
