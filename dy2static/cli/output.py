"""Printing source and diffs: coloured on a terminal, exact bytes everywhere else (and with ``NO_COLOR`` set)."""

from __future__ import annotations

import os
import sys

COLOURS = {"+": "green", "-": "red", "@": "cyan"}


def use_colour() -> bool:
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def print_source(text: str, data: bytes) -> None:
    if not use_colour():
        _write(data)
        return
    from rich.console import Console
    from rich.syntax import Syntax

    Console(soft_wrap=True).print(Syntax("", "python", background_color="default").highlight(text), end="")


def print_diff(lines: list[str], data: list[bytes]) -> None:
    if not use_colour():
        _write(b"".join(data))
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(soft_wrap=True, highlight=False)
    for number, line in enumerate(lines):
        style = "bold" if number < 2 else COLOURS.get(line[0], "")
        console.print(Text(line.rstrip("\r\n"), style=style))


def print_line(text: str) -> None:
    """A line beside the files themselves."""
    _write(f"{text}\n".encode())


def _write(data: bytes) -> None:
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()
