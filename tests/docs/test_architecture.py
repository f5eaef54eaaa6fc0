"""The page about the architecture: its example gives the Program that stands there, and what it names exists."""

from __future__ import annotations

import re
from pathlib import Path
from unittest import mock

import torch

from runtime.tracer.control import while_loop
from tests import goldens
from tests.goldens import Golden
from tests.oracle import check

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "ARCHITECTURE.md"
PAGE = FILE.read_text("utf-8")
FOLDERS = ("dy2static", "runtime", "tests", "scripts", "benchmarks", "docs")


def test_the_example_gives_the_program_of_the_page(tmp_path: Path) -> None:
    (source,), (program,) = (re.findall(rf"```{kind}\n(.*?)```", PAGE, re.S) for kind in ("python", "text"))
    golden = Golden(FILE, "the example", "", source, program.strip())
    calls = [(torch.tensor(values),) for values in ([1.0, 2.0], [-1.0, 0.5])]
    with goldens.no_passes(), mock.patch.object(while_loop, "_Attempt", wraps=while_loop._Attempt) as attempts:
        static = check(goldens.code_of(golden, tmp_path), *calls, paths=("program",))
    assert goldens.text_of(static) == golden.text
    assert attempts.call_count == 3, "The body of the loop is traced three times."
    (guard,) = static.specializations[0].traced.guards
    assert guard.description == "code of f"


def test_files_that_it_names_exist() -> None:
    there = {file.relative_to(ROOT).as_posix() for folder in FOLDERS for file in (ROOT / folder).rglob("*.*")}
    there |= {file.name for file in ROOT.iterdir()}
    endings = {"/".join(parts[start:]) for file in there for parts in [file.split("/")] for start in range(len(parts))}
    named = {*re.findall(r"`([\w/]+\.(?:py|md|txt))`", PAGE), *re.findall(r"\]\((?!http)([^)#]+)\)", PAGE)}
    assert len(named) > 200
    assert named <= endings, sorted(named - endings)


def test_its_lines_are_short() -> None:
    long = [line for line in PAGE.splitlines() if len(line) > 120 and not line.startswith("|")]
    assert not long
