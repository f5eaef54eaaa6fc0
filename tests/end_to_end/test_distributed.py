"""Training in two processes that take different paths: losses, gradients and parameters are eager's, to the bit."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.end_to_end.processes import free_port

ROOT = Path(__file__).resolve().parents[2]


def test_each_way_of_training_in_several_processes() -> None:
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port",
               str(free_port()), str(ROOT / "tests" / "end_to_end" / "distributed_steps.py")]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    run = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment, check=False)
    assert run.returncode == 0, run.stderr[-3000:]
    assert dict(line.split(": ", 1) for line in run.stdout.splitlines() if ": " in line) == {
        "DDP of a converted module": "same",
        "a converted DDP module": "same",
        "FSDP2 of a converted module": "same",
        "a converted FSDP2 module": "same",
        "FSDP2 of parts of a converted module": "refused D2S213",  # what gathers a part runs in its forward
        "FSDP2 of converted parts": "same",
        "converted parts under FSDP2": "same",
        "FSDP2 of parts in pieces": "same",
        "a converted tensor parallel module": "refused D2S213",  # its parameters are DTensors
        "a tensor parallel module in pieces": "same",
        "a checkpoint of several processes": "same",
    }
