"""Every error the runtime raises for a user's mistake, each with cause, example and fix.

All carry a stable ``code``, the user's ``location`` where one is known, and a sentence that says what to do.
"""

from __future__ import annotations

from runtime.ir.location import Location


class Dy2StaticError(Exception):
    """Base of all errors of this project.

    ``code`` is stable (``D2S201``); ``summary`` says what happened; ``hint`` says what to change.
    """

    code = "D2S000"
    for_now = False
    """Whether it holds for the call at hand only: the next one like it may fare better."""

    def __init__(self, summary: str, *, hint: str = "", location: Location | None = None, code: str = "") -> None:
        self.summary = summary
        self.hint = hint
        self.location = location
        if code:
            self.code = code
        super().__init__(self._render())

    def _render(self) -> str:
        lines = [f"[{self.code}] {self.summary}"]
        if self.location is not None:
            where = f"  at {self.location.file}:{self.location.line}"
            if self.location.function:
                where += f", in {self.location.function}"
            lines.append(where)
            if self.location.text:
                text = self.location.text
                stripped = text.lstrip()
                lines.append(f"    {stripped.rstrip()}")
                caret = self.location.column - (len(text) - len(stripped))
                if caret >= 0:
                    lines.append("    " + " " * caret + "^")
        if self.hint:
            lines.append(f"  {self.hint}")
        return "\n".join(lines)

    def locate(self, location: Location | None) -> Dy2StaticError:
        """Fill in the location if the error has none yet; returns the error itself."""
        if self.location is None and location is not None:
            self.location = location
            self.args = (self._render(),)
        return self


class ConversionError(Dy2StaticError):
    """The source cannot be converted. Cause: a construct with no static form. Fix: see the hint."""

    code = "D2S100"


class TraceError(Dy2StaticError):
    """The converted function cannot become a Program. Example: ``x.numpy()`` while tracing. Fix: see the hint."""

    code = "D2S200"


class InternalError(TraceError):
    """A fault of this project, met while a function was traced. Fix: none in your code; please report it."""

    code = "D2S290"
    before_run = False
    """Whether it was met before anything of a Program ran, so that the plain function may run instead."""
    outside_code = False
    """Whether no line of the user's was being traced where it was met: the location is where the function is called."""


class SignatureError(Dy2StaticError):
    """A call does not fit the Program or InputSpec. Example: rank 3 passed where InputSpec says 2."""

    code = "D2S300"


class ProgramError(Dy2StaticError):
    """A Program is malformed. Example: a Variable read before it is assigned, found by the verifier or parser."""

    code = "D2S400"


class StorageError(Dy2StaticError):
    """A saved Program cannot be written or read. Example: a truncated file, a wrong checksum."""

    code = "D2S500"
