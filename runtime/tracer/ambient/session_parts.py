"""What a Session is made of: parts, each with fields that say how a failed attempt puts them back.

    @dataclass(eq=False)
    class Call(SessionPart):
        uses: list[Callable[[], Any]] = state(ITEMS, list)
        advanced: bool = state(KEPT, False)

A part stands in the lowest room that knows what its fields are about; ``recording/attempt.py`` reads how they are
put back.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from runtime.kinds import is_a

VALUE = "value"
"""Put back by assigning it: a number, a flag, a tuple."""
ITEMS = "items"
"""A list, dict or set: its items are put back. What they are is no part of the trace's state, or never changes."""
PARTS = "parts"
"""An object: its attributes are put back, and the items of those that are lists, dicts or sets."""
DEEP = "deep"
"""Everything of ours that it leads to is put back."""
KEPT = "kept"
"""Stays as it is, for the reason that stands there."""


class SessionPart:
    """Some of a Session's state: a dataclass, all of whose fields are ``state(...)``."""


def state(how: str, start: Any = None) -> Any:
    """A field of a `SessionPart`. ``start``: a class of which it is a new instance at first, or its first value."""
    first: dict[str, Any] = {"default_factory": start} if is_a(start, type) else {"default": start}
    return dataclasses.field(metadata={"how": how}, **first)


def states(part: SessionPart) -> Iterator[tuple[str, str]]:
    """The fields of a part: each with how it is put back."""
    for one in dataclasses.fields(part):  # type: ignore[arg-type]
        yield one.name, one.metadata["how"]


__all__ = ["DEEP", "ITEMS", "KEPT", "PARTS", "VALUE", "SessionPart", "state", "states"]
