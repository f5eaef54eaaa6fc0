"""A model with a loop and a branch as a package for C++: python examples/aot_cpp/package.py settle.pt2

The loop runs until the tensor is small enough, which takes another number of steps for each input. ``main.cpp`` loads
the package and runs it without Python.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from torch import Tensor, nn

import dy2static
from dy2static import InputSpec


class Settle(nn.Module):
    """Halves its input until it is small, and says in how many steps; what is far too large is first cut off."""

    def __init__(self) -> None:
        super().__init__()
        self.step = nn.Linear(3, 3)
        with torch.no_grad():
            self.step.weight.copy_(torch.eye(3) / 2)
            self.step.bias.zero_()

    def forward(self, x: Tensor) -> tuple[Tensor, int]:
        if x.abs().max() > 1000:
            x = x.clamp(-1000, 1000)
        steps = 0
        while x.abs().max() > 1.0:
            x = self.step(x)
            steps += 1
        return x, steps


def write_package(path: Path) -> None:
    """Compile the model for this machine, for any number of rows."""
    program = dy2static.to_exported_program(Settle(), [InputSpec([None, 3], "float32", "x")])
    torch._inductor.aoti_compile_and_package(program, package_path=str(path))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path, help="what is written, its name ends in .pt2")
    write_package(parser.parse_args().path)
