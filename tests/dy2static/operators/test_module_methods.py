"""A conversion of a module inside a trace changes nothing, or is refused: no tensor of the trace stays in a module."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

import dy2static
from runtime.errors import TraceError

sys.path.insert(0, str(Path(__file__).parents[2] / "end_to_end"))
import oracle


class Net(torch.nn.Module):
    def __init__(self, how):
        super().__init__()
        self.inner = torch.nn.Linear(3, 3)
        self.norm = torch.nn.BatchNorm1d(3)
        self.how = how

    def forward(self, x):
        return self.how(self.inner, x)


NOTHING = {
    "device": lambda m, x: m.to(x.device)(x),
    "device and dtype": lambda m, x: m.to("cpu", torch.float32)(x),
    "like": lambda m, x: m.to(x)(x),
    "float": lambda m, x: m.float()(x),
    "cpu": lambda m, x: m.cpu()(x),
    "type": lambda m, x: m.type(torch.float32)(x),
    "in a branch": lambda m, x: m.to(x.device)(x) if x.sum() > 0 else m(x) * 2,
}
SOMETHING = {
    "dtype": lambda m, x: m.to(torch.float64)(x.double()),
    "double": lambda m, x: m.double()(x.double()),
    "meta": lambda m, x: m.to("meta")(x),
    "memory format": lambda m, x: m.to(memory_format=torch.channels_last)(x),
    "buffer": lambda m, x: (m.register_buffer("extra", x * 2), m(x))[1],
    "parameter": lambda m, x: (m.register_parameter("extra", None), m(x))[1],
}


@pytest.mark.parametrize("name", NOTHING)
def test_a_conversion_that_changes_nothing(name):
    layer = oracle.check_module(lambda: Net(NOTHING[name]), (torch.ones(3),), (-torch.ones(3),))
    assert len(layer.forward.programs) == 1
    before = layer(torch.ones(3))
    with torch.no_grad():
        layer.inner.weight.mul_(2)
    assert not torch.equal(layer(torch.ones(3)), before)


@pytest.mark.parametrize("name", SOMETHING)
def test_one_that_replaces_tensors_is_refused(name):
    layer = dy2static.to_static(Net(SOMETHING[name]))
    kept = dict(layer.inner.named_parameters())
    with pytest.raises(TraceError, match="D2S274"):
        layer(torch.ones(3))
    assert all(tensor is kept[key] for key, tensor in layer.inner.named_parameters()) and len(layer.state_dict()) == 7


def test_another_dtype_later_is_noticed():
    layer = dy2static.to_static(Net(NOTHING["float"]))
    layer(torch.ones(3))
    layer.inner.double()
    with pytest.raises(TraceError, match="D2S274"):
        layer(torch.ones(3))
