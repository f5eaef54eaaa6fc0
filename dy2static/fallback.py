"""``full_graph=False``: calls that no Program can answer run as plain Python, piece by piece, and that is said once."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from dy2static.cache_key import Key
from dy2static.errors import InternalError
from dy2static.pieces import Part, Pieces
from dy2static.subject import Subject
from dy2static.verdicts import Reason, Verdicts, is_final, reason_of
from dy2static.warn import warn
from runtime.kinds import is_a

if TYPE_CHECKING:
    from dy2static.static_function import StaticFunction


class EagerWarning(UserWarning):
    """A function converted with ``full_graph=False`` cannot become a Program for some call, and runs as it is.

    Fix: what the message says; or leave it so.
    """


class Fallback:
    """What was found out about calls of one function that are, or are not, Programs."""

    def __init__(self, subject: Subject, static: StaticFunction) -> None:
        self.verdicts = Verdicts()
        self.is_piece = False
        """Whether the function is a part of another one that is converted."""
        self._subject = subject
        self._static = weakref.ref(static)  # its owner: a function that nobody holds is gone at once
        self._own_part: Part | None = None

    @property
    def part(self) -> Part:
        """How the function runs where it is no Program."""
        if self._own_part is None:
            subject, static = self._subject, self._static()
            assert static is not None
            code = getattr(subject.python, "__code__", None)
            pieces = Pieces(static.as_piece)
            known = None if code is None else pieces.code(code)
            self._own_part = Part(pieces, subject.python, subject.instance, known, static)
        return self._own_part

    def become_part(self, part: Part) -> None:
        """The function is a part of another one that is converted."""
        self._own_part, self.is_piece = part, True
        self.verdicts.of_part = True

    def run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run a call as plain Python, piece by piece."""
        return self.part.run(args, kwargs)

    def refused(self, key: Key) -> bool:
        """Whether calls of this kind run as plain Python."""
        return self.verdicts.reason(key) is not None

    def refuse(self, key: Key, error: Exception) -> None:
        """Calls of this kind run as plain Python from now on; say so, once for each place."""
        reason = reason_of(error)
        self.verdicts.refuse(key, reason, is_final(error))
        if is_a(error, InternalError):
            self.part.distrust(reason, called=not error.outside_code)
        self.say(reason)

    def say(self, reason: Reason | None) -> None:
        """Warn that the function runs as plain Python, once for each place."""
        if reason is None:
            return
        said = self.part.pieces.said
        place = (reason.location, reason.code, None if reason.location is not None else reason.summary)
        if place in said:
            return
        said.add(place)
        warn(
            f"{self._subject.name}() runs as plain Python from now on, for calls like this one: {reason}. "
            f"{reason.hint} What it calls may be Programs still: explain() shows it.",
            EagerWarning,
        )

    def forget(self) -> None:
        """Forget what was found out, and every part."""
        self.verdicts.clear()
        if self._own_part is not None:
            self._own_part.pieces.clear()
            self._own_part = None


__all__ = ["EagerWarning", "Fallback"]
