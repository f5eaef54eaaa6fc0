"""Loops in models: when a loop over a known number of steps is one ``Loop``."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from dy2static import InputSpec, loop_options
from tests.runtime.export.onnx.harness import Model, check, operators


class Recurrent(nn.Module):
    """A recurrent network, one step a row."""

    def __init__(self):
        super().__init__()
        self.cell, self.out = nn.GRUCell(3, 4), nn.Linear(4, 2)

    def step(self, row, h, outs):
        h = self.cell(row, h)
        outs.append(self.out(h))
        return h

    def forward(self, x):
        h, outs = x.new_zeros(x.shape[1], 4), []
        for row in x:
            h = self.step(row, h, outs)
        return torch.stack(outs), h


class Rolled(Recurrent):
    def forward(self, x):
        h, outs = x.new_zeros(x.shape[1], 4), []
        with loop_options(unroll=False):
            for row in x:
                h = self.step(row, h, outs)
        return torch.stack(outs), h


class Counted(Recurrent):
    def forward(self, x):
        h, outs = x.new_zeros(x.shape[1], 4), []
        with loop_options(unroll=False):
            for place in range(6):
                h = self.step(x[place], h, outs)
        return torch.stack(outs), h


def _exported(kind: type[nn.Module], length: int | None, folder) -> Model:
    torch.manual_seed(0)
    calls = [(torch.randn(6, size, 3),) for size in (1, 2)]
    return check(kind().eval(), folder, [InputSpec([length, None, 3], "float32", "x")], *calls)


@pytest.mark.parametrize(("kind", "length"), [(Recurrent, None), (Rolled, 6), (Counted, 6), (Counted, None)])
def test_steps_are_one_loop(kind, length, tmp_path):
    found = operators(_exported(kind, length, tmp_path))
    assert found.count("Loop") == 1 and found.count("Gemm") + found.count("MatMul") == 3


def test_steps_of_a_known_number_are_written_one_after_another(tmp_path):
    found = operators(_exported(Recurrent, 6, tmp_path))
    assert "Loop" not in found and found.count("Gemm") + found.count("MatMul") == 18


def test_a_loop_over_no_rows(tmp_path):
    def f(x):
        h = torch.zeros(3)
        for row in x:
            h = torch.tanh(h + row)
        return h

    check(f, tmp_path, [InputSpec([None, 3], "float32", "x")], *[(torch.ones(count, 3),) for count in (0, 1, 4)])
