"""``dy2static diff FILE...``: the unified diff of a file against its conversion."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Iterator
from typing import Any

from dy2static.cli import chosen, output, text_file
from dy2static.cli.chosen import Functions
from dy2static.cli.rewrite import rewrite_functions
from dy2static.cli.text_file import TextFile


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "diff",
        help="show what the conversion changes",
        description="Print the unified diff of the file against its conversion, for the functions that it gives to "
        "to_static.",
    )
    chosen.add_arguments(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    def act(file: TextFile, functions: Functions) -> bool:
        converted = rewrite_functions(file, functions, options.full)
        if converted is not None:
            lines = list(unified(file.lines, text_file.split_lines(converted), file.path))
            output.print_diff(lines, [file.encode(line)[len(file.bom) :] for line in lines])
        return converted is not None

    return chosen.each(options, act)


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
