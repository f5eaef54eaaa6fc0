"""What a trace costs, and where: converting, tracing, deriving the gradients' Programs, generating code.

    python benchmarks/tracing.py --layers 12 --repeats 5

Seconds of processor time, medians, of an encoder's calls: the first one of all, in which PyTorch imports what it needs
for traces; the first of another such encoder, whose code is converted by then; and its first with other sizes, which
are left open from then on. The shares are of each phase alone, without those that run inside of it.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import torch
from torch import nn

from dy2static import conversion, subject, to_static
from runtime.autodiff import node
from runtime.executor import executable

PHASES: tuple[tuple[str, Any, str], ...] = (
    ("convert", conversion, "_compile"),
    ("trace", subject, "trace"),
    ("derive", node, "derive"),
    ("generate", executable.Executable, "_generate"),
)
"""Each with the function that is it."""


class Watch:
    """Processor time by phase; what runs inside another phase counts for the inner one."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.open: list[str] = ["rest"]
        self.since = time.process_time()

    def turn(self) -> None:
        """Give the time since the last turn to the innermost phase."""
        now = time.process_time()
        self.seconds[self.open[-1]] = self.seconds.get(self.open[-1], 0.0) + now - self.since
        self.since = now

    def watched(self, phase: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, whose time is the phase's."""

        def call(*args: Any, **kwargs: Any) -> Any:
            self.turn()
            self.open.append(phase)
            try:
                return function(*args, **kwargs)
            finally:
                self.turn()
                self.open.pop()

        return call


@contextmanager
def watching() -> Iterator[Watch]:
    """Times the phases of what runs in the block."""
    watch = Watch()
    with ExitStack() as stack:
        for phase, owner, name in PHASES:
            stack.enter_context(mock.patch.object(owner, name, watch.watched(phase, getattr(owner, name))))
        watch.since = time.process_time()
        yield watch
        watch.turn()


class Encoder(nn.Module):
    """Layers, one after another."""

    def __init__(self, layers: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, dropout=0.0) for _ in range(layers)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The input through all layers."""
        for layer in self.layers:
            x = layer(x)
        return x


def measure(layers: int, repeats: int) -> dict[str, list[dict[str, float]]]:
    """By kind of call: the seconds of each phase, for each repeat."""
    small, other = (torch.randn(2, 6, 32, requires_grad=True), torch.randn(3, 7, 32, requires_grad=True))
    found: dict[str, list[dict[str, float]]] = {"first of all": [], "first": [], "other sizes": []}
    for number in range(repeats + 1):
        module: Any = to_static(Encoder(layers))
        for kind, x in (("first" if number else "first of all", small), ("other sizes", other)):
            with watching() as watch:
                module(x)
            if number or kind == "first of all":
                found[kind].append(watch.seconds)
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    names = [phase for phase, _, _ in PHASES] + ["rest"]
    print(f"{'call':14}{'seconds':>10}" + "".join(f"{name:>10}" for name in names))
    for kind, times in measure(options.layers, options.repeats).items():
        total = statistics.median(sum(one.values()) for one in times)
        shares = [statistics.median(one.get(name, 0.0) / sum(one.values()) for one in times) for name in names]
        print(f"{kind:14}{total:10.3f}" + "".join(f"{100 * share:9.0f}%" for share in shares))


if __name__ == "__main__":
    main()
