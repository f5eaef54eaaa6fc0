"""Two processes that train one model: what a step costs with and without sending gradients, and more workers on paper.

    python benchmarks/data_parallel.py [--repeats 15]

Two gloo processes on this machine, one thread each, eager and converted, alone and in DistributedDataParallel; the
median wall time of a step over alternated repeats. Then the time of ``all_reduce`` by size, the latency and bandwidth
that fit it, and with them what one step sends and costs at 8, 64 and 1,024 workers in a ring:

    bytes sent by each worker = 2 (n - 1) / n * B        time = buckets * 2 (n - 1) * latency + bytes / bandwidth
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

from dy2static import to_static

BUCKET = 25 * 1024 * 1024
SIZES = (1 << 12, 1 << 16, 1 << 20, 1 << 22, 1 << 24)
LINKS = {"10 Gbit/s, 50 us": (1.25e9, 50e-6), "100 Gbit/s, 10 us": (12.5e9, 10e-6), "400 Gbit/s, 5 us": (50e9, 5e-6)}
"""Bytes a second, and seconds of latency, that are taken for networks: numbers of their makers, not measured."""


class Straight(nn.Module):
    """Four layers, 4.2 million parameters: no branch, so that torch's autograd runs it where arguments are small."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(1024, 1024) for _ in range(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Scores [N, 1024] of [N, 1024]."""
        for layer in self.layers:
            x = torch.relu(layer(x))
        return x


class Deciding(Straight):
    """The same with a loop as long as the data says: one autograd node."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Scores [N, 1024] of [N, 1024]."""
        n = 0
        while n < 2 and x.abs().mean() > 1e-3:
            for layer in self.layers:
                x = torch.relu(layer(x))
            n += 1
        return x


MODELS: dict[str, type[nn.Module]] = {"four layers": Straight, "a loop over four layers": Deciding}


def _step(model: nn.Module, opt: torch.optim.Optimizer, x: torch.Tensor) -> float:
    dist.barrier()
    start = time.perf_counter()
    F.mse_loss(model(x), x).backward()
    opt.step()
    opt.zero_grad()
    return time.perf_counter() - start


def _work(rank: int, store: str, repeats: int, result: str) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    found: dict[str, Any] = {}
    for name, make in MODELS.items():
        ways: dict[str, tuple[nn.Module, torch.optim.Optimizer]] = {}
        for converted in (False, True):
            for parallel in (False, True):
                torch.manual_seed(0)
                model: nn.Module = make()
                if converted:
                    model = to_static(model)
                if parallel:
                    model = DistributedDataParallel(model)
                label = f"{'converted' if converted else 'eager'}{', DDP' if parallel else ''}"
                ways[label] = model, torch.optim.SGD(model.parameters(), lr=1e-3)
        x = torch.randn(32, 1024)
        times: dict[str, list[float]] = {label: [] for label in ways}
        for repeat in range(repeats + 2):
            for label, (model, opt) in ways.items():
                took = _step(model, opt, x)
                if repeat >= 2:
                    times[label].append(took)
        found[name] = {label: statistics.median(one) for label, one in times.items()}
    sums: dict[int, list[float]] = {size: [] for size in SIZES}
    for _ in range(repeats):
        for size in SIZES:
            held = torch.ones(size // 4)
            dist.barrier()
            start = time.perf_counter()
            dist.all_reduce(held)
            sums[size].append(time.perf_counter() - start)
    found["all_reduce"] = {size: statistics.median(one) for size, one in sums.items()}
    if rank == 0:
        torch.save(found, result)
    dist.destroy_process_group()


def report(found: dict[str, Any]) -> str:
    """The tables."""
    lines = ["| model | eager, ms | eager, DDP | converted | converted, DDP | sending, eager | sending, converted |",
             "| --- | ---: | ---: | ---: | ---: | ---: | ---: |"]  # fmt: skip
    for name in MODELS:
        one = {label: 1000 * value for label, value in found[name].items()}
        sent = [one["eager, DDP"] - one["eager"], one["converted, DDP"] - one["converted"]]
        cells = [f"{value:.1f}" for value in (*one.values(), *sent)]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    sums = found["all_reduce"]
    lines += ["", "| all_reduce of two processes, KiB | ms |", "| ---: | ---: |"]
    lines += [f"| {size // 1024} | {1000 * took:.2f} |" for size, took in sums.items()]
    small, large = min(sums), max(sums)
    latency = sums[small] / 2
    bandwidth = (large - small) / (sums[large] - sums[small])
    lines.append(f"\nfits {1e6 * latency:.0f} us of latency a message and {bandwidth / 1e9:.2f} GB/s")
    size = sum(p.numel() * 4 for p in Straight().parameters())
    buckets = -(-size // BUCKET)
    links = {f"gloo on this machine ({bandwidth / 1e9:.2f} GB/s)": (bandwidth, latency), **LINKS}
    lines += ["", f"{size / 2**20:.1f} MiB of gradients in {buckets} bucket(s), in a ring:", "",
              "| link | workers | MiB sent by each | ms |", "| --- | ---: | ---: | ---: |"]  # fmt: skip
    for link, (speed, wait) in links.items():
        for workers in (2, 8, 64, 1024):
            sent_bytes = 2 * (workers - 1) / workers * size
            took = buckets * 2 * (workers - 1) * wait + sent_bytes / speed
            lines.append(f"| {link} | {workers} | {sent_bytes / 2**20:.1f} | {1000 * took:.1f} |")
    return "\n".join(lines)


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--repeats", type=int, default=15)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        result = os.path.join(folder, "result")
        mp.spawn(_work, args=(os.path.join(folder, "store"), options.repeats, result), nprocs=2)  # type: ignore[no-untyped-call]
        print(report(torch.load(result)))


if __name__ == "__main__":
    main()
