"""Peak memory of train steps and of the workloads of peers.py, converted and eager, side by side.

    python benchmarks/memory.py [--only chain]

Each row runs in a process of its own. "Allocated" is what torch's allocator had handed out at the highest point of one
step, what was there before left out; "process" is by how much the resident size of the process rose in three steps
above what it was before (Linux only). Steps that prepare (tracing, torch's caches) come before either. The C library is
told to give freed memory back at once (MALLOC_MMAP_THRESHOLD_): else its free lists are most of the difference.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torch.profiler import ProfilerActivity, profile
from torch.utils.checkpoint import checkpoint

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from benchmarks.peer.data import WORKLOADS as PEERS
from dy2static import to_static

Step = Callable[[], None]
"""One forward and backward, gradients let go at its start."""


def allocated(run: Step) -> int:
    """Bytes above the start, at the highest point."""
    # acc_events: else some versions of torch warn that a second cycle would clear the events of the first
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True, acc_events=True) as profiler:
        run()
    events = [one for one in profiler.profiler.kineto_results.events() if one.name() == "[memory]"]
    now = highest = 0
    for event in sorted(events, key=lambda one: one.start_ns()):
        now += event.nbytes()
        highest = max(highest, now)
    return highest


def chain(x: torch.Tensor) -> torch.Tensor:
    """Elementwise operators one after another."""
    h = x
    for _ in range(10):
        h = torch.tanh(h * 1.5 + 0.1)
        h = F.gelu(h)
        h = h * torch.sigmoid(h)
    return h.sum()


def normalized(x: torch.Tensor) -> torch.Tensor:
    """Operators with kernels of their own for backward."""
    h = x
    for _ in range(8):
        h = F.softmax(F.silu(F.layer_norm(F.gelu(h), (x.shape[-1],))), -1)
    return (h * x).sum()


def in_place(x: torch.Tensor) -> torch.Tensor:
    """Writes in place."""
    h = x * 1.0
    for _ in range(10):
        h += 1.0
        h *= 0.5
        h = torch.sin(h)
    return h.sum()


def looped(x: torch.Tensor) -> torch.Tensor:
    """A loop over a number only known at run time."""
    n = torch.tensor(10)
    h = x
    while n > 0:
        h = torch.tanh(h * 1.5 + 0.1)
        if h[0, 0] > 2:
            h = h * 2
        n = n - 1
    return h.sum()


def rows(x: torch.Tensor) -> torch.Tensor:
    """A buffer filled row by row."""
    out = torch.zeros_like(x)
    h = x[0]
    n = torch.tensor(x.shape[0])
    for t in range(n.item()):
        h = torch.tanh(h * 0.5)
        out[t] = h
    return out.square().mean()


def mlp() -> nn.Module:
    """Layers whose weights are as big as their activations: gradients take the place of what is kept."""
    layers: list[nn.Module] = []
    for _ in range(8):
        layers += [nn.Linear(512, 512), nn.ReLU()]
    return nn.Sequential(*layers)


def convolutions() -> nn.Module:
    """Convolutions, batch norm, in-place ReLU."""
    layers: list[nn.Module] = []
    for index in range(4):
        layers += [nn.Conv2d(3 if index == 0 else 16, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(inplace=True)]
    return nn.Sequential(*layers)


def encoder() -> nn.Module:
    """Two transformer layers with dropout."""
    layer = nn.TransformerEncoderLayer(128, 4, 256, batch_first=True)
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)


class Checkpointed(nn.Module):
    """Layers of which ``torch.utils.checkpoint`` lets backward compute each again."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            nn.Sequential(nn.Linear(256, 1024), nn.GELU(), nn.Tanh(), nn.Linear(1024, 256)) for _ in range(6))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Residual layers."""
        for layer in self.layers:
            x = x + checkpoint(layer, x, use_reentrant=False)
        return x


FUNCTIONS: dict[str, tuple[Callable[..., Any], tuple[int, ...]]] = {
    "elementwise chain": (chain, (1024, 1024)),
    "gelu, norm, silu, softmax": (normalized, (1024, 1024)),
    "in place": (in_place, (1024, 1024)),
    "loop": (looped, (1024, 1024)),
    "rows of a buffer": (rows, (512, 1024)),
}
MODULES: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "linear and relu": (mlp, (512, 512)),
    "convolutions": (convolutions, (16, 3, 64, 64)),
    "transformer encoder": (encoder, (16, 128, 128)),
    "checkpointed layers": (Checkpointed, (512, 256)),
}
WORKLOADS = [*FUNCTIONS, *MODULES, *PEERS.values()]
ROADS = {"eager": "eager", "interpreter": "dy2static interpreter", "c": "dy2static c"}


def step_of(name: str, road: str) -> Step:
    """One train step of a workload, or one call where it does not train."""
    torch.manual_seed(0)
    for key, title in PEERS.items():
        if name == title:
            from benchmarks.peer.torch_ import make

            return make(key, ROADS[road])
    if name in FUNCTIONS:
        function, shape = FUNCTIONS[name]
        run: Any = function if road == "eager" else to_static(function, backend=road)
        parameters: list[torch.Tensor] = []
    else:
        make, shape = MODULES[name]
        run = make()
        parameters = list(run.parameters())
        if road != "eager":
            run = to_static(run, backend=road)
    x = torch.randn(*shape).requires_grad_()

    def step() -> None:
        for one in (x, *parameters):
            one.grad = None
        run(x).sum().backward()

    return step


def measure(name: str, road: str) -> tuple[float, float]:
    """MB: allocated, and by how much the process grew."""
    torch.set_num_threads(1)
    step = step_of(name, road)
    for _ in range(5):
        step()
    before = _rest()
    for _ in range(3):
        step()
    grown = _status("VmHWM") - before
    return allocated(step) / 1e6, grown


def _rest() -> float:
    """The resident size, freed memory given back; the highest size counts anew from here."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    return _status("VmRSS")


def _status(field: str) -> float:
    """A size that Linux tells of this process, in MB."""
    with open("/proc/self/status") as file:
        (line,) = (line for line in file if line.startswith(field + ":"))
    return int(line.split()[1]) * 1024 / 1e6


def main() -> None:
    """Measure and print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="")
    parser.add_argument("--one", nargs=2, metavar=("WORKLOAD", "ROAD"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(*measure(*options.one))
        return
    heads = [f"{what}, MB: {road}" if road == "eager" else road for what in ("allocated", "process") for road in ROADS]
    print(f"| workload | {' | '.join(heads)} |\n| --- |{' ---: |' * len(heads)}")
    for name in WORKLOADS:
        if options.only not in name:
            continue
        first, *others = zip(*(_in_a_process(name, road) for road in ROADS))
        cells = [_cells(one) for one in (first, *others)]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


def _cells(values: tuple[float, ...]) -> str:
    """Eager's number, and what part of it the others are."""
    eager, *others = values
    return " | ".join([f"{eager:.3g}", *(f"{one / eager:.2f}" if eager else f"{one:.2g} MB" for one in others)])


def _in_a_process(name: str, road: str) -> tuple[float, float]:
    command = [sys.executable, os.path.abspath(__file__), "--one", name, road]
    environment = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "65536"}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    first, second = map(float, done.stdout.split()[-2:])
    return first, second


if __name__ == "__main__":
    main()
