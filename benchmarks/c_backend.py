"""Loops and small tensors: eager, the interpreter, and ``backend="c"``.

    python benchmarks/c_backend.py --repeats 15 [--only w4]

One thread. The three alternate within each repeat; medians of the repeats are printed, in microseconds a call, and the
time of the first call of the C backend, tracing and compiling included. Results are held against eager's first.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

from dy2static import InputSpec, to_static

Step = Callable[[], Any]


def power_iteration(a: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, int]:
    """The eigenvector of the largest eigenvalue, and in how many iterations."""
    count = 0
    change = torch.ones(())
    while change > 1e-6:
        w = a @ v
        w = w / w.norm()
        change = (w - v).abs().max()
        v = w
        count = count + 1
    return v, count


class Recurrent(nn.Module):
    """A recurrent network that decides after each row whether to go on."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.inner = nn.Linear(width, width)
        self.state = nn.Linear(width, width, bias=False)

    def forward(self, x: torch.Tensor, h: torch.Tensor) -> torch.Tensor:
        """The last state."""
        for row in x:
            h = torch.tanh(self.inner(row) + self.state(h))
            if h.abs().max() > 5.0:
                break
        return h


def descend(w: torch.Tensor, x: torch.Tensor, y: torch.Tensor, steps: torch.Tensor) -> torch.Tensor:
    """Gradient descent inside the graph."""
    i = 0
    while i < steps:
        p = w.detach().requires_grad_()
        loss = ((x @ p - y) ** 2).mean()
        (gradient,) = torch.autograd.grad(loss, [p])
        w = w - 0.1 * gradient
        i += 1
    return w


class Gated(nn.Module):
    """A loop over rows with a GRU cell, written out."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.inner = nn.Linear(width, 3 * width)
        self.state = nn.Linear(width, 3 * width)

    def forward(self, x: torch.Tensor, h: torch.Tensor) -> torch.Tensor:
        """The last state."""
        for row in x:
            a, b = self.inner(row).chunk(3, 1), self.state(h).chunk(3, 1)
            r, z = torch.sigmoid(a[0] + b[0]), torch.sigmoid(a[1] + b[1])
            n = torch.tanh(a[2] + r * b[2])
            h = n + z * (h - n)
        return h


def chain(x: torch.Tensor) -> torch.Tensor:
    """Elementwise work on one big tensor, behind a decision."""
    y = torch.sigmoid(x) * x
    y = torch.tanh(y + 1.0) * 0.5
    y = torch.exp(-y * y) + x
    if y.mean() > 0:
        y = y * 2.0 - x
    return y


class Block(nn.Module):
    """Activations, norms and a softmax on rows, with a decision among them."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(width), nn.RMSNorm(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Rows, weighted by themselves."""
        y = self.first(torch.nn.functional.gelu(x * 1.5)) + x
        if y.mean() > -100.0:
            y = torch.nn.functional.silu(y)
        return torch.softmax(self.second(y), -1) * x


