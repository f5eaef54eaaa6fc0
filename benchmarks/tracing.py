"""What a trace costs, and where: converting, tracing, deriving the gradients' Programs, generating code.

    python benchmarks/tracing.py --layers 12 --repeats 5

Seconds of processor time, medians, of an encoder's calls: the first one of all, in which PyTorch imports what it needs
for traces; the first of another such encoder, whose code is converted by then; and its first with other sizes, which
are left open from then on. The shares are of each phase alone, without those that run inside of it.

    python benchmarks/tracing.py --constructs 4,8,16,32

Seconds and Operators of programs in which so many branches one after another change the same things: what a branch
costs should not depend on how many there are.
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


def state_on_paths(x: torch.Tensor) -> Any:
    """A dict that the first step makes, whichever that is, with tensors that each step writes."""
    state: dict[str, Any] = {}
    for row in list(x):
        if row.sum() > 0:
            if "p" not in state:
                state["p"] = {}
            own = state["p"]
            if len(own) == 0:
                own["a"], own["b"] = torch.zeros_like(row), torch.zeros_like(row)
            own["a"].add_(row)
            own["b"].mul_(0.9)
    return state


def lists_on_paths(x: torch.Tensor) -> Any:
    """A list that grows, a set and a number."""
    found: list[Any] = []
    seen, count = set(), 0
    for row in list(x):
        if row.sum() > 0:
            found.append(row)
            seen.add(row.sum().item())
            count += 1
    return found, len(seen), count


def training(make: Callable[[Any], torch.optim.Optimizer]) -> Callable[[torch.Tensor], Any]:
    """Steps of an optimizer, each under a condition."""

    def run(x: torch.Tensor) -> Any:
        w = nn.Parameter(torch.ones(3))
        optimizer = make([w])
        for row in list(x):
            loss = (w * row).sum()
            loss.backward()
            if loss > 0:
                optimizer.step()
            optimizer.zero_grad()
        return w.detach()

    return run


GROWING: dict[str, Callable[[torch.Tensor], Any]] = {
    "state": state_on_paths,
    "lists": lists_on_paths,
    "SGD": training(lambda parameters: torch.optim.SGD(parameters, lr=0.1)),
    "Adam": training(lambda parameters: torch.optim.Adam(parameters, lr=0.1)),
}


def growth(counts: list[int]) -> None:
    """Print what programs with so many branches cost."""
    print(f"{'program':10}" + "".join(f"{count:>8} s{'ops':>8}" for count in counts))
    for name, function in GROWING.items():
        to_static(function)(torch.randn(2, 3))
        row = f"{name:10}"
        for count in counts:
            converted: Any = to_static(function)
            begin = time.process_time()
            converted(torch.randn(count, 3))
            seconds = time.process_time() - begin
            row += f"{seconds:10.2f}{sum(1 for _ in converted.programs[-1].block.walk()):8}"
        print(row, flush=True)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--constructs", default="")
    options = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    if options.constructs:
        growth([int(one) for one in options.constructs.split(",")])
        return
    names = [phase for phase, _, _ in PHASES] + ["rest"]
    print(f"{'call':14}{'seconds':>10}" + "".join(f"{name:>10}" for name in names))
    for kind, times in measure(options.layers, options.repeats).items():
        total = statistics.median(sum(one.values()) for one in times)
        shares = [statistics.median(one.get(name, 0.0) / sum(one.values()) for one in times) for name in names]
        print(f"{kind:14}{total:10.3f}" + "".join(f"{100 * share:9.0f}%" for share in shares))


if __name__ == "__main__":
    main()
