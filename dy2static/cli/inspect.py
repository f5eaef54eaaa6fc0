"""``dy2static inspect FILE.d2s``: what a saved file holds: its card, and its Programs or the C generated for them."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

import torch

from dy2static.cli.card import card
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
        help="show what a saved file holds: signatures, sizes, metadata, its Programs, or their C",
        description="Print what a file that dy2static.save wrote says of itself (who made it, metadata, checksums, "
        "tensors, and of each method its signature and operators), then its Programs. With --c, the C that is "
        "generated for calls without gradients, with the lines of the source as comments. Nothing is compiled or run.",
    )
    parser.add_argument("file", metavar="FILE", help="a saved file (.d2s)")
    parser.add_argument("--c", action="store_true", help="print the generated C in place of the Programs")
    parser.add_argument("--card", action="store_true", help="print no Programs")
    parser.add_argument("--allow", metavar="LIBRARY", action="append", default=[],
                        help="a library of custom operators that the file may use")  # fmt: skip
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    artefact = read_artefact(options.file, options.allow, "cpu")
    sign = "//" if options.c else "#"
    for line in card(artefact, options.file):
        print(f"{sign} {line}".rstrip())
    for title, program, exceptions in () if options.card else programs(artefact):
        PassManager(DEFAULT).run(program)
        print(f"{sign} {title}")
        if options.c:
            with torch.no_grad():
                print(described(c_of(program, exceptions)))
        else:
            print(print_program(program))


def programs(artefact: Artefact) -> Iterator[tuple[str, Program, dict[str, type[BaseException]]]]:
    """Every Program of a file once, with the name of its method and the modes that it is for."""
    for name, method in artefact.methods.items():
        for variant in method.all():
            modes = [mode for mode in method.variants if any(one is variant for one in method.of(mode))]
            exceptions = {key: exception_class(key, base) for key, base in variant.exceptions.items()}
            yield f"{name} ({', '.join(modes)})", variant.program, exceptions


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
