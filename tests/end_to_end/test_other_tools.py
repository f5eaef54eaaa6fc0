"""Converted functions and modules given to PyTorch's other tools, and tensors without data."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from dy2static import to_static


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(3, 2)

    def forward(self, x: Any) -> Any:
        return self.linear(x).relu() if x.shape[0] > 1 else self.linear(x)


def test_export_exports_the_original() -> None:
    net = Net()
    x = torch.randn(4, 3)
    program = torch.export.export(to_static(net), (x,))
    assert torch.equal(program.module()(x), Net.forward(net, x))


@pytest.mark.filterwarnings("ignore:.torch.jit:FutureWarning")
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::torch.jit.TracerWarning")
def test_trace_traces_the_original() -> None:
    net = Net()
    x = torch.randn(4, 3)
    traced = torch.jit.trace(to_static(net), (x,))
    assert torch.equal(traced(x), Net.forward(net, x))
    assert "aten::linear" in str(traced.inlined_graph)


def test_meta_tensors_give_shapes() -> None:
    net = to_static(Net().to("meta"))
    result = net(torch.empty(4, 3, device="meta"))
    assert result.is_meta and result.shape == (4, 2)


def test_what_a_meta_tensor_holds_cannot_be_asked() -> None:
    def f(x: Any) -> Any:
        return x if x.sum() > 0 else -x

    given = torch.empty(3, device="meta")
    with pytest.raises(RuntimeError, match="cannot be called on meta tensors"):
        to_static(f)(given)
    with pytest.raises(RuntimeError, match="cannot be called on meta tensors"):
        f(given)
