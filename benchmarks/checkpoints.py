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
from typing import Any

import torch

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from benchmarks.memory import allocated
from dy2static import loop_options, to_static

STATE = (128, 128)
ROADS: dict[str, tuple[bool, int | None] | None] = {
    "eager": None,
    "program": (False, None),
    "recompute=True": (True, None),
    "checkpoints=50": (False, 50),
    "checkpoints=10": (False, 10),
}
"""Name -> ``recompute`` and ``checkpoints``."""


def loop(x: torch.Tensor, w: torch.Tensor, n: torch.Tensor, recompute: bool, checkpoints: int | None) -> torch.Tensor:
    """A state that changes as often as a number says that is only known at run time."""
    i = 0
    with loop_options(recompute=recompute, checkpoints=checkpoints):
        while i < n:
            x = torch.tanh(x * w) + x * 0.5
            i = i + 1
    return x.square().mean()


def measure(name: str, steps: int, repeats: int) -> tuple[float, float, torch.Tensor]:
    """Seconds, KiB at the highest point, and a gradient."""
    torch.manual_seed(0)
    options = ROADS[name]
    function: Any = loop if options is None else to_static(loop)
    recompute, checkpoints = options or (False, None)
    x, w = torch.randn(STATE).requires_grad_(), torch.randn(STATE[1]).requires_grad_()

    def step(steps: int) -> None:
        x.grad = w.grad = None
        function(x, w, torch.tensor(steps), recompute, checkpoints).backward()

    step(3)
    times = []
    for _ in range(repeats):
        start = time.process_time()
        step(steps)
        times.append(time.process_time() - start)
    peak = allocated(lambda: step(steps))
    assert w.grad is not None
    return statistics.median(times), peak / 1024, w.grad


def main() -> None:
    """Measure and print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=4000)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(1)
    print(f"| {options.steps} iterations | peak memory, KiB | forward + backward, s | against the program |")
    print("| --- | ---: | ---: | ---: |")
    found = {name: measure(name, options.steps, options.repeats) for name in ROADS}
    for name, (seconds, peak, grad) in found.items():
        assert name == "eager" or torch.equal(grad, found["program"][2]), name
        print(f"| {name} | {peak:.0f} | {seconds:.2f} | {seconds / found['program'][0]:.2f} |")


if __name__ == "__main__":
    main()
