"""What Python's own syntax reads in the body of a class, whose branches, loops and unpacking are not converted.

    class C:
        n = 1 if xs else 0   ->   n = 1 if pythons(xs) else 0
"""

from __future__ import annotations

from typing import Any

from dy2static.operators.calls import growing
from dy2static.operators.shared.staging import active
from runtime.tracer.values.containers import several


def pythons(value: Any) -> Any:
    """The value, where Python may read it.

    Raises:
        TraceError: D2S253, its length is only known while the Program runs; D2S254, what it holds differs between
            paths.
    """
    session = active()
    if session is None:
        return value
    if growing.is_growing(value):
        raise session.error(
            f"a {type(value).__name__} whose length is only known while the Program runs is read in the body of a "
            "class", hint="Read it before the class statement, and use the result there.", code="D2S253")
    if session.containers.has_contents and several(value) is not None:
        raise session.error(
            f"a {type(value).__name__} is read in the body of a class, and what it holds differs between paths",
            hint="Read it before the class statement, and use the result there.", code="D2S254")
    return value


__all__ = ["pythons"]
