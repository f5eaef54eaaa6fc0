"""The example of two processes: torchrun starts it, it learns, and eager's losses are the same."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.end_to_end.processes import free_port

ROOT = Path(__file__).resolve().parents[2]


def losses(*options: str) -> list[str]:
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port",
               str(free_port()), str(ROOT / "examples/train_distributed.py"), "--steps", "31", *options]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    run = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment, check=False)
    assert run.returncode == 0, run.stderr[-3000:]
    return [line for line in run.stdout.splitlines() if line.startswith("step")]


@pytest.mark.slow
def test_two_processes_learn_what_eager_learns() -> None:
    static = losses()
    assert len(static) == 4
    first, last = (float(line.split()[-1]) for line in (static[0], static[-1]))
    assert last < first / 2
    assert static == losses("--eager")
