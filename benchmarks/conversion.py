"""What it costs to convert: from source text to a Program that has run, and to one that has given gradients.

    python benchmarks/conversion.py --repeats 7

Seconds of processor time, medians; eager runs beside, for scale. Every repeat converts code that was never seen before,
after one that is not counted, so that PyTorch is warm.
"""

from __future__ import annotations

import argparse
import linecache
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from dy2static import to_static

SMALL = """
def f(x):
    y = x * 2 + 1
    return y.sin()
"""

BRANCHY = """
def f(x):
    total = x.sum()
    if total > 0:
        y = x * 2
        if y.max() > 3:
            y = y - 1
        else:
            y = y + x
    elif total < -5:
        y = -x
    else:
        y = x.exp()
    steps = 0
    while y.abs().sum() > 1:
        if y[0] > 0:
            y = y * 0.5
        else:
            y = y * 0.25
        steps += 1
        if steps > 10:
            break
    return y, steps
"""

ENCODER = """
class Encoder(nn.Module):
    def __init__(self, layers, width):
        super().__init__()
        self.layers = nn.ModuleList([
            nn.TransformerEncoderLayer(width, 4, 4 * width, batch_first=True, dropout=0.0) for _ in range(layers)
        ])

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x
"""


@dataclass
class Case:
    """A workload: how to make it anew, and what it is called with."""

    name: str
    make: Callable[[], Any]
    args: tuple[torch.Tensor, ...]


def define(text: str, name: str, number: list[int]) -> Any:
    """Run the text as a file that nobody has seen yet; what it calls ``name``."""
    number[0] += 1
    file = f"<conversion {number[0]}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    names: dict[str, Any] = {"nn": nn, "__name__": "conversion_workload"}
    exec(compile(text, file, "exec"), names)
    return names[name]


def cases() -> list[Case]:
    """The workloads."""
    number = [0]
    return [
        Case("a small function", lambda: define(SMALL, "f", number), (torch.randn(8, requires_grad=True),)),
        Case("branches and a loop", lambda: define(BRANCHY, "f", number), (torch.randn(8, requires_grad=True),)),
        Case(
            "a 12-layer encoder", lambda: define(ENCODER, "Encoder", number)(12, 32),
            (torch.randn(2, 6, 32, requires_grad=True),),
        ),
    ]  # fmt: skip


def seconds(run: Callable[[], Any]) -> float:
    """Processor time of one run."""
    start = time.process_time()
    run()
    return time.process_time() - start


def backward(result: Any) -> None:
    """Gradients of everything."""
    tensors = [one for one in (result if isinstance(result, tuple) else (result,)) if isinstance(one, torch.Tensor)]
    torch.stack([one.sum() for one in tensors]).sum().backward()  # type: ignore[no-untyped-call, unused-ignore]


def measure(case: Case, repeats: int) -> dict[str, float]:
    """Medians: eager; the first call without gradients; the first call with them; both again."""
    found: dict[str, list[float]] = {"eager": [], "first run": [], "first gradient": [], "again": []}
    for _ in range(repeats + 1):
        function = case.make()

        def eager(function: Any = function) -> None:
            backward(function(*case.args))

        eager()
        found["eager"].append(seconds(eager))
        converted = to_static(function)

        def plain(converted: Any = converted) -> None:
            with torch.no_grad():
                converted(*case.args)

        def gradient(converted: Any = converted) -> None:
            backward(converted(*case.args))

        found["first run"].append(seconds(plain))
        converted = to_static(case.make())
        found["first gradient"].append(seconds(lambda: gradient(converted)))  # noqa: B023  # run at once
        found["again"].append(seconds(lambda: gradient(converted)))  # noqa: B023  # run at once
    return {name: statistics.median(times[1:]) for name, times in found.items()}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    print(f"{'milliseconds':22}{'eager':>12}{'first run':>12}{'first grad':>12}{'again':>12}")
    for case in cases():
        found = measure(case, options.repeats)
        print(f"{case.name:22}" + "".join(f"{1000 * value:12.2f}" for value in found.values()))


if __name__ == "__main__":
    main()
