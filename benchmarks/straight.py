"""Straight lines and branches, forward and backward: under torch's autograd, operator by operator, or as a Program.

    python benchmarks/straight.py [--repeats 9]

Where no loop is, the interpreter leaves small calls to torch's autograd (``runtime.autodiff.node.BIG``).
Eager and both ways alternate within each repeat; the best processor time of a call, one thread.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from unittest import mock

import torch
import torch.nn.functional as F

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

from dy2static import to_static
from runtime.autodiff import node

Step = Callable[[], None]


def add(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """One operator and a sum."""
    return (x + w).sum()


def activations(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """Activations, a norm and a softmax."""
    y = F.silu(F.layer_norm(F.gelu(x), (x.shape[-1],))) * w
    y = torch.softmax(y, -1) * x + torch.tanh(y)
    return y.square().mean()


def pointwise(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """A chain of elementwise operators."""
    for _ in range(4):
        x = torch.sigmoid(x) * w + torch.sin(x) * 0.5 - x
    return x.sum()


def products(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """Three layers with one square weight."""
    square = w[:, None] * w
    for _ in range(3):
        x = torch.relu(x @ square)
    return x.square().mean()


def branch(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """One branch around one operator."""
    return (x * w).sum() if x[0, 0] < 9 else (x - w).sum()


def branches(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """Ten branches, one after another, with elementwise operators between."""
    for step in range(10):
        x = torch.tanh(x) * w
        if x[0, 0] < step:
            x = x + torch.sin(x)
        else:
            x = torch.cos(x) * x
    return x.sum()


def step(function: Callable[..., torch.Tensor], x: torch.Tensor, w: torch.Tensor) -> Step:
    """A call with its backward."""

    def run() -> None:
        function(x, w).backward()
        x.grad = w.grad = None

    return run


def measure(function: Callable[..., torch.Tensor], rows: int, repeats: int) -> list[float]:
    """Microseconds of eager, of torch's autograd and of a backward Program."""
    x, w = torch.randn(rows, 256, requires_grad=True), torch.randn(256, requires_grad=True)
    steps = [step(function, x, w)]
    for big in (sys.maxsize, 0):
        static = to_static(function, backend="interpreter")
        with mock.patch.object(node, "BIG", big):
            static(x, w).backward()  # which is settled here
        steps.append(step(static, x, w))
    count = max(2, 20_000 // (rows * 4))
    best = [float("inf")] * len(steps)
    for _ in range(repeats):
        for index, one in enumerate(steps):
            with mock.patch.object(node, "BIG", (0, sys.maxsize, 0)[index]):
                one()
                start = time.process_time()
                for _ in range(count):
                    one()
            best[index] = min(best[index], (time.process_time() - start) / count)
    return [seconds * 1e6 for seconds in best]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--repeats", type=int, default=9)
    options = parser.parse_args()
    torch.set_num_threads(1)
    print("| microseconds a call | elements | eager | autograd | Program | autograd / eager | Program / eager |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for function in (add, activations, pointwise, products, branch, branches):
        for rows in (4, 64, 512, 4096):
            eager, autograd, program = measure(function, rows, options.repeats)
            print(f"| {function.__name__} | {rows * 256} | {eager:.0f} | {autograd:.0f} | {program:.0f} | "
                  f"{autograd / eager:.2f} | {program / eager:.2f} |")  # fmt: skip


if __name__ == "__main__":
    main()
