"""How long a function has worked until its n-th answer: the interpreter, C, and C in the background.

    python benchmarks/first_calls.py [--only w4]

The workloads of ``c_backend.py``, each backend in a fresh process, C with an empty folder for libraries ("cold") and
with the one that the cold run filled ("warm"). One thread; wall time in seconds since the first call began, tracing
included and imports left out.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

from c_backend import processor, workloads  # noqa: E402

ANSWERS = (1, 2, 15, 16, 17, 50, 100)
RUNS = (("interpreter", ""), ("c", "cold"), ("c", "warm"), ("auto", "cold"), ("auto", "warm"))


def child(name: str, backend: str) -> None:
    """Print when each of the answers was there."""
    torch.set_num_threads(1)
    step = workloads()[name](backend)
    begin = time.perf_counter()
    found = []
    for number in range(1, ANSWERS[-1] + 1):
        step()
        if number in ANSWERS:
            found.append(time.perf_counter() - begin)
    print(*found)


def measured(name: str, backend: str, folder: str) -> list[float]:
    """The same in a process of its own."""
    done = subprocess.run([sys.executable, __file__, "--child", name, backend], check=True, capture_output=True,
                          text=True, env={**os.environ, "DY2STATIC_CACHE": folder})  # fmt: skip
    return [float(one) for one in done.stdout.split()]


def main() -> None:
    """Print a table for each workload."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="")
    parser.add_argument("--child", nargs=2)
    options = parser.parse_args()
    if options.child:
        child(*options.child)
        return
    print(f"torch {torch.__version__}, Python {platform.python_version()}, {processor()}")
    for name in workloads():
        if options.only.lower() not in name.lower():
            continue
        print(f"{name:<40}" + "".join(f"{f'call {number}':>10}" for number in ANSWERS), flush=True)
        with tempfile.TemporaryDirectory() as folder:
            for backend, how in RUNS:
                place = f"{folder}/{backend}"
                row = measured(name, backend, place)
                print(f"  {backend + ' ' + how:<38}" + "".join(f"{one:10.2f}" for one in row), flush=True)


if __name__ == "__main__":
    main()