class Reader(nn.Module):
    """Reads a memory again in each step: its keys and values are the same each time."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))

    def forward(self, memory: torch.Tensor, x: torch.Tensor, steps: torch.Tensor) -> torch.Tensor:
        """What was read last."""
        i = 0
        while i < steps:
            keys, values = self.key(memory), self.value(memory)
            x = torch.tanh(0.5 * x + torch.softmax(self.query(x) @ keys.t(), -1) @ values)
            i = i + 1
        return x


def trained(model: nn.Module, static: Any, args: tuple[torch.Tensor, ...]) -> Step:
    """Forward and backward, to the parameters and the arguments that need gradients."""
    wanted = [*model.parameters(), *(arg for arg in args if arg.requires_grad)]

    def step() -> Any:
        return torch.autograd.grad(static(*args).sum(), wanted)

    return step


def workloads() -> dict[str, Callable[[str | None], Step]]:
    """For each workload what makes its step: in eager (None), or with a backend."""
    torch.manual_seed(0)
    q, _ = torch.linalg.qr(torch.randn(16, 16))
    matrix = q @ torch.diag(torch.linspace(0.5, 1.05, 16)) @ q.t()
    start = torch.randn(16)
    rows, state = torch.randn(64, 1, 256), torch.zeros(1, 256)
    many_rows, many_states = torch.randn(64, 32, 256), torch.zeros(32, 256)
    recurrent = Recurrent(256)
    x, y, w, steps = torch.randn(32, 16), torch.randn(32, 1), torch.zeros(16, 1), torch.tensor(1000)
    small, small_state, gated = torch.randn(64, 4, 16), torch.zeros(4, 16), Gated(16)
    wide, wide_state, gated_wide = torch.randn(64, 4, 128), torch.zeros(4, 128), Gated(128)
    big = torch.randn(1000, 1000)
    learned = wide.clone().requires_grad_()

    def plain(function: Callable[..., Any], *args: Any, spec: Any = None, grad: bool = False
              ) -> Callable[[str | None], Step]:  # fmt: skip
        def make(backend: str | None) -> Step:
            run = function if backend is None else to_static(function, backend=backend, input_spec=spec)

            def step() -> Any:
                with torch.set_grad_enabled(grad):
                    return run(*args)

            return step

        return make

    def train(model: nn.Module, spec: Any, *args: torch.Tensor) -> Callable[[str | None], Step]:
        def make(backend: str | None) -> Step:
            run = model.forward if backend is None else to_static(model.forward, backend=backend, input_spec=spec)
            return trained(model, run, args)

        return make

    def specs(*shapes: list[Any]) -> list[InputSpec]:
        return [InputSpec(shape) for shape in shapes]

    return {
        "W4 power iteration 16x16": plain(power_iteration, matrix, start),
        "W3 dynamic RNN batch 1, h 256, T 64": plain(
            recurrent.forward, rows, state, spec=specs([None, 1, 256], [1, 256])),
        "W3 dynamic RNN batch 32, h 256, T 64": plain(
            recurrent.forward, many_rows, many_states, spec=specs([None, 32, 256], [32, 256])),
        "W6 1,000 SGD steps in the graph": plain(descend, w, x, y, steps, grad=True),
        "GRU-16 forward": plain(gated.forward, small, small_state, spec=specs([None, 4, 16], [4, 16])),
        "GRU-16 forward and backward": train(gated, specs([None, 4, 16], [4, 16]), small, small_state),
        "GRU-128 forward and backward": train(gated_wide, specs([None, 4, 128], [4, 128]), wide, wide_state),
        "GRU-128, gradients of the rows too": train(gated_wide, specs([None, 4, 128], [4, 128]), learned, wide_state),
        "reads of a memory, 32 steps": plain(Reader(128).forward, torch.randn(64, 128), torch.randn(8, 128),
                                             torch.tensor(32)),
        "elementwise chain, 1,000,000": plain(chain, big),
        "activations, norms, softmax, 1,000,000, f+b": train(Block(1000), None, big.clone().requires_grad_()),
    }  # fmt: skip


def main() -> None:
    """Run each workload and print a row for it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    torch.set_num_threads(1)
    print(f"torch {torch.__version__}, Python {platform.python_version()}, {processor()}")
    print(f"{'us a call':<38}{'eager':>11}{'interpreter':>13}{'c':>11}{'c/eager':>9}{'c/interp.':>11}{'first, s':>10}")
    for name, make in workloads().items():
        if options.only.lower() in name.lower():
            eager, interpreted, compiled = steps = [make(backend) for backend in (None, "interpreter", "c")]
            begin = time.perf_counter()
            compiled()
            first = time.perf_counter() - begin
            hold(compiled(), eager())
            hold(interpreted(), eager())
            times = [[timed(step) for step in steps] for _ in range(options.repeats)]
            row = [statistics.median(column) * 1e6 for column in zip(*times)]
            print(f"{name:<38}{row[0]:11.1f}{row[1]:13.1f}{row[2]:11.1f}{row[2] / row[0]:9.3f}{row[2] / row[1]:11.3f}"
                  f"{first:10.2f}", flush=True)  # fmt: skip


def timed(step: Step) -> float:
    """Seconds of processor time that a step takes: the best of as many as fit into a twentieth of a second."""
    best, end = float("inf"), time.perf_counter() + 0.05
    while True:
        begin = time.process_time()
        step()
        best = min(best, time.process_time() - begin)
        if time.perf_counter() > end:
            return best


def hold(got: Any, expected: Any) -> None:
    """Both must agree but for rounding. Errors raised: AssertionError."""
    if isinstance(expected, torch.Tensor):
        torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-5)
    elif isinstance(expected, (tuple, list)):
        for a, b in zip(got, expected, strict=True):
            hold(a, b)
    else:
        assert abs(got - expected) <= 2, (got, expected)  # how many iterations: rounding may decide the last


def processor() -> str:
    """The processor's name and vector instructions."""
    try:
        with open("/proc/cpuinfo") as file:
            text = file.read()
    except OSError:
        return platform.processor()
    name = next((line.partition(": ")[2] for line in text.splitlines() if line.startswith("model name")), "?")
    flags = [flag for flag in ("avx2", "fma", "avx512f") if f" {flag} " in text]
    return f"{name}, {' '.join(flags)}"


if __name__ == "__main__":
    main()
