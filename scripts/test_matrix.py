"""Run the default tests with other versions of PyTorch and Python: ``make test-matrix``.

    python scripts/test_matrix.py                              # every row of the table below
    python scripts/test_matrix.py newest tests/runtime -n 4    # one row, and arguments for pytest

    lowest    the lowest torch that pyproject.toml allows, on the lowest Python that is found
    pinned    what constraints.txt says, in .venv (``make test`` sets it up)
    newest    the newest torch that pip finds, on the newest Python that has one

The environments are kept in .venv-matrix. pip's own settings say where torch comes from: on Linux PyPI's builds bring
CUDA, about 5 GB each; an index of CPU builds in PIP_EXTRA_INDEX_URL makes that less than 1 GB. Where pip's settings cap
torch, the newest row says so; PIP_CONSTRAINT=/dev/null lifts the cap for one run.
"""

from __future__ import annotations

import dataclasses
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HOME = ROOT / ".venv-matrix"
LOWEST_PYTHON = (3, 10)
ROWS = ("lowest", "pinned", "newest")

Version = tuple[int, ...]


@dataclasses.dataclass
class Row:
    """An environment, or the reason why there is none."""

    name: str
    python: Path | None
    skipped: str = ""


def main(arguments: list[str]) -> int:
    """Set up what is asked for, run the tests in each, and print a table; 1 if any failed or could not be set up."""
    chosen = [name for name in arguments if name in ROWS] or list(ROWS)
    options = [argument for argument in arguments if argument not in ROWS]
    pythons = interpreters()
    say(f"Python found: {', '.join(map(dotted, pythons))}")
    lines, failed = [], False
    for row in [set_up(name, pythons) for name in chosen]:
        verdict = row.skipped
        if row.python is not None:
            say(f"{row.name}: {describe(row.python)}")
            begin = time.monotonic()
            done = subprocess.run([row.python, "-m", "pytest", "-q", *options], cwd=ROOT, check=False)
            verdict = f"{'passed' if done.returncode == 0 else 'FAILED'} in {time.monotonic() - begin:.0f} s"
            failed |= done.returncode != 0
            if row.name == "newest" and torch_of(row.python) < newest_tested():
                verdict += f"; older than torch {dotted(newest_tested())}, tested before: see pip config list"
        failed |= row.python is None
        lines.append(f"  {row.name:8} {describe(row.python) if row.python else '':32} {verdict}")
    used = [describe(python) for python in map(environment, ROWS)]
    say("\n".join(["tests on every version:", *lines]))
    unused = [dotted(version) for version in pythons if not any(f"Python {dotted(version)}," in one for one in used)]
    if unused:
        say(f"found and not used: Python {', '.join(unused)}")
    return int(failed)


def interpreters() -> dict[Version, str]:
    """Every Python that may be used, from the lowest version to the highest."""
    places = [sys.executable]
    for minor in range(LOWEST_PYTHON[1], 30):
        places.append(shutil.which(f"python3.{minor}") or "")
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    places.extend(str(path) for path in sorted(pyenv.glob("versions/*/bin/python")))
    found: dict[Version, str] = {}
    for place in filter(None, places):
        asked = subprocess.run(
            [place, "-c", "import sys, venv; print(*sys.version_info[:2])"], capture_output=True, text=True, check=False
        )  # fmt: skip
        version = tuple(map(int, asked.stdout.split())) if asked.returncode == 0 else ()
        if version >= LOWEST_PYTHON:
            found.setdefault(version, place)
    return dict(sorted(found.items()))


def set_up(name: str, pythons: dict[Version, str]) -> Row:
    """The environment of a row of the table: as it was left, or made."""
    python = environment(name)
    if name == "pinned":
        return Row(name, python) if python.exists() else Row(name, None, "skipped: there is no .venv; run make test")
    torch = f"torch{lowest_torch()}" if name == "lowest" else "torch"
    if describe(python):
        why = install(python, torch)
        if why:
            say(f"{name}: as it was left: {why}")
        return Row(name, python)
    why = "no Python was found"
    for version in sorted(pythons, reverse=name == "newest"):
        say(f"{name}: set-up of {torch} on Python {dotted(version)} (the first time, this takes a few minutes)")
        subprocess.run([pythons[version], "-m", "venv", "--clear", python.parents[1]], check=True)
        why = install(python, torch)
        if not why:
            return Row(name, python)
        say(f"{name}: not on Python {dotted(version)}: {why}")
        shutil.rmtree(python.parents[1])
    return Row(name, None, f"skipped: {why}")


def install(python: Path, torch: str) -> str:
    """Install this project, its tests and ``torch`` (the newest, if no version is said); the reason if that fails."""
    pins = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("torch")]
    constraints = HOME / "constraints.txt"
    constraints.write_text("\n".join(pins) + "\n")
    done = subprocess.run(
        [python, "-m", "pip", "install", "--disable-pip-version-check", "--quiet", "--upgrade", "--upgrade-strategy",
         "only-if-needed", "-c", constraints, torch, "-e", ".[dev]"],
        cwd=ROOT, stderr=subprocess.PIPE, text=True, check=False,
    )  # fmt: skip
    errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
    return (errors or ["pip failed"])[-1] if done.returncode else ""


def lowest_torch() -> str:
    """The requirement that gives the lowest supported torch.

    >>> lowest_torch()
    '==2.11.*'
    """
    found = re.search(r'"torch>=([\d.]+)"', (ROOT / "pyproject.toml").read_text())
    assert found is not None, "pyproject.toml names no lowest torch"
    return f"=={found[1]}.*"


def newest_tested() -> Version:
    """The highest torch that runtime/version.py says was tested."""
    text = (ROOT / "runtime" / "version.py").read_text()
    found = re.search(r"^TORCH_TESTED = .*\((\d+), (\d+)\)$", text, re.MULTILINE)
    assert found is not None, "runtime/version.py names no tested torch"
    return int(found[1]), int(found[2])


def torch_of(python: Path) -> Version:
    """Major and minor number of an environment's torch."""
    major, minor = describe(python).rpartition(" ")[2].split(".")[:2]
    return int(major), int(minor)


def environment(name: str) -> Path:
    """The Python of a row."""
    return (ROOT / ".venv" if name == "pinned" else HOME / name) / "bin" / "python"


def describe(python: Path) -> str:
    """Python and torch of an environment; empty if there is none."""
    if not python.exists():
        return ""
    script = "import sys, torch; print('Python %d.%d,' % sys.version_info[:2], 'torch', torch.__version__)"
    return subprocess.run([python, "-c", script], capture_output=True, text=True, check=False).stdout.strip()


def dotted(version: Version) -> str:
    """A version as it is written."""
    return ".".join(map(str, version))


def say(text: str) -> None:
    """Print a line of the script's own."""
    print(f"== {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
