"""A thousand training steps as one call of one Program, against the same function in plain Python.

    python benchmarks/training_inside.py

prints, for an optimizer each, the time of both and their ratio: medians of runs that alternate, after one run of each
that is not counted (it traces, and makes what the optimizer remembers).
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from dy2static import to_static

STEPS, RUNS = 1000, 5
OPTIMIZERS: dict[str, Callable[[Any], torch.optim.Optimizer]] = {
    "SGD": lambda parameters: torch.optim.SGD(parameters, lr=0.01),
    "SGD, momentum": lambda parameters: torch.optim.SGD(parameters, lr=0.01, momentum=0.9),
    "Adam": lambda parameters: torch.optim.Adam(parameters, lr=0.001),
}


def fit(model: nn.Module, optimizer: torch.optim.Optimizer, x: Tensor, y: Tensor) -> Tensor:
    """The training loop."""
    loss = x.sum()
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
    return loss.detach()


def measure(make: Callable[[Any], torch.optim.Optimizer], backend: str) -> tuple[float, float]:
    """Seconds in plain Python, and as a Program."""
    x, y = torch.randn(32, 8), torch.randn(32, 1)
    times: dict[str, list[float]] = {"eager": [], "program": []}
    runs = []
    for name, function in (("eager", fit), ("program", to_static(fit, backend=backend))):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
        runs.append((name, function, model, make(model.parameters())))
    for number in range(RUNS + 2):  # the second call of a Program is traced too: the optimizer remembers something now
        for name, function, model, optimizer in runs:
            start = time.perf_counter()
            function(model, optimizer, x, y)
            if number > 1:
                times[name].append(time.perf_counter() - start)
    return statistics.median(times["eager"]), statistics.median(times["program"])


def main() -> None:
    """All optimizers on both executors."""
    for backend in ("interpreter", "c"):
        for name, make in OPTIMIZERS.items():
            eager, program = measure(make, backend)
            print(f"{backend}, {name}: eager {eager:.3f} s, program {program:.3f} s, ratio {program / eager:.2f}")


if __name__ == "__main__":
    main()
