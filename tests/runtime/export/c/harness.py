"""Exported libraries as processes of their own: compiled with sanitizers, given files of inputs, held against eager."""

from __future__ import annotations

import dataclasses
import itertools
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch

from dy2static import InputSpec
from dy2static.saving import artefact_for_inference
from runtime.export.c import export_artefact
from runtime.export.c.interface import DTYPES, outputs_of
from runtime.export.c.library import variant_for_inference
from runtime.ir.tree import Leaf, Record
from tests.oracle import same

CC = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
needs_cc = pytest.mark.skipif(CC is None, reason="there is no C compiler")

STRICT = ("-std=c11", "-Wall", "-Wextra", "-Werror", "-g", "-O1", "-DD2S_EXACT", "-fsanitize=address,undefined",
          "-fno-sanitize-recover=all")  # fmt: skip
_DTYPES = {str(dtype).removeprefix("torch."): dtype for dtype in DTYPES}


ANYTHING = object()
"""A result that is not compared."""
BEYOND = "OverflowError: an int beyond"
"""What is said where a format cannot hold a number that Python holds."""


@dataclass(frozen=True)
class Answer:
    """What a run gave: its code, its results by name, what it said."""

    code: int
    results: dict[str, Any]
    said: str


@dataclass
class Library:
    """An exported function, compiled."""

    folder: Path
    names: list[str]
    tree: Any = None
    """What the function returns: the output tree of its Program."""
    outputs: dict[int, str] = field(default_factory=dict)
    """By position among the Program's yields: the result's name in C."""

    def run(self, *inputs: torch.Tensor, limit: int = 0, weights: str = "", text: str | None = None) -> Answer:
        """Run it as a process of its own. ``text``: the file of inputs, if it is another."""
        file = self.folder / "given.txt"
        file.write_text(written(self.names, inputs) if text is None else text)
        command = ["./strict", "given.txt", weights or f"{self.folder.name}.weights", str(limit)]
        environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=1", "UBSAN_OPTIONS": "print_stacktrace=1"}
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=120, env=environment)
        assert done.returncode in range(0, 101) and "runtime error" not in done.stderr, done.stderr[-3000:]
        assert "Sanitizer" not in done.stderr, done.stderr[-3000:]
        return Answer(done.returncode, read(done.stdout), done.stderr)


def written(names: Sequence[str], inputs: Sequence[torch.Tensor]) -> str:
    """A file of inputs."""
    lines = []
    for name, tensor in zip(names, inputs):
        dtype = str(tensor.dtype).removeprefix("torch.")
        lines.append(" ".join([name, "tensor", dtype, *map(str, tensor.shape)]))
        values = tensor.detach().reshape(-1).tolist()
        if values:
            lines.append(" ".join(repr(one) if isinstance(one, float) else str(int(one)) for one in values))
    return "\n".join(lines) + "\n"


def read(text: str) -> dict[str, Any]:
    """The results that an example printed."""
    found: dict[str, Any] = {}
    lines = iter(text.splitlines())
    for line in lines:
        found.update([_value(line, lines)])
    return found


def _value(line: str, lines: Iterator[str]) -> tuple[str, Any]:
    name, kind, *rest = line.split()
    if kind == "none":
        return name, None
    if kind == "tensor":
        dtype, sizes = _DTYPES[rest[0]], [int(size) for size in rest[1:]]
        values = next(lines).split() if 0 not in sizes else []
        numbers = [float(one) if dtype.is_floating_point else int(one) for one in values]
        return name, torch.tensor(numbers, dtype=dtype).reshape(sizes)
    if kind == "list":
        return name, [_value(next(lines), lines)[1] for _ in range(int(rest[0]))]
    return name, {"int": int, "float": float, "bool": lambda one: bool(int(one))}[kind](rest[0])


