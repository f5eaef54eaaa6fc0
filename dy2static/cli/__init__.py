"""The ``dy2static`` command: one file a command, each with ``add_parser`` and ``run``.

    dy2static convert FILE [-o OUT] [--function NAME] [--full]
    dy2static diff FILE [--function NAME] [--full]
    dy2static inspect FILE.d2s [--c] [--allow LIBRARY]

Exit codes: 0 done (also when there is nothing to convert), 1 the source cannot be converted or the saved file not be
read, 2 the command line or the file is at fault.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from dy2static.cli import convert, diff, inspect
from dy2static.cli.text_file import UsageError
from dy2static.errors import Dy2StaticError

COMMANDS = (convert, diff, inspect)


def parser() -> argparse.ArgumentParser:
    """The parser of the whole command line."""
    result = argparse.ArgumentParser(
        prog="dy2static", description="Show or write what the converter makes of a Python file, or show a saved one."
    )
    commands = result.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in COMMANDS:
        command.add_parser(commands)
    return result


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line ``arguments`` (default: those of the process); returns the exit code."""
    options = parser().parse_args(arguments)
    try:
        options.run(options)
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
    return 0
