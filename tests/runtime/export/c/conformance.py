"""Which Programs of the conformance suite exported C takes, and whether it computes what eager computes.

    python -m tests.runtime.export.c.conformance            the share, and what is refused
    python -m tests.runtime.export.c.conformance --run      each is compiled and run on the calls it fits, too
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import io
import subprocess
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

import dy2static
from dy2static.errors import Dy2StaticError
from dy2static.saving import make_artefact
from runtime.export.c.interface import outputs_of
from runtime.export.c.library import export_artefact, variant_for_inference
from tests.conformance import suite
from tests.conformance.family import Case
from tests.oracle import copied
from tests.runtime.export.c.harness import Library, built, close, read, written


@dataclass(frozen=True)
class Outcome:
    """What became of a case: "exported", "refused" (by the exporter), "no Program" (nothing could be saved)."""

    case: Case
    kind: str
    why: str = ""
    ran: int = 0
    """Calls whose results were eager's."""


def _tensors(call: Sequence[Any]) -> list[torch.Tensor]:
    found: list[torch.Tensor] = []
    for one in call:
        if isinstance(one, torch.Tensor):
            found.append(one)
        elif isinstance(one, (list, tuple)):
            found += _tensors(one)
        elif isinstance(one, dict):
            found += _tensors(list(one.values()))
    return found


def _detached(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.detach()
    if type(value) in (list, tuple):
        return type(value)(map(_detached, value))
    return {key: _detached(one) for key, one in value.items()} if type(value) is dict else value


def _constants(call: Sequence[Any]) -> list[Any]:
    return [(type(one), one) if not isinstance(one, torch.Tensor) else (one.dtype, tuple(one.shape)) for one in call]


def outcome(case: Case, *, run: bool) -> Outcome:
    """Export the inference Program of a case's first call; ``run``: hold it against eager on all calls that it fits.

    AssertionError: a result is not eager's.
    """
    torch.manual_seed(1234)
    target = case.target().eval() if case.kind == "module" else case.target
    eager = case.target().eval() if case.kind == "module" else case.target
    if case.kind == "module":
        eager.load_state_dict(target.state_dict())
    kind, why, ran = attempt(target, eager, case.calls, run=run, tolerance=max(case.tolerance, 1e-5), name=case.id)
    return Outcome(case, kind, why, ran)


def attempt(target: Any, eager: Any, calls: Sequence[Sequence[Any]], *, run: bool, tolerance: float, name: str,
            ) -> tuple[str, str, int]:  # fmt: skip
    """What became of a function or module, why, and how many calls gave eager's results."""
    first = calls[0]
    try:
        with torch.no_grad(), contextlib.redirect_stdout(io.StringIO()):
            static = dy2static.to_static(target)
            with contextlib.suppress(ArithmeticError, LookupError, ValueError, AssertionError, RuntimeError, TypeError):
                static(*copied(first))
            artefact = make_artefact(static)
    except Dy2StaticError as error:
        return "no Program", error.code, 0
    except Exception as error:
        return "no Program", type(error).__name__, 0
    with tempfile.TemporaryDirectory() as room:
        at = Path(room) / "case"
        try:
            export_artefact(artefact, at, "case")
        except Dy2StaticError as error:
            return "refused", f"{error.code} {error.summary}", 0
        if not run:
            return "exported", "", 0
        command = ["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-O0", "-DD2S_EXACT", "-fsanitize=undefined",
                   "-fno-sanitize-recover=all", "main.c", "case.c", "-o", "run", "-lm"]  # fmt: skip
        done = subprocess.run(command, cwd=at, capture_output=True, text=True)
        assert done.returncode == 0, f"{name}: {done.stderr[:3000]}"
        program = variant_for_inference(artefact, "forward").program
        names = [line.split()[0] for line in (at / "inputs.txt").read_text().splitlines() if " tensor " in line]
        library = Library(at, names, program.output, {one.index: one.name for one in outputs_of(program)})
        fitting = [call for call in calls if _constants(call) == _constants(first)]
        return "exported", "", sum(_held(eager, library, call, tolerance, name) for call in fitting)


def _held(eager: Any, library: Library, call: Sequence[Any], tolerance: float, name: str) -> bool:
    """Whether a call was answered, as eager does."""
    tensors = _tensors(call)
    if len(tensors) != len(library.names):
        return False
    (library.folder / "given.txt").write_text(written(library.names, tensors))
    done = subprocess.run(["./run", "given.txt", "case.weights"], cwd=library.folder, capture_output=True, text=True)
    assert 0 <= done.returncode < 100, f"{name}: {done.stderr[:3000]}"
    try:
        with torch.no_grad(), contextlib.redirect_stdout(io.StringIO()):
            wanted = eager(*_detached(copied(call)))
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


def outcomes(run: bool) -> Iterator[Outcome]:
    """Every case that is a function or module."""
    for case in suite.all_cases():
        if case.kind != "scenario" and not case.refused and case.calls:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    yield outcome(case, run=run)
                except AssertionError as error:
                    yield Outcome(case, "different", str(error))


def main() -> None:
    """Print the share, and what is refused."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", action="store_true")
    counts: collections.Counter[str] = collections.Counter()
    why: collections.Counter[str] = collections.Counter()
    ran = 0
    for one in outcomes(parser.parse_args().run):
        counts[one.kind] += 1
        ran += one.ran
        if one.kind == "different":
            print(f"DIFFERENT {one.why}", flush=True)
        elif one.why:
            why[f"{one.kind}: {one.why[:110]}"] += 1
            print(one.case.id, one.kind, one.why[:150], flush=True)
    print(dict(counts), f"{ran} calls were eager's")
    for text, count in why.most_common():
        print(f"{count:4} {text}")


if __name__ == "__main__":
    main()