def compiled(folder: Path, *extra: str) -> Library:
    """Compile an exported folder, with warnings as errors and sanitizers."""
    assert CC is not None
    name = folder.name
    done = subprocess.run([CC, *STRICT, *extra, "main.c", f"{name}.c", "-o", "strict", "-lm"], cwd=folder,
                          capture_output=True, text=True)  # fmt: skip
    assert done.returncode == 0, done.stderr[:4000]
    lines = (folder / "inputs.txt").read_text().splitlines()
    return Library(folder, [line.split()[0] for line in lines if " tensor " in line])


def exported(function: Any, folder: Path, specs: Sequence[InputSpec]) -> Library:
    """Export and compile."""
    artefact = artefact_for_inference(function, list(specs))
    program = variant_for_inference(artefact, "forward").program
    export_artefact(artefact, folder, folder.name)
    library = compiled(folder)
    library.tree = program.output
    library.outputs = {one.index: one.name for one in outputs_of(program)}
    return library


def built(tree: Any, library: Library, results: Mapping[str, Any]) -> Any:
    """The function's result from what the library gave and what is constant."""
    if isinstance(tree, Leaf):
        return results[library.outputs[tree.index]]
    if isinstance(tree, Record):
        fields = dict(tree.fields)
        if tree.kind == "choice":
            return built(fields[f"option{built(fields['selector'], library, results)}"], library, results)
        if tree.kind == "growing":
            columns = [built(one, library, results) for one in fields["arrays"]]
            return columns[0] if len(columns) == 1 else list(zip(*columns))
        if tree.kind == "growing tuple":
            return tuple(built(fields["items"], library, results))
        if tree.kind in ("size", "set", "frozenset"):
            items = [built(one, library, results) for _, one in tree.fields]
            return tuple(items) if tree.kind == "size" else set(items)
        if tree.kind == "object":  # a constant of Python's, about which C has nothing to say
            return ANYTHING
        return tuple(built(one, library, results) for _, one in tree.fields[1:])
    if isinstance(tree, (list, tuple)):
        return type(tree)(built(one, library, results) for one in tree)
    if isinstance(tree, dict):
        return {key: built(one, library, results) for key, one in tree.items()}
    return tree


def close(got: Any, wanted: Any, tolerance: float) -> None:
    """AssertionError if a value is not eager's, as plain containers of tensors without history; which results are one
    tensor or list on a path no other format says."""
    same(plain(got), plain(wanted, got), tolerance=tolerance, apart=True)


def plain(wanted: Any, got: Any = None) -> Any:
    """A result of eager's as other formats know it; ANYTHING where ``got`` has that."""
    if got is ANYTHING:
        return ANYTHING
    if isinstance(wanted, torch.Tensor):
        return wanted.detach()
    if isinstance(wanted, dict):
        return {key: plain(one, got.get(key) if isinstance(got, dict) else None) for key, one in wanted.items()}
    if dataclasses.is_dataclass(wanted):
        wanted = tuple(vars(wanted).values())
    if not isinstance(wanted, (list, tuple)):
        return wanted
    known = got if isinstance(got, (list, tuple)) else ()
    items = [plain(one, other) for one, other in itertools.zip_longest(wanted, known[: len(wanted)])]
    return items if type(wanted) is list else tuple(items)


def hold(library: Library, eager: Any, calls: Sequence[Sequence[torch.Tensor]], tolerance: float = 1e-5) -> None:
    """Every call gives what eager gives; what eager raises, the library tells, with its name and text."""
    for call in calls:
        answer = library.run(*call)
        try:
            with torch.no_grad():
                wanted = eager(*[one.clone() for one in call])
        except Exception as error:
            assert answer.code in (1, 2, 3), f"code {answer.code} where eager raises {error!r}: {answer}"
            if answer.code == 1:
                assert f"{type(error).__name__}: {error}" in answer.said or (
                    not str(error) and type(error).__name__ in answer.said), answer.said  # fmt: skip
            continue
        assert answer.code == 0, f"code {answer.code}: {answer.said}"
        close(built(library.tree, library, answer.results), wanted, tolerance)
