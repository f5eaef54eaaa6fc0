"""Gradients as Programs against eager: time, peak memory and autograd nodes, side by side.

    python benchmarks/gradients.py [--repeats 15] [--only rnn]

The two alternate within each repeat; medians of processor time (one thread) are printed. Memory is what torch's
allocator had handed out at the highest point of one forward and backward, what was there before left out.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import runtime
from benchmarks.memory import allocated
from dy2static import to_static


def rnn(x: torch.Tensor, w: torch.Tensor, u: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
    """A recurrent cell, unrolled by a loop over a number only known at run time."""
    h = torch.zeros(x.shape[0], w.shape[0])
    for _ in range(n.item()):
        h = torch.tanh(x @ u + h @ w)
    return h.square().mean()


def long_loop(x: torch.Tensor, w: torch.Tensor, u: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
    """More work an iteration, and many iterations: what is kept for backward is most of the memory."""
    h = x
    for _ in range(n.item()):
        a = torch.relu(h @ w)
        b = torch.sigmoid(a @ u)
        h = torch.tanh(a * b + h)
    return h.square().mean()


def long_loop_recomputed(x: torch.Tensor, w: torch.Tensor, u: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
    """The same; each iteration is computed again in backward."""
    h = x
    for _ in range(n.item()):
        with runtime.recompute():
            a = torch.relu(h @ w)
            b = torch.sigmoid(a @ u)
            h = torch.tanh(a * b + h)
    return h.square().mean()


def fill(x: torch.Tensor, w: torch.Tensor, u: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
    """A buffer filled row by row."""
    steps = n.item()
    out = torch.zeros(2000, x.shape[1])
    h = x[0]
    for t in range(steps):
        h = torch.tanh(h * w[0])
        out[t] = h
    return out.square().mean()


Function = Callable[..., torch.Tensor]
WORKLOADS: dict[str, tuple[Function, Function, tuple[int, int], int]] = {
    "rnn cell, 64 steps": (rnn, rnn, (8, 64), 64),
    "loop, 512 steps": (long_loop, long_loop, (16, 64), 512),
    "loop, 512 steps, recompute": (long_loop, long_loop_recomputed, (16, 64), 512),
    "fill out[t] = h, T = 2000": (fill, fill, (1, 64), 2000),
}
"""Name -> eager function, converted function, shape of the input, steps."""


def nodes(result: torch.Tensor) -> int:
    """How many autograd nodes lead to a result, those of leaves included."""
    seen: set[Any] = set()
    todo = [result.grad_fn]
    while todo:
        node = todo.pop()
        if node is not None and node not in seen:
            seen.add(node)
            todo += [following for following, _ in node.next_functions]
    return len(seen)


def measure(name: str, repeats: int) -> list[tuple[str, int, float, float, int]]:
    """Rows of the table: who, autograd nodes, forward ms, forward + backward ms, peak bytes."""
    plain, converted, (batch, width), steps = WORKLOADS[name]
    torch.manual_seed(0)
    x = torch.randn(batch, width)
    w = (torch.randn(width, width) / width**0.5).requires_grad_()
    u = (torch.randn(width, width) / width**0.5).requires_grad_()
    n = torch.tensor(steps)
    roads: dict[str, Function] = {"eager": plain, "program": to_static(converted)}
    times: dict[str, list[tuple[float, float]]] = {road: [] for road in roads}
    gradients: dict[str, torch.Tensor] = {}
    for repeat in range(repeats + 2):
        for road, function in roads.items():
            w.grad = u.grad = None
            start = time.process_time()
            result = function(x, w, u, n)
            middle = time.process_time()
            result.backward()
            end = time.process_time()
            del result
            assert w.grad is not None
            gradients[road] = w.grad
            if repeat >= 2:
                times[road].append((middle - start, end - start))
    torch.testing.assert_close(gradients["program"], gradients["eager"], rtol=1e-4, atol=1e-6)
    rows = []
    for road, function in roads.items():
        def once(function: Function = function) -> None:
            function(x, w, u, n).backward()

        w.grad = u.grad = None
        forward, both = (statistics.median(one) * 1e3 for one in zip(*times[road]))
        rows.append((road, nodes(function(x, w, u, n)), forward, both, allocated(once)))
    return rows


def main() -> None:
    """Measure and print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    torch.set_num_threads(1)
    print("| workload | | autograd nodes | forward, ms | forward + backward, ms | peak memory, KiB |")
    print("| --- | --- | ---: | ---: | ---: | ---: |")
    for name in WORKLOADS:
        if options.only not in name:
            continue
        rows = measure(name, options.repeats)
        for road, count, forward, both, peak in rows:
            print(f"| {name} | {road} | {count} | {forward:.2f} | {both:.2f} | {peak / 1024:.0f} |")
        (_, _, f0, b0, m0), (_, _, f1, b1, m1) = rows
        print(f"| | program / eager | | {f1 / f0:.2f} | {b1 / b0:.2f} | {m1 / m0:.2f} |")


if __name__ == "__main__":
    main()
