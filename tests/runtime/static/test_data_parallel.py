"""Two processes, each with half of a batch, reach the parameters of one process with all of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from runtime import static
from runtime.errors import ProgramError
from runtime.static import optimizer

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = """
import os, sys
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from runtime import static
from runtime.static import optimizer

rank, world, folder, bucket = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
if world > 1:
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=world)
main, startup = static.Program(), static.Program()
with static.program_guard(main, startup):
    x, y = static.data("x", [None, 4]), static.data("y", [None, 1])
    net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1))
    loss = F.mse_loss(net(x), y)
    optimizer.Adam(0.01, grad_clip=static.ClipGradByGlobalNorm(0.5)).minimize(loss)
if world > 1:
    print(static.data_parallel(main, bucket_bytes=bucket))
torch.manual_seed(0)
executor = static.Executor()
executor.run(startup)
torch.manual_seed(1)
for _ in range(5):
    rows, target = torch.randn(8, 4), torch.randn(8, 1)
    part = slice(rank * 8 // world, (rank + 1) * 8 // world)
    executor.run(main, feed={"x": rows[part], "y": target[part]}, fetch_list=[loss])
scope = static.global_scope()
torch.save({name: scope.find_var(name).detach() for name in scope.names()}, f"{folder}/{world}_{rank}.pt")
if world > 1:
    dist.destroy_process_group()
"""


@pytest.mark.slow
@pytest.mark.sample(3)
@pytest.mark.parametrize(("bucket", "count"), [(10**6, 1), (200, 3)])
def test_two_processes_train_as_one(bucket: int, count: int, tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    file.write_text(SCRIPT)

    def start(rank: int, world: int) -> subprocess.Popen[str]:
        command = [sys.executable, str(file), str(rank), str(world), str(tmp_path), str(bucket)]
        return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                env={"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"})  # fmt: skip

    both = [start(0, 2), start(1, 2)]
    done = [one.communicate(timeout=240) for one in (*both, start(0, 1))]
    assert [out.split() for out, _ in done] == [[str(count)], [str(count)], []], done
    alone, first, second = (torch.load(tmp_path / f"{name}.pt") for name in ("1_0", "2_0", "2_1"))
    assert alone.keys() == first.keys()
    for name, value in alone.items():
        assert torch.equal(first[name], second[name]), name
        torch.testing.assert_close(first[name], value, rtol=1e-4, atol=1e-6)


def test_what_is_refused() -> None:
    main, startup = static.Program(), static.Program()
    with static.program_guard(main, startup):
        loss = static.fc(static.data("x", [2, 3]), 1).sum()
        with pytest.raises(ProgramError, match="no gradients"):
            static.data_parallel(main)
        optimizer.SGD(0.1).minimize(loss)
    assert static.data_parallel(main) == 1
    with pytest.raises(ProgramError, match="already"):
        static.data_parallel(main)
