"""What a terminal shows while a call waits for the C compiler. Elsewhere the logger ``dy2static`` says it (INFO)."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

from runtime.native import background


@contextlib.contextmanager
def shown(what: str) -> Iterator[None]:
    """A line on standard error, which goes when what is waited for is there."""
    if not sys.stderr.isatty():
        with background.logged(what):
            yield
        return
    from rich.console import Console

    with Console(stderr=True).status(f"compiling {what} to C"):
        yield


def install() -> None:
    """Show waiting in this way from now on."""
    background.progress = shown


__all__ = ["install", "shown"]
