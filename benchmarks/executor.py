"""Programs of tiny tensors, where what surrounds an operator costs as much as the operator: converted against eager.

    python benchmarks/executor.py [--only power] [--repeats 15] [--against ../other/checkout]

Process time of one step, the median over repeats in which the ways alternate; "backward" is part of a step where its
name says so. ``--against`` runs the workloads with the code of another checkout as well, in a process of its own that
takes turns with this one.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

if __name__ == "__main__":
    sys.path.insert(0, os.environ.get("CHECKOUT") or os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

from dy2static import to_static

Step = Callable[[], Any]


def power(a: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """The largest eigenvalue's vector, until it moves no more."""
    n = torch.tensor(0)
    moved = torch.tensor(1.0)
    while moved > 1e-12 and n < 200:
        w = a @ v
        w = w / w.norm()
        moved = (w - v).abs().max()
        v = w
        n = n + 1
    return v


def descend(x: torch.Tensor, y: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """1,000 steps of gradient descent, the gradient by hand."""
    n = torch.tensor(1000)
    while n > 0:
        error = x @ w - y
        w = w - 0.01 * (x.t() @ error)
        n = n - 1
    return w


class Decoder(nn.Module):
    """Greedy decoding with a tiny model until every row has ended."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(64, 16)
        self.cell = nn.Linear(32, 16)
        self.out = nn.Linear(16, 64)

    def forward(self, token: torch.Tensor, h: torch.Tensor) -> torch.Tensor:
        """The tokens."""
        done = token < 0
        tokens = []
        while len(tokens) < 64 and not bool(done.all()):
            h = torch.tanh(self.cell(torch.cat([self.embed(token), h], -1)))
            token = self.out(h).argmax(-1)
            done = done | (token == 0)
            tokens.append(token)
        return torch.stack(tokens)


class Gru(nn.Module):
    """A GRU cell written out, over rows."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.x = nn.Linear(width, 3 * width)
        self.h = nn.Linear(width, 3 * width)

    def forward(self, rows: torch.Tensor, h: torch.Tensor) -> torch.Tensor:
        """The last state."""
        for row in rows:
            a, b, c = self.x(row).chunk(3, -1)
            d, e, f = self.h(h).chunk(3, -1)
            reset, update = torch.sigmoid(a + d), torch.sigmoid(b + e)
            new = torch.tanh(c + reset * f)
            h = update * h + (1 - update) * new
        return h


def double(x: torch.Tensor) -> torch.Tensor:
    """One operator."""
    return x * 2


def workloads() -> dict[str, Callable[[Callable[[Any], Any]], Step]]:
    """By name: from the way a function is made to run (converted, or itself) to one step."""
    a = torch.rand(16, 16)
    a = a + a.t()
    v = torch.ones(16) / 4
    x, y, w = torch.rand(8, 4) / 4, torch.rand(8), torch.zeros(4)
    token, h = torch.randint(1, 64, (8,)), torch.zeros(8, 16)
    rows = torch.rand(64, 4, 16)
    decoder, gru = Decoder(), Gru()

    def without_gradients(make: Callable[[Any], Any], function: Any, *args: Any) -> Step:
        run = make(function)

        def step() -> Any:
            with torch.no_grad():
                return run(*args)

        return step

    def trained(make: Callable[[Any], Any]) -> Step:
        run = make(gru)

        def step() -> Any:
            gru.zero_grad()
            out = run(rows, h[:4])
            out.sum().backward()
            return out.detach()

        return step

    def with_gradient(make: Callable[[Any], Any]) -> Step:
        run, needs = make(double), v.clone().requires_grad_()
        return lambda: run(needs)

    return {
        "power iteration, 16x16": lambda make: without_gradients(make, power, a, v),
        "greedy decoding, batch 8": lambda make: without_gradients(make, decoder, token, h),
        "1,000 steps of descent": lambda make: without_gradients(make, descend, x, y, w),
        "GRU of 16, 64 rows, forward and backward": trained,
        "one operator, 100 calls": lambda make: _hundred(without_gradients(make, double, v)),
        "one operator that needs a gradient, 100 calls": lambda make: _hundred(with_gradient(make)),
    }


def _hundred(step: Step) -> Step:
    def steps() -> Any:
        for _ in range(99):
            step()
        return step()

    return steps


def timed(step: Step) -> float:
    """Process time of one step, in milliseconds."""
    start = time.process_time()
    step()
    return (time.process_time() - start) * 1e3


def serve(name: str) -> None:
    """Measure whenever a line comes in: what the other checkout's process does."""
    step = _made(name)[1]
    print("ready", flush=True)
    for _ in sys.stdin:
        print(timed(step), flush=True)


def _made(name: str) -> tuple[Step, Step]:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    make = workloads()[name]
    eager, program = make(lambda function: function), make(to_static)
    for _ in range(3):
        assert torch.equal(eager(), program())
    return eager, program


def main() -> None:
    """Measure and print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="")
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--against", default="")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve)
        return
    print("| workload | eager, ms | program | ratio |" + (" other checkout | ratio |" if options.against else ""))
    print("| --- | ---: | ---: | ---: |" + (" ---: | ---: |" if options.against else ""))
    for name in workloads():
        if options.only in name:
            print(_row(name, options.repeats, options.against), flush=True)


def _row(name: str, repeats: int, against: str) -> str:
    eager, program = _made(name)
    other = None
    if against:
        command = [sys.executable, os.path.abspath(__file__), "--serve", name]
        environment = {**os.environ, "CHECKOUT": os.path.abspath(against), "PYTHONPATH": os.path.abspath(against)}
        other = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, cwd=against)
        assert other.stdout is not None and other.stdin is not None
        other.stdout.readline()
    times: tuple[list[float], list[float], list[float]] = ([], [], [])
    for _ in range(repeats):
        times[0].append(timed(eager))
        times[1].append(timed(program))
        if other is not None and other.stdin is not None and other.stdout is not None:
            other.stdin.write("\n")
            other.stdin.flush()
            times[2].append(float(other.stdout.readline()))
    if other is not None and other.stdin is not None:
        other.stdin.close()
        other.wait()
    a, b = statistics.median(times[0]), statistics.median(times[1])
    row = f"| {name} | {a:.2f} | {b:.2f} | {b / a:.2f} |"
    if times[2]:
        c = statistics.median(times[2])
        row += f" {c:.2f} | {b / c:.2f} |"
    return row


if __name__ == "__main__":
    main()
