"""The ``dy2static`` command: one file a command, each with ``add_parser`` and ``run``.

    dy2static convert FILE... [-o OUT] [--function NAME] [--all] [--full]
    dy2static diff FILE... [--function NAME] [--all] [--full]
    dy2static check FILE... [--function NAME] [--all]
    dy2static inspect FILE.d2s [--c] [--allow LIBRARY]

FILE is a Python file, a notebook, a folder of them, or ``-``, standard input. Of a file the functions are converted
that it gives to ``to_static``, or those that are named, or all.

Exit codes: 0 done (also when there is nothing to convert), 1 the source cannot be converted or the saved file not be
read, 2 the command line or the file is at fault.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

import torch

from dy2static.cli import check, convert, diff, inspect
from dy2static.cli.text_file import UsageError
from dy2static.errors import Dy2StaticError
from runtime import recursion_limit
from runtime.version import __version__

COMMANDS = (convert, diff, check, inspect)


def parser() -> argparse.ArgumentParser:
    """The parser of the whole command line."""
    result = argparse.ArgumentParser(
        prog="dy2static", description="Show or write what the converter makes of a Python file, or show a saved one."
    )
    result.add_argument("--version", action="version", version=f"dy2static {__version__} (PyTorch {torch.__version__})")
    commands = result.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in COMMANDS:
        command.add_parser(commands)
    return result


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line ``arguments`` (default: those of the process); returns the exit code."""
    options = parser().parse_args(arguments)
    try:
        with recursion_limit.room(recursion_limit.CONVERTING):
            code = options.run(options) or 0
        sys.stdout.flush()
    except UsageError as error:
        print(f"dy2static: {error}", file=sys.stderr)
        return 2
    except Dy2StaticError as error:
        print(f"dy2static: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # the reader, such as head, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return int(code)
