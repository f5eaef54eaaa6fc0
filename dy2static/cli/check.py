"""``dy2static check FILE...``: convert without writing, and list what is refused, with place and code."""

from __future__ import annotations

import argparse
from typing import Any

from dy2static.cli import chosen, rewrite
from dy2static.cli.chosen import Functions
from dy2static.cli.marked import marked
from dy2static.cli.text_file import TextFile
from dy2static.errors import ConversionError


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "check",
        help="list what cannot be converted",
        description="Convert the functions that the file gives to to_static, write nothing, and print a line for each "
        "that is refused: file:line: [code] reason. The exit code is 1 if there is one. What only a call can show "
        "(shapes, what a tensor decides in a library) is not seen here.",
    )
    chosen.add_arguments(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Returns 1 if a function is refused."""
    converted, refused = 0, 0

    def act(file: TextFile, functions: Functions) -> bool:
        nonlocal converted, refused
        given = marked(file.tree)
        for candidate, source in functions:
            try:
                rewrite.convert(source, True)
            except ConversionError as error:
                refused += 1
                line = candidate.node.lineno if error.location is None else error.location.line
                print(f"{file.where(line)}: [{error.code}] {error.summary} (in {source.qualname})")
                continue
            kind = rewrite.kind_without_static_form(candidate.node) if source.qualname in given else ""
            if kind:
                refused += 1
                place = file.where(candidate.node.lineno)
                print(f"{place}: {source.qualname} is {kind}, which to_static does not take")
            else:
                converted += 1
        return bool(functions)

    code = chosen.each(options, act)
    if converted or refused:
        print(f"{_count(converted, 'function converts', 'functions convert')}"
              + (f", {_count(refused, 'is', 'are')} refused" if refused else ""))  # fmt: skip
    return max(code, int(refused > 0))


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


__all__ = ["add_parser", "run"]
