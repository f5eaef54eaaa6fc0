"""A recurrent network that appends its state for each row and stacks the list: while_loop against scan.

    python benchmarks/scan.py --rows 512 --width 32 --batch 8 --repeats 15

Both are the same Program, without and with the pass that makes scans. One step is forward and backward. The three
(eager beside them) alternate within each repeat; medians are printed. Memory is what torch's allocator had handed out
at the highest point of one step, what was there before left out.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable
from unittest import mock

import torch
from torch import nn

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

from benchmarks.memory import allocated
from dy2static import InputSpec, to_static
from runtime.autodiff import Runner
from runtime.executor import compile_program
from runtime.ir.walk import copy_program
from runtime.passes import DEFAULT, PassManager, scan

Step = Callable[[], None]
_LOOPS = [one for one in DEFAULT if one is not scan.PASS]


class Network(nn.Module):
    """Layers of a recurrent network, each a loop over the rows that the one before gave."""

    def __init__(self, width: int, layers: int) -> None:
        super().__init__()
        self.inputs = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))
        self.states = nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(layers))

    def forward(self, x: torch.Tensor, h: torch.Tensor) -> torch.Tensor:
        """The states of the last layer, a row for each of ``x``."""
        for inner, state in zip(self.inputs, self.states):
            states = []
            g = h
            for row in x:
                g = torch.tanh(inner(row) + state(g))
                states.append(g)
            x = torch.stack(states)
        return x


def main() -> None:
    """Run each way and print a line for each number of layers."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=512)
    parser.add_argument("--width", type=int, default=32)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--repeats", type=int, default=15)
    options = parser.parse_args()
    torch.set_num_threads(1)
    print(f"{options.rows} rows, medians of {options.repeats}: ms of forward and backward, MB at the highest point")
    print(f"{'layers':<8}{'':<9}{'eager':>9}{'while':>9}{'scan':>9}{'scan/while':>12}{'scan/eager':>12}")
    for layers in (1, 2):
        for grad in (True, False):
            steps = made(layers, grad, options)
            for step in steps * 2:
                step()
            times = [[timed(step) for step in steps] for _ in range(options.repeats)]
            row = [statistics.median(column) * 1e3 for column in zip(*times)]
            memory = [allocated(step) / 1e6 for step in steps]
            for what, (eager, loop, scanned) in (("ms", row), ("MB", memory)):
                name = f"{layers} {'train' if grad else 'infer'}" if what == "ms" else ""
                print(f"{name:<10}{what:<7}{eager:9.2f}{loop:9.2f}{scanned:9.2f}{scanned / loop:12.2f}"
                      f"{scanned / eager:12.2f}", flush=True)  # fmt: skip


def made(layers: int, grad: bool, options: argparse.Namespace) -> list[Step]:
    """A step in eager, with the loops, and with scans."""
    network = Network(options.width, layers)
    x, h = torch.randn(options.rows, options.batch, options.width), torch.zeros(options.batch, options.width)
    shape = [options.batch, options.width]
    static = to_static(network.forward, input_spec=[InputSpec([None, *shape]), InputSpec(shape)])
    with mock.patch("runtime.calling.prepare.chosen", lambda strategy: _LOOPS):
        program = static.concrete_program().program
    assert any(op.name == "while_loop" for op in program.block.walk())
    own = dict(network.named_parameters())
    params = [own[param.name] for param in program.params]
    runners = []
    for passes in (_LOOPS, DEFAULT):
        copy = copy_program(program)
        PassManager(passes).run(copy)
        runners.append(Runner(copy, compile_program))

    def step(forward: Callable[[], torch.Tensor]) -> Step:
        def run() -> None:
            network.zero_grad(set_to_none=True)
            with torch.set_grad_enabled(grad):
                out = forward()
            if grad:
                out.square().mean().backward()

        return run

    return [
        step(lambda: network(x, h)),
        *(step(lambda runner=runner: runner.run([x, h], params)[0]) for runner in runners),  # type: ignore[misc]
    ]


def timed(step: Step) -> float:
    """Seconds of one step."""
    start = time.perf_counter()
    step()
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
