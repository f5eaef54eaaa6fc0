"""A conversion of a module inside a trace changes nothing, or is refused: no tensor of the trace stays in a module."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import dy2static
from dy2static import to_static
from runtime.errors import TraceError
from tests import oracle


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


class Held(torch.nn.Module):
    def __init__(self, how):
        super().__init__()
        self.inner = torch.nn.Linear(3, 3)
        self.items = torch.nn.ParameterList([torch.nn.Parameter(torch.ones(3))])
        self.table = torch.nn.ParameterDict({"a": torch.nn.Parameter(torch.ones(3))})
        self.how = how

    def forward(self, x):
        self.how(self, torch.nn.Parameter(torch.ones(3) * 2))
        return self.inner(x) * self.items[0] * self.table["a"]


def _attribute(m, p):
    m.inner.bias = p


def _in_a_branch(m, p):
    if p.sum() > 0:
        m.inner.bias = p


def _slot(m, p):
    m.inner._parameters["bias"] = p


def _item(m, p):
    m.items[0] = p


def _more(m, p):
    m.items += [p]


def _key(m, p):
    m.table["b"] = p


def _no_key(m, p):
    del m.table["a"]


PARAMETERS = {
    "attribute": (_attribute, "D2S228"),
    "setattr": (lambda m, p: setattr(m.inner, "bias", p), "D2S228"),
    "new attribute": (lambda m, p: setattr(m, "extra", p), "D2S228"),
    "in a branch": (_in_a_branch, "D2S228"),
    "slot": (_slot, "D2S228"),
    "append": (lambda m, p: m.items.append(p), "D2S274"),
    "extend": (lambda m, p: m.items.extend([p]), "D2S274"),
    "item": (_item, "D2S274"),
    "more": (_more, "D2S274"),
    "key": (_key, "D2S274"),
    "no key": (_no_key, "D2S274"),
    "update": (lambda m, p: m.table.update({"b": p}), "D2S274"),
    "pop": (lambda m, p: m.table.pop("a"), "D2S274"),
}


@pytest.mark.parametrize("name", PARAMETERS)
def test_a_parameter_made_inside_does_not_stay(name):
    how, code = PARAMETERS[name]
    layer = dy2static.to_static(Held(how))
    kept = dict(layer.named_parameters())
    with pytest.raises(TraceError, match=rf"{code}[\s\S]*test_module_methods.py"):
        layer(torch.ones(3))
    assert list(kept) == [key for key, _ in layer.named_parameters()]
    assert all(tensor is kept[key] for key, tensor in layer.named_parameters())


def test_lists_of_parameters_made_inside_may_change():
    def f(x):
        items = torch.nn.ParameterList([torch.nn.Parameter(torch.ones(3))])
        items.append(torch.nn.Parameter(torch.ones(3) * 2))
        return x * items[0] * items[1]

    oracle.check(f, (torch.ones(3),))


MADE: dict[str, Callable[[], nn.Module]] = {
    "linear": lambda: nn.Linear(4, 4),
    "norm": lambda: nn.BatchNorm1d(4),
    "nested": lambda: nn.Sequential(nn.Linear(4, 4), nn.Sequential(nn.ReLU(), nn.Linear(4, 4))),
    "recurrent": lambda: nn.GRU(4, 4),
    "one from outside": lambda: nn.Sequential(nn.Linear(4, 4), OUTSIDE),
}
OUTSIDE = nn.Linear(4, 4)
STAYING: dict[str, Callable[[nn.Module, torch.Tensor], nn.Module]] = {
    "to a device": lambda m, x: m.to(x.device),
    "to a tensor": lambda m, x: m.to(x),
    "to a dtype": lambda m, x: m.to(torch.float32),
    "float": lambda m, x: m.float(),
    "cpu": lambda m, x: m.cpu(),
    "type": lambda m, x: m.type(torch.float32),
}
CHANGING: dict[str, Callable[[nn.Module, torch.Tensor], nn.Module]] = {
    "to a dtype": lambda m, x: m.to(torch.float64),
    "double": lambda m, x: m.double(),
    "bfloat16": lambda m, x: m.bfloat16(),
    "to_empty": lambda m, x: m.to_empty(device="cpu"),
    "to meta": lambda m, x: m.to("meta"),
}


@pytest.mark.parametrize("move", STAYING)
@pytest.mark.parametrize("made", MADE)
def test_a_module_made_inside_stays_where_it_is(made: str, move: str) -> None:
    """On every path, with gradients of what it is given, and its parameters' own."""

    def run(x: torch.Tensor) -> tuple[Any, ...]:
        module = STAYING[move](MADE[made](), x)
        y = module(x)
        if x.sum() > 0:
            y = STAYING[move](MADE[made](), x)(x)
        y = y[0] if isinstance(y, tuple) else y
        first = next(iter(module.parameters()))
        return y, first.detach(), first.requires_grad, torch.autograd.grad(y.sum(), first, allow_unused=True)[0]

    x = torch.arange(8.0).reshape(2, 4).requires_grad_()
    oracle.check(run, (x,), ((x.detach() - 9).requires_grad_(),), tolerance=1e-6)


@pytest.mark.parametrize("move", CHANGING)
@pytest.mark.parametrize("made", MADE)
def test_a_module_made_inside_that_would_change_is_refused(made: str, move: str) -> None:
    def run(x: torch.Tensor) -> torch.Tensor:
        return CHANGING[move](MADE[made](), x)(x)

    with pytest.raises(TraceError, match="D2S274"):
        to_static(run)(torch.ones(2, 4))
    assert OUTSIDE.weight.dtype is torch.float32 and not OUTSIDE.weight.is_meta


class Inner(nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            return x + 1
        return x - 1


@pytest.mark.parametrize("value", [1.0, -1.0])
def test_a_users_function_in_place_of_call_is_called(value, monkeypatch):
    layers, alone = nn.Sequential(Inner(), Inner()), Inner()
    original = nn.Module.__call__

    def doubled(self, *args):
        return original(self, *args) * 2

    monkeypatch.setattr(nn.Module, "__call__", doubled)

    def both(x):
        return layers(x), alone(x)

    x = torch.full((2,), value)
    for got, expected in zip(to_static(both)(x), both(x)):
        assert torch.equal(got, expected)


@pytest.mark.parametrize("size", [1, 2])
def test_after_a_trace_call_is_as_before(size):
    code = nn.Module.__call__.__code__
    with contextlib.suppress(ValueError):  # from int(), where there are two
        to_static(lambda x: int(nn.ReLU()(x)))(torch.ones(size))
    assert nn.Module.__call__.__code__ is code
