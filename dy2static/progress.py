"""What a terminal shows while a call waits: for the C compiler, or for a trace of more than two seconds.

Elsewhere the logger ``dy2static`` says it (INFO).
"""

from __future__ import annotations

import contextlib
import sys
import threading
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


PATIENCE = 2.0
"""Seconds until a line is shown."""


@contextlib.contextmanager
def after(what: str) -> Iterator[None]:
    """A line on a terminal's standard error from the third second on, which goes at the end; nothing elsewhere."""
    terminal = sys.stderr
    if terminal is None or not terminal.isatty():
        yield
        return
    lock = threading.Lock()
    state = {"shown": False, "over": False}

    def show() -> None:
        with lock:
            if not state["over"]:
                state["shown"] = True
                terminal.write(f"dy2static: {what} ...")
                terminal.flush()

    timer = threading.Timer(PATIENCE, show)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        with lock:
            state["over"] = True
            if state["shown"]:
                terminal.write("\r\x1b[2K")
                terminal.flush()


def install() -> None:
    """Show waiting in this way from now on."""
    background.progress = shown


__all__ = ["after", "install", "shown"]
