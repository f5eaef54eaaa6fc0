"""Converted functions and modules given to PyTorch's other tools, and tensors without data."""

from __future__ import annotations

import copy
import threading
import warnings
from typing import Any

import pytest
import torch
from torch.nn.utils import prune

import dy2static
from dy2static import to_static
from dy2static.errors import TraceError
from tests.oracle import same


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


class Deciding(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(3, 3)

    def forward(self, x: Any) -> Any:
        y = self.linear(x)
        return y if y.sum() > 0 else -y


@pytest.mark.slow
def test_what_decides_on_a_tensor_is_exported_by_us() -> None:
    net, x = Deciding(), torch.randn(4, 3)
    with pytest.raises(Exception, match="data-dependent"):
        torch.export.export(to_static(copy.deepcopy(net)), (x,))
    program = dy2static.to_exported_program(net, [dy2static.InputSpec([4, 3])])
    for given in (x, -x):
        torch.testing.assert_close(program.module()(given), Deciding.forward(net, given))


def test_the_profiler_sees_the_operators_of_a_program() -> None:
    net, x = to_static(Deciding(), backend="interpreter"), torch.randn(4, 3)
    net(x)
    with torch.profiler.profile() as profile:
        net(x)
    assert {"aten::addmm", "aten::sum"} <= {event.key for event in profile.key_averages()}


def test_a_counter_of_operations_is_refused_with_a_place() -> None:
    from torch.utils.flop_counter import FlopCounterMode

    net, x = to_static(Deciding()), torch.randn(4, 3)
    with FlopCounterMode(display=False), pytest.raises(TraceError) as caught:
        net(x)
    assert caught.value.code == "D2S213"
    with FlopCounterMode(display=False) as counter:
        dy2static.enable_to_static(False)
        try:
            net(x)
        finally:
            dy2static.enable_to_static(True)
    assert counter.get_total_flops() == 2 * 4 * 3 * 3


@pytest.mark.parametrize("first", ["convert", "quantise"])
def test_dynamic_quantisation_before_and_after(first: str) -> None:
    net, x = Deciding(), torch.randn(4, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain = torch.ao.quantization.quantize_dynamic(copy.deepcopy(net), {torch.nn.Linear})
        if first == "quantise":
            both = to_static(copy.deepcopy(plain))
        else:
            both = torch.ao.quantization.quantize_dynamic(to_static(copy.deepcopy(net)), {torch.nn.Linear})
    for given in (x, -x):
        assert torch.equal(both(given), plain(given))


def test_threads_share_the_programs() -> None:
    net = Deciding()
    static, x = to_static(copy.deepcopy(net), backend="interpreter"), torch.randn(4, 3)
    found: list[Any] = [None] * 4

    def run(index: int) -> None:
        found[index] = [static(x + index) for _ in range(5)]

    threads = [threading.Thread(target=run, args=(index,)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(torch.equal(one, net(x + index)) for index, ones in enumerate(found) for one in ones)
    assert len(static.forward.programs) == 1


def doubled(x: torch.Tensor) -> torch.Tensor:
    return x * 2


def signed(x: Any) -> Any:
    return x.pow(3).sum() if x.sum() > 0 else x.pow(2).sum()


def pruned(net: Any, x: Any) -> Any:
    prune.l1_unstructured(net.linear, "weight", 0.5)
    return net(x)


def in_anomaly_mode(net: Any, x: Any) -> Any:
    with torch.autograd.detect_anomaly(check_nan=False):
        net(x).sum().backward()
    return [one.grad for one in net.parameters()]


def saved_on_cpu(net: Any, x: Any) -> Any:
    with torch.autograd.graph.save_on_cpu():
        net(x).sum().backward()
    return [one.grad for one in net.parameters()]


def trained_quantised(net: Any, x: Any) -> Any:
    net.qconfig = torch.ao.quantization.get_default_qat_qconfig("x86")
    torch.ao.quantization.prepare_qat(net.train(), inplace=True)
    return [net(x), net(x * 2)]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("tool", [pruned, in_anomaly_mode, saved_on_cpu, trained_quantised],
                         ids=lambda one: one.__name__)  # fmt: skip
def test_tools_around_a_converted_module(tool: Any) -> None:
    net, x = Deciding(), torch.randn(4, 3)
    same(tool(to_static(copy.deepcopy(net), backend="interpreter"), x), tool(net, x))


@pytest.mark.filterwarnings("ignore")
def test_transforms_of_functions() -> None:
    x = torch.randn(3)
    static = to_static(signed)
    for given in (x, -x):
        same(torch.func.hessian(static)(given), torch.func.hessian(signed)(given))
        same(torch.func.jvp(static, (given,), (x,)), torch.func.jvp(signed, (given,), (x,)))


@pytest.mark.filterwarnings("ignore")
def test_symbolic_traces_see_the_original() -> None:
    x = torch.randn(4, 3)
    traced = torch.fx.symbolic_trace(to_static(torch.nn.Linear(3, 2)))
    assert traced(x).shape == (4, 2)
    with pytest.raises(torch.fx.proxy.TraceError):
        torch.fx.symbolic_trace(to_static(Deciding()))
    assert torch.equal(torch.jit.script(to_static(doubled))(x), x * 2)
