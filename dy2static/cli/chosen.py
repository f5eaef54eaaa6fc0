"""The arguments that all commands on source files share: which files, and which of their functions."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from dy2static.cli import rewrite, text_file
from dy2static.cli.text_file import TextFile, UsageError
from dy2static.errors import ConversionError
from dy2static.source import Candidate, FunctionSource

Functions = Sequence[tuple[Candidate, FunctionSource]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Files, and what chooses functions in them."""
    parser.add_argument(
        "files", metavar="FILE", nargs="+", help="a Python file, a notebook, a folder of them, or - for standard input"
    )  # fmt: skip
    parser.add_argument(
        "--function", metavar="NAME", action="append",
        help="convert this function: forward or Net.forward (may be repeated)",
    )  # fmt: skip
    parser.add_argument(
        "--all", action="store_true", help="convert all functions, not only those that the file gives to to_static"
    )  # fmt: skip
    parser.add_argument("--full", action="store_true", help="convert calls, attributes and subscripts as well")


def functions(file: TextFile, options: argparse.Namespace, several: bool = False) -> Functions:
    """The functions of a file that the options choose. Raises UsageError for a name that none has.

    ``several``: among several files, those that have no function of a name are passed over.
    """
    if options.all:
        return rewrite.functions(file)
    if not options.function:
        return rewrite.marked_functions(file)
    try:
        return rewrite.functions(file, options.function)
    except UsageError:
        if not several:
            raise
        return []


def each(options: argparse.Namespace, act: Callable[[TextFile, Functions], bool]) -> int:
    """Do something with every file; returns the exit code.

    ``act`` says whether anything converts. A file at fault does not keep the others from being done: each fault is a
    line on standard error, and the code is that of the worst. Where nothing converts, a line says so, and why.
    """
    paths = text_file.expand(options.files)
    several = len(paths) > 1
    worst = 0
    idle: list[tuple[TextFile, Functions]] = []
    for path in paths:
        try:
            file = text_file.read(path)
            chosen = functions(file, options, several)
            if not act(file, chosen):
                idle.append((file, chosen))
        except UsageError as error:
            worst = max(worst, 2)
            print(f"dy2static: {error}", file=sys.stderr)
        except ConversionError as error:
            worst = max(worst, 1)
            print(f"dy2static: {error}", file=sys.stderr)
    if len(idle) == len(paths):
        if several and options.function and not any(chosen for _, chosen in idle):
            raise UsageError(f"none of {len(paths)} files has a function {' or '.join(options.function)}")
        print(f"dy2static: {nothing(idle, options)}", file=sys.stderr)
    return worst


def nothing(idle: Sequence[tuple[TextFile, Any]], options: argparse.Namespace) -> str:
    """Why nothing converts, and what to do."""
    where = idle[0][0].path if len(idle) == 1 else f"{len(idle)} files"
    names = [source.qualname for _, chosen in idle for _, source in chosen]
    if names:
        shown = _listed(names)
        return f"nothing converts in {where}: {shown} need{'s' if len(names) == 1 else ''} no change"
    if options.all:
        return f"nothing converts in {where}: there are no functions"
    return (
        f"nothing converts in {where}: no function is decorated with to_static or given to it; "
        "--function NAME converts one, --all converts all"
    )


def _listed(names: Iterable[str], most: int = 5) -> str:
    found = list(names)
    return ", ".join(found[:most]) + (f" and {len(found) - most} more" if len(found) > most else "")


__all__ = ["Functions", "add_arguments", "each", "functions"]
