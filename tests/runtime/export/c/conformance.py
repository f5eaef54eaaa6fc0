"""Which Programs of the conformance suite exported C takes, and whether it computes what eager computes.

    python -m tests.runtime.export.c.conformance            the share, and what is refused
    python -m tests.runtime.export.c.conformance --run      each is compiled and run on the calls it fits, too
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import io
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

import dy2static
from dy2static.errors import Dy2StaticError
from dy2static.saving import artefact_for_inference
from runtime.export.c.interface import outputs_of
from runtime.export.c.library import export_artefact, variant_for_inference
from tests.oracle import copied, tensors
from tests.runtime.export import judging
from tests.runtime.export.c.harness import Library, built, close, read, written
from tests.runtime.export.judging import Outcome


def attempt(
    target: Any, eager: Any, calls: Sequence[judging.Call], tolerance: float, name: str, run: bool = True
) -> Outcome:
    """What became of a function or module: see ``judging``. ``run``: whether it is compiled and run."""
    try:
        with torch.no_grad(), contextlib.redirect_stdout(io.StringIO()):
            static = dy2static.to_static(target)
            with contextlib.suppress(ArithmeticError, LookupError, ValueError, AssertionError, RuntimeError, TypeError):
                static(*copied(calls[0]))
            artefact = artefact_for_inference(static)
    except Dy2StaticError as error:
        return Outcome("no Program", error.code)
    except Exception as error:
        return Outcome("no Program", type(error).__name__)
    with tempfile.TemporaryDirectory() as room:
        at = Path(room) / "case"
        try:
            export_artefact(artefact, at, "case")
        except Dy2StaticError as error:
            return Outcome("refused", f"{error.code} {error.summary}")
        if not run:
            return Outcome("exported")
        command = ["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-O0", "-DD2S_EXACT", "-fsanitize=undefined",
                   "-fno-sanitize-recover=all", "main.c", "case.c", "-o", "run", "-lm"]  # fmt: skip
        done = subprocess.run(command, cwd=at, capture_output=True, text=True)
        assert done.returncode == 0, f"{name}: {done.stderr[:3000]}"
        program = variant_for_inference(artefact, "forward").program
        names = [line.split()[0] for line in (at / "inputs.txt").read_text().splitlines() if " tensor " in line]
        library = Library(at, names, program.output, {one.index: one.name for one in outputs_of(program)})
        ran = sum(_held(eager, library, call, tolerance, name) for call in judging.fitting(calls))
        return Outcome("exported", ran=ran)


def _held(eager: Any, library: Library, call: Sequence[Any], tolerance: float, name: str) -> bool:
    """Whether a call was answered, as eager does."""
    given = tensors(call)
    if len(given) != len(library.names):
        return False
    (library.folder / "given.txt").write_text(written(library.names, given))
    done = subprocess.run(["./run", "given.txt", "case.weights"], cwd=library.folder, capture_output=True, text=True)
    assert 0 <= done.returncode < 100, f"{name}: {done.stderr[:3000]}"
    try:
        with torch.no_grad(), contextlib.redirect_stdout(io.StringIO()):
            wanted = eager(*judging.without_history(copied(call)))
    except Exception as error:
        assert done.returncode, f"{name}: nothing is raised, and eager raises {error!r}"
        return True
    if done.returncode:
        assert done.returncode in (2, 3), f"{name}: {done.stderr}"
        return False
    try:
        close(built(library.tree, library, read(done.stdout)), wanted, tolerance)
    except Exception as error:
        raise AssertionError(f"{name}: {error}") from error
    return True


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", action="store_true")
    judging.report_cases(functools.partial(attempt, run=parser.parse_args().run))
