"""What importing takes beside PyTorch: processor time of a fresh process, in alternation.

    python benchmarks/imports.py --repeats 21

Each repeat starts one process for each line; medians are printed, and what they are more than ``import torch`` alone.
Compiled bytecode is written before, as an installation does.
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import statistics
import subprocess
import sys
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[1]
LINES = (
    "import torch",
    "import dy2static",
    "from dy2static import to_static",
    "from dy2static import load",
    "import torch, sympy",
)


def seconds(line: str, environment: dict[str, str]) -> float:
    """Processor time of a process that runs a line."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", line], check=True, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=21)
    repeats = parser.parse_args().repeats
    print(f"Python {platform.python_version()}, torch {torch.__version__}, medians of {repeats}, processor time")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    taken: dict[str, list[float]] = {line: [] for line in LINES}
    for line in LINES:
        seconds(line, environment)
    for _ in range(repeats):
        for line in LINES:
            taken[line].append(seconds(line, environment))
    base = statistics.median(taken["import torch"])
    for line in LINES:
        median = statistics.median(taken[line])
        print(f"{median:8.3f} s  {(median - base) / base:+7.1%}  {line}")


if __name__ == "__main__":
    main()
