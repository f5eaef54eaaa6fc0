"""``dy2static convert FILE...``: print or write the converted files, complete and runnable."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

from dy2static.cli import chosen, output, text_file
from dy2static.cli.chosen import Functions
from dy2static.cli.rewrite import rewrite_functions
from dy2static.cli.text_file import TextFile, UsageError


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "convert",
        help="print or write the converted file",
        description="Print the file with the control flow of functions converted that it gives to to_static (or write "
        "it to OUT). The result runs as it is; of a notebook it is a script.",
    )
    chosen.add_arguments(parser)
    parser.add_argument("-o", "--output", metavar="OUT", help="write to OUT instead of printing; a folder for several")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Nothing to convert prints nothing; OUT is then a copy of the file."""
    paths = text_file.expand(options.files)
    several = len(paths) > 1 or any(os.path.isdir(path) for path in options.files)
    root = os.path.commonpath([os.path.abspath(path) for path in paths]) if several else ""
    root = os.path.dirname(root) if root and not os.path.isdir(root) else root
    if several and options.output is not None and Path(options.output).is_file():
        raise UsageError(f"cannot write several files to {options.output}: it is a file")

    def act(file: TextFile, functions: Functions) -> bool:
        converted = rewrite_functions(file, functions, options.full)
        if options.output is not None:
            text = file.text if converted is None else converted
            text_file.write(_target(file, options.output, root if several else ""), file.encode(text), file)
        elif converted is not None:
            if several:
                output.print_line(f"# ==> {file.path} <==")
            output.print_source(converted, file.encode(converted))
        return converted is not None

    return chosen.each(options, act)


def _target(file: TextFile, out: str, root: str) -> str:
    """Where a file is written: ``out`` itself, or in it as under ``root``. A notebook becomes a script."""
    if not root:
        return out
    target = Path(out) / os.path.relpath(os.path.abspath(file.path), root)
    target = target.with_suffix(".py") if target.suffix == ".ipynb" else target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot write {target}: {error.strerror or error}") from error
    return str(target)
