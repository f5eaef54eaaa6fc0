"""``dy2static inspect FILE.d2s``: print the Programs of a saved file, or the C that is generated for them."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

import torch

from runtime.ir import Program
from runtime.ir.printer import print_program
from runtime.native import NativeExecutable, c_of
from runtime.passes import DEFAULT, PassManager
from runtime.storage.artefact import Artefact
from runtime.storage.files import read_artefact
from runtime.storage.types import exception_class


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "inspect",
        help="show the Programs of a saved file, or their C",
        description="Print the Programs of a file that dy2static.save wrote. With --c, the C that is generated for "
        "calls without gradients, with the lines of the source as comments. Nothing is compiled or run.",
    )
    parser.add_argument("file", metavar="FILE", help="a saved file (.d2s)")
    parser.add_argument("--c", action="store_true", help="print the generated C")
    parser.add_argument("--allow", metavar="LIBRARY", action="append", default=[],
                        help="a library of custom operators that the file may use")  # fmt: skip
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    for title, program, exceptions in programs(read_artefact(options.file, options.allow)):
        PassManager(DEFAULT).run(program)
        print(f"// {title}" if options.c else f"# {title}")
        if options.c:
            with torch.no_grad():
                print(described(c_of(program, exceptions)))
        else:
            print(print_program(program))


def programs(artefact: Artefact) -> Iterator[tuple[str, Program, dict[str, type[BaseException]]]]:
    """Every Program of a file once, with the name of its method and the modes that it is for."""
    for name, method in artefact.methods.items():
        modes: dict[int, list[str]] = {}
        for mode, variant in method.variants.items():
            modes.setdefault(id(variant), []).append(mode)
        for variant in {id(one): one for one in method.variants.values()}.values():
            exceptions = {key: exception_class(key, base) for key, base in variant.exceptions.items()}
            yield f"{name} ({', '.join(modes[id(variant)])})", variant.program, exceptions


def described(executable: NativeExecutable) -> str:
    """The C, and before it what stays Python's."""
    share = executable.share()
    head = f"// {share.in_c} of {share.all} operators in C"
    if share.called:
        head += f", {share.called} more called from it"
    python = sorted(set(executable.in_python()))
    if python:
        head += f"\n// in Python: {', '.join(python)}"
    text = executable.c_source()
    return f"{head}\n\n{text}" if text else head


__all__ = ["add_parser", "described", "programs", "run"]
