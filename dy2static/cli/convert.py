"""``dy2static convert FILE``: print or write the converted file, complete and runnable."""

from __future__ import annotations

import argparse
from typing import Any

from dy2static.cli import output, text_file
from dy2static.cli.rewrite import rewrite_file


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "convert",
        help="print or write the converted file",
        description="Print the file with its control flow converted, or write it to OUT. The result runs as it is.",
    )
    add_common(parser)
    parser.add_argument("-o", "--output", metavar="OUT", help="write to OUT instead of printing")
    parser.set_defaults(run=run)


def add_common(parser: argparse.ArgumentParser) -> None:
    """The arguments that all commands on a source file take."""
    parser.add_argument("file", metavar="FILE", help="a Python source file")
    parser.add_argument("--function", metavar="NAME", help="convert only this function: forward or Net.forward")
    parser.add_argument("--full", action="store_true", help="convert calls, attributes and subscripts as well")


def run(options: argparse.Namespace) -> None:
    """Nothing to convert prints nothing; OUT is then a copy of the file."""
    source = text_file.read(options.file)
    converted = rewrite_file(source, options.function, options.full)
    if options.output is not None:
        text_file.write(options.output, source.encode(source.text if converted is None else converted), source)
    elif converted is not None:
        output.print_source(converted, source.encode(converted))
