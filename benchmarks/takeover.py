"""``backend="auto"`` beside eager and the interpreter, on everyday models: where C takes over, and what that gains.

    python benchmarks/takeover.py [--repeats 15] [--only cells,chain]

Models without loops on data, small and middling, forward and with gradients. The three ways alternate within each
repeat, after 20 calls, so that C has taken over where it does; the best processor time of a call, one thread.
"""

from __future__ import annotations

import argparse
import copy
import os
import sys
import time
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import nn

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

from dy2static import to_static


class Layers(nn.Module):
    """Linear layers and ``relu``; ``gate``: a branch on the data before them."""

    def __init__(self, *widths: int, gate: bool = False) -> None:
        super().__init__()
        self.layers = nn.ModuleList(map(nn.Linear, widths, widths[1:]))
        self.gate = gate

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.gate:
            if x.mean() > 0:
                x = x * 2
            else:
                x = x - 1
        for layer in self.layers:
            x = torch.relu(layer(x))
        return x


class Pictures(nn.Module):
    """Two convolutions, a norm with statistics, a classifier."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(1, 8, 3, padding=1), nn.Conv2d(8, 16, 3, padding=1)
        self.norm, self.out = nn.BatchNorm2d(16), nn.Linear(64, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.max_pool2d(torch.relu(self.first(x)), 2)
        x = F.max_pool2d(torch.relu(self.norm(self.second(x))), 2)
        return self.out(x.flatten(1))


class Cells(nn.Module):
    """A recurrent cell of two products, unrolled."""

    def __init__(self, width: int, steps: int) -> None:
        super().__init__()
        self.of_x, self.of_h, self.steps = nn.Linear(width, 3 * width), nn.Linear(width, 3 * width), steps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = torch.zeros_like(x[0])
        for step in range(self.steps):
            (a, b, c), (d, e, f) = self.of_x(x[step]).chunk(3, -1), self.of_h(h).chunk(3, -1)
            update = torch.sigmoid(a + d)
            h = (1 - update) * torch.tanh(c + torch.sigmoid(b + e) * f) + update * h
        return h


class Chain(nn.Module):
    """Elementwise operators, four a step."""

    def __init__(self, steps: int) -> None:
        super().__init__()
        self.scale, self.steps = nn.Parameter(torch.ones(1)), steps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(self.steps):
            x = torch.tanh(x * self.scale + 0.5) - 0.1
        return x


def encoder(width: int, layers: int) -> nn.Module:
    """A transformer's encoder."""
    layer = nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.0, activation="gelu", batch_first=True)
    return nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)


def models() -> dict[str, tuple[nn.Module, torch.Tensor]]:
    """Each with its input."""
    found: dict[str, tuple[nn.Module, torch.Tensor]] = {
        "MLP 64-32, batch 16": (Layers(64, 32, 32, 10), torch.randn(16, 64)),
        "MLP 64-256, batch 64": (Layers(64, 256, 256, 10), torch.randn(64, 64)),
        "MLP with a branch": (Layers(64, 32, 32, 10, gate=True), torch.randn(16, 64)),
        "20 layers of 32": (Layers(*[32] * 21), torch.randn(8, 32)),
        "convolutions, batch 16": (Pictures(), torch.randn(16, 1, 8, 8)),
        "norm, linear, gelu": (nn.Sequential(nn.LayerNorm(256), nn.Linear(256, 256), nn.GELU()), torch.randn(128, 256)),
        "encoder, 2 layers of 64": (encoder(64, 2), torch.randn(4, 16, 64)),
        "encoder, 2 layers of 128": (encoder(128, 2), torch.randn(1, 128, 128)),
        "encoder, 4 layers of 256": (encoder(256, 4), torch.randn(8, 64, 256)),
        "embedding": (nn.Sequential(nn.EmbeddingBag(1000, 64), nn.Linear(64, 5)), torch.randint(0, 1000, (16, 12))),
    }
    for width, steps in ((16, 4), (16, 16), (64, 16), (128, 8)):
        found[f"cells of {width}, {steps} steps"] = Cells(width, steps), torch.randn(steps, 4, width)
    for size, steps in ((64, 2), (64, 8), (4096, 2), (4096, 8), (30_000, 4), (30_000, 12)):
        found[f"chain of {4 * steps}, {size} elements"] = Chain(steps), torch.randn(size)
    return found


def step(model: nn.Module, x: torch.Tensor, gradients: bool) -> Callable[[], None]:
    """A call, with its backward or without a gradient."""

    def run() -> None:
        if not gradients:
            with torch.no_grad():
                model(x)
            return
        for parameter in model.parameters():
            parameter.grad = None
        model(x).sum().backward()

    return run


def measure(model: nn.Module, x: torch.Tensor, gradients: bool, repeats: int) -> tuple[dict[str, float], str]:
    """Microseconds of each way, and how the last one runs."""
    static = {name: to_static(copy.deepcopy(model), backend=name) for name in ("interpreter", "auto")}
    runs = {name: step(one, x, gradients) for name, one in {"eager": model, **static}.items()}
    for run in runs.values():
        for _ in range(20):
            run()
    start, count = time.process_time(), 0
    while time.process_time() - start < 0.02:
        runs["eager"]()
        count += 1
    best = dict.fromkeys(runs, float("inf"))
    for _ in range(repeats):
        for name, run in runs.items():
            start = time.process_time()
            for _ in range(count):
                run()
            best[name] = min(best[name], (time.process_time() - start) / count * 1e6)
    forward: object = static["auto"].forward
    (told,) = forward.compiled  # type: ignore[attr-defined]
    kind = "with gradients" if gradients else "without gradients"
    return best, next((part.state for part in told.parts if part.what == kind), "")


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--only", type=lambda text: text.split(","), default=[""])
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    print("| microseconds a call | gradients | eager | interpreter / eager | auto / eager | with `auto` |")
    print("| --- | --- | ---: | ---: | ---: | --- |")
    for name, (model, x) in models().items():
        if not any(part in name for part in options.only):
            continue
        for gradients in (False, True):
            best, state = measure(model, x, gradients, options.repeats)
            ratios = " | ".join(f"{best[way] / best['eager']:.2f}" for way in ("interpreter", "auto"))
            who = "C" if state == "compiled" else "interpreter"
            print(f"| {name} | {'yes' if gradients else ''} | {best['eager']:.0f} | {ratios} | {who} |", flush=True)


if __name__ == "__main__":
    main()
