"""Random identifiers that a trace makes (``uuid.uuid4()``): eager makes others in each run, so none may show.

    name = f"axis.{uuid.uuid4().int}"     only tells things apart: the Program is the same with any other
    return str(uuid.uuid4())[:4]          a constant of the trace's

A trace that made identifiers is made once more with others, of which every hexadecimal digit differs. Where the two
Programs differ, or what leaves them, something came of an identifier. A Program for one call alone may hold its own.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable
from typing import Any

from runtime.tracer.recording.session import Session

_ADDRESS = re.compile("0x[0-9a-f]+")
_ALL = (1 << 128) - 1


class Others:
    """What the first of two traces of a call made, and how its Program reads."""

    def __init__(self) -> None:
        self.numbers: tuple[int, ...] = ()
        self._text: str | None = None

    def agree(self, session: Session, shown: Iterable[Any]) -> bool:
        """Whether the Program is known to be the same with other identifiers; if not, it is to be traced once more.

        Raises:
            TraceError: D2S214, it is another one.
        """
        made = session.call.identifiers
        if session.guards.are_for_one_call() or (not made and self._text is None):
            return True
        text = _ADDRESS.sub("", "\n".join(map(str, shown)))
        if self._text is None:
            self._text, self.numbers = text, tuple(number for number, _ in made)
            return False
        if text != self._text:
            raise session.error(
                "what a converted function gives, says, stores or decides depends on a random identifier (uuid4()), "
                "and would be the same in every run", code="D2S214", location=made[0][1] if made else None,
                hint="Make it outside and pass it in as an argument.")
        return True


def make(session: Session) -> uuid.UUID:
    """Another identifier."""
    known = session.call
    index = len(known.identifiers)
    number = known.unlike[index] ^ _ALL if index < len(known.unlike) else uuid.uuid4().int
    made = uuid.UUID(int=number, version=4)
    known.identifiers.append((made.int, session.location()))
    return made


__all__ = ["Others", "make"]
