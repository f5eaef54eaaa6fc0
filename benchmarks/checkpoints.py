"""A long loop whose gradient keeps everything, every state, or a few states: peak memory and time.

    python benchmarks/checkpoints.py [--steps 4000] [--repeats 3]

The state is 64 KiB. Memory is what torch's allocator had handed out at the highest point of one forward and backward,
what was there before left out; time is processor time of one thread, the median. Eager is measured beside.
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

from benchmarks.memory import allocated
from dy2static import loop_options, to_static

STATE = (128, 128)
ROADS: dict[str, dict[str, Any] | None] = {
    "eager": None,
    "program": {},
    "recompute=True": {"recompute": True},
    "checkpoints=50": {"checkpoints": 50},
    "checkpoints=10": {"checkpoints": 10},
}


def loop_with(options: dict[str, Any]) -> Callable[..., torch.Tensor]:
    """The loop under some options."""

    def loop(x: torch.Tensor, w: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
        i = 0
        with loop_options(**options):
            while i < n:
                x = torch.tanh(x * w) + x * 0.5
                i = i + 1
        return x.square().mean()

    return loop


def main() -> None:
    """Measure and print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=4000)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    x, w = torch.randn(STATE).requires_grad_(), torch.randn(STATE[1]).requires_grad_()
    functions = {name: loop_with({}) if one is None else to_static(loop_with(one)) for name, one in ROADS.items()}
    times: dict[str, list[float]] = {name: [] for name in ROADS}
    gradients: dict[str, torch.Tensor] = {}

    def step(name: str, steps: int) -> None:
        x.grad = w.grad = None
        functions[name](x, w, torch.tensor(steps)).backward()
        assert w.grad is not None
        gradients[name] = w.grad

    for name in ROADS:
        step(name, 3)
    for _ in range(options.repeats):
        for name in ROADS:
            start = time.process_time()
            step(name, options.steps)
            times[name].append(time.process_time() - start)
    for name in ROADS:
        assert name == "eager" or torch.equal(gradients[name], gradients["program"]), name
    print(f"| {options.steps} steps | peak memory, KiB | forward + backward, s | against the program |")
    print("| --- | ---: | ---: | ---: |")
    for name in ROADS:
        peak = allocated(lambda name=name: step(name, options.steps))  # type: ignore[misc]
        seconds = statistics.median(times[name])
        ratio = seconds / statistics.median(times["program"])
        print(f"| {name} | {peak / 1024:.0f} | {seconds:.2f} | {ratio:.2f} |", flush=True)


if __name__ == "__main__":
    main()
