"""``dy2static diff FILE``: the unified diff of a file against its conversion."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Iterator
from typing import Any

from dy2static.cli import output, text_file
from dy2static.cli.convert import add_common
from dy2static.cli.rewrite import rewrite_file


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "diff",
        help="show what the conversion changes",
        description="Print the unified diff of the file against its conversion; nothing if nothing converts.",
    )
    add_common(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    source = text_file.read(options.file)
    converted = rewrite_file(source, options.function, options.full)
    if converted is not None:
        lines = list(unified(source.lines, text_file.split_lines(converted), options.file))
        output.print_diff(lines, [source.encode(line)[len(source.bom) :] for line in lines])


def unified(old: list[str], new: list[str], name: str) -> Iterator[str]:
    r"""The unified diff, line ends included; a last line without one is marked as ``diff`` does.

    >>> print("".join(unified(["a\n", "b"], ["a\n", "c"], "f.py")), end="")
    --- f.py
    +++ f.py (converted)
    @@ -1,2 +1,2 @@
     a
    -b
    \ No newline at end of file
    +c
    \ No newline at end of file
    """
    for line in difflib.unified_diff(old, new, name, f"{name} (converted)"):
        yield line if line.endswith(("\n", "\r")) else line + "\n\\ No newline at end of file\n"
