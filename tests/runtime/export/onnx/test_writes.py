"""Writes to tensors as functional operators: through views of views, of bases that are read later."""

from __future__ import annotations

import json

import pytest
import torch

from dy2static import InputSpec
from tests.runtime.export.onnx.harness import check, refused

SPECS = [InputSpec([None, 4], "float32", "x"), InputSpec([], "int64", "n")]
CALLS = [(torch.arange(8.0).reshape(2, 4) - 3, torch.tensor(1)), (torch.arange(12.0).reshape(3, 4), torch.tensor(2))]
SPREAD = pytest.mark.skipif(torch.__version__ < "2.13", reason="this PyTorch records more, which is refused")


def views_of_views(x, n):
    y = x.clone()
    y[1:].t()[0] = 7
    y.view(-1)[::3] += 10  # before PyTorch 2.13, with a copy that is spread to the size that it has
    y.transpose(0, 1)[2, :1].mul_(-1)
    return y


def views_seen_later(x, n):
    y = x * 2
    row = y[0]
    y.add_(1)
    row[1] = -5
    return y, row, row.sum()


def staged_places(x, n):
    y = x.clone()
    y[n - 1, n] = 9
    y[n - 1 :, 0] = torch.tensor(3)
    return y


def masks(x, n):
    y = x.clone()
    y[y > 2] = 0
    y.masked_fill_(y < 0, 1.5)
    y[y == 0] += 4
    return y


def other_dtypes(x, n):
    y = x.clone()
    y += n
    y[0] = n
    y *= torch.tensor(True)
    z = torch.zeros(2, dtype=torch.int64)
    z[n - 1] = 3
    z.fill_(n)
    return y, z


def in_a_loop(x, n):
    out = torch.zeros(x.shape[0] + 1, 4)
    for i in range(x.shape[0]):
        out[i + 1] = out[i] + x[i]
    return out


def on_a_path(x, n):
    y = torch.zeros(4)
    for i in range(3):
        if x.sum() > i:
            y[i] = x[0, i]
        else:
            y.zero_()
    return y


def indices(x, n):
    y = x.clone()
    y[[0, 1], [1, 2]] = torch.tensor([5.0, 6.0])
    y[:, torch.tensor([3])] = -1.0
    return y


def filled(x, n):
    y = x.clone()
    y.index_fill_(1, torch.tensor([1, 2]), 7.0)
    y.index_fill_(-2, torch.tensor([0]), x.sum())
    return y, x.index_fill(1, torch.tensor([0]), 3), x.long().index_fill(1, torch.tensor([0]), 2)


@pytest.mark.parametrize("function", [
    pytest.param(views_of_views, marks=SPREAD), views_seen_later, staged_places, masks, other_dtypes, in_a_loop,
    on_a_path, indices, filled,
])  # fmt: skip
def test_writes(function, tmp_path):
    check(function, tmp_path, SPECS, *CALLS)


def test_writes_to_arguments_are_refused(tmp_path):
    def f(x, n):
        x.add_(n)
        return x.sum()

    assert "'x'" in refused(f, tmp_path, SPECS, "D2S541").summary


class Counting(torch.nn.Module):
    """Writes a buffer that it reads, on a path and in a loop, and one of another shape."""

    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))
        self.register_buffer("seen", torch.zeros(3))
        self.norm = torch.nn.BatchNorm1d(3)

    def forward(self, x, n):
        if x.sum() > 0:
            self.calls += 1
        while self.calls < n:
            self.calls += 2
        self.seen.mul_(0.5).add_(x[:, :3].mean(0))
        return self.norm(x[:, :3]) * self.calls, self.seen.sum()


class ReturnsItsBuffer(torch.nn.Module):
    """The result is the buffer itself, written before."""

    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.zeros(()))

    def forward(self, x, n):
        self.total += x.sum()
        return self.total


WIDE = [InputSpec([None, 4], "float32", "x"), InputSpec([], "int64", "n")]


@pytest.mark.parametrize("module", [Counting, ReturnsItsBuffer])
def test_written_buffers_are_inputs_that_need_not_be_given_and_outputs(module, tmp_path):
    """Each call is given what the last one wrote."""
    torch.manual_seed(0)
    calls = [(torch.randn(5, 4) + shift, torch.tensor(count)) for shift, count in ((1, 0), (-1, 5), (1, 2), (1, 9))]
    model = check(module(), tmp_path, WIDE, *calls)
    assert model.state and model.exported.inputs == ("x", "n")
    stored = {name: value for name, value in model.state.items()}
    model.state = {}
    check(module(), tmp_path, WIDE, calls[1])
    first = model.session.run(None, {"x": calls[0][0].numpy(), "n": calls[0][1].numpy()})
    assert len(first) == len(model.exported.outputs) + len(stored)


def test_the_file_says_which_output_is_which_buffer(tmp_path):
    model = check(Counting(), tmp_path, WIDE, (torch.randn(5, 4), torch.tensor(1)))
    said = json.loads(model.session.get_modelmeta().custom_metadata_map["state"])
    assert said == model.exported.state == {"calls": "calls_next", "seen": "seen_next"}


def test_writes_to_expanded_views_are_refused(tmp_path):
    def f(x, n):
        y = x.sum(1, keepdim=True)
        y.expand(-1, 4).add_(1)
        return y

    refused(f, tmp_path, SPECS, "D2S540")


def test_writes_that_read_what_they_write_are_refused(tmp_path):
    def f(x, n):
        y = x.clone()
        y[[0, 1]] = y[0]
        return y

    assert "reads other elements" in refused(f, tmp_path, SPECS, "D2S540").summary


def test_a_write_may_read_the_same_elements(tmp_path):
    def f(x, n):
        y = x.clone()
        y.mul_(y)
        y[0].add_(y[0] * 2)
        return y

    check(f, tmp_path, SPECS, *CALLS)
