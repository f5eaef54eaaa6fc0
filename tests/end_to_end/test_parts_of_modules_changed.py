"""Containers of modules and parameters that change between calls: what code of PyTorch's goes over is part of what a
Program depends on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from dy2static import to_static
from tests.oracle import same

X = torch.arange(4.0)


class Parts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.ReLU()])
        self.nested = nn.ModuleList([nn.ModuleList([nn.ReLU()])])
        self.steps = nn.Sequential(nn.ReLU())
        self.named = nn.ModuleDict({"a": nn.ReLU()})
        self.weights = nn.ParameterList([nn.Parameter(torch.ones(4))])
        self.table = nn.ParameterDict({"a": nn.Parameter(torch.ones(4))})


def loop(m: Any, x: Any) -> Any:
    for layer in m.layers:
        x = layer(x - 1)
    return x


def nested(m: Any, x: Any) -> Any:
    for inner in m.nested:
        for layer in inner:
            x = layer(x - 1)
    return x


def first(m: Any, x: Any) -> Any:
    return m.layers[0](x - 1)


def length(m: Any, x: Any) -> Any:
    return x * len(m.layers)


def numbered(m: Any, x: Any) -> Any:
    for i, layer in enumerate(m.layers):
        x = layer(x - 1) + i
    return x


def called(m: Any, x: Any) -> Any:
    return m.steps(x - 1)


def steps(m: Any, x: Any) -> Any:
    for layer in m.steps:
        x = layer(x - 1)
    return x


def keys(m: Any, x: Any) -> Any:
    for key in m.named:
        x = m.named[key](x - 1)
    return x


def values(m: Any, x: Any) -> Any:
    for layer in m.named.values():
        x = layer(x - 1)
    return x


def contains(m: Any, x: Any) -> Any:
    return x * 2 if "b" in m.named else x


def children(m: Any, x: Any) -> Any:
    for layer in m.layers.children():
        x = layer(x - 1)
    return x


def names(m: Any, x: Any) -> Any:
    for name, _ in m.named_children():
        x = x + len(name)
    return x


def modules(m: Any, x: Any) -> Any:
    return x * len(list(m.modules()))


def parameters(m: Any, x: Any) -> Any:
    return x * len(list(m.parameters()))


def buffers(m: Any, x: Any) -> Any:
    return x * len(list(m.buffers()))


def state(m: Any, x: Any) -> Any:
    return x * len(m.state_dict())


def weights(m: Any, x: Any) -> Any:
    for weight in m.weights:
        x = x + weight
    return x


def table(m: Any, x: Any) -> Any:
    for _, weight in m.table.items():
        x = x + weight
    return x


def backwards(m: Any, x: Any) -> Any:
    for layer in reversed(m.layers):
        x = layer(x - 1)
    return x


def part(m: Any, x: Any) -> Any:
    for layer in m.layers[:1]:
        x = layer(x - 1)
    return x


def pairs(m: Any, x: Any) -> Any:
    for one, other in zip(m.layers, m.steps):
        x = one(other(x) - 1)
    return x


USES = (
    loop, nested, first, length, numbered, called, steps, keys, values, contains, children, names, modules, parameters,
    buffers, state, weights, table, backwards, part, pairs,
)  # fmt: skip
CHANGES: dict[str, Callable[[Any], Any]] = {
    "layers.append": lambda m: m.layers.append(nn.Tanh()),
    "layers[0] =": lambda m: m.layers.__setitem__(0, nn.Tanh()),
    "del layers[0]": lambda m: m.layers.__delitem__(0),
    "nested[0].append": lambda m: m.nested[0].append(nn.Tanh()),
    "steps.append": lambda m: m.steps.append(nn.Tanh()),
    "steps[0] =": lambda m: m.steps.__setitem__(0, nn.Tanh()),
    "named['b'] =": lambda m: m.named.__setitem__("b", nn.Tanh()),
    "named['a'] =": lambda m: m.named.__setitem__("a", nn.Tanh()),
    "weights.append": lambda m: m.weights.append(nn.Parameter(torch.ones(4))),
    "weights[0] =": lambda m: m.weights.__setitem__(0, nn.Parameter(torch.ones(4) * 7)),
    "table['b'] =": lambda m: m.table.__setitem__("b", nn.Parameter(torch.ones(4))),
    "add_module": lambda m: m.add_module("more", nn.Linear(4, 4)),
    "register_buffer": lambda m: m.register_buffer("more", torch.ones(2)),
}


def outcome(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except Exception as error:
        return type(error)


@pytest.mark.sample(2)
@pytest.mark.parametrize("use", USES, ids=lambda use: use.__name__)
def test_a_change_between_calls_is_seen(use: Callable[[Any, Any], Any]) -> None:
    for name, change in CHANGES.items():
        m = Parts()
        static = to_static(lambda x, m=m: use(m, x))
        same(outcome(lambda: static(X)), outcome(lambda m=m: use(m, X)))
        change(m)
        same(outcome(lambda: static(X)), outcome(lambda m=m: use(m, X)), name)


def test_a_hook_that_comes_again_is_the_same_one() -> None:
    layer = nn.Linear(4, 4)
    static = to_static(lambda x: layer(x))

    def doubled(module: Any, given: Any, out: Any) -> Any:
        return out * 2

    results = []
    for _ in range(3):
        with layer.register_forward_hook(doubled), nn.modules.module.register_module_forward_hook(doubled):
            results.append(static(X))
        results.append(static(X))
    assert len(static.programs) == 2
    assert torch.equal(results[0], results[2]) and torch.equal(results[1] * 4, results[4])


def test_hooks_of_all_modules() -> None:
    layer = nn.Linear(4, 4)
    static = to_static(lambda x: layer(x))
    before = static(X)
    handle = nn.modules.module.register_module_forward_hook(lambda module, given, out: out * 2)
    try:
        assert torch.equal(static(X), before * 2)
    finally:
        handle.remove()
    assert torch.equal(static(X), before)


def test_which_buffers_are_part_of_the_state() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("mean", torch.ones(4))

        def forward(self, x: Any) -> Any:
            return x * len(self.state_dict()) + self.mean

    eager, static = Model(), to_static(Model())
    for kept in (True, False, True, False):
        for one in (eager, static):
            del one.mean
            one.register_buffer("mean", torch.ones(4), persistent=kept)
        for _ in range(3):
            same(static(X), eager(X))


@pytest.mark.parametrize("is_inside", (False, True))
def test_a_call_that_the_class_of_a_module_gets(is_inside: bool) -> None:
    class Layer(nn.Linear):
        pass

    layer = Layer(4, 4)
    model: Any = nn.Sequential(layer, nn.ReLU()) if is_inside else layer
    static = to_static(lambda x: model(x) * 2)
    changes: list[Any] = [lambda self, x: x + 1, lambda self, x: x + 2, None]
    for change in (None, *changes):
        if change is not None:
            Layer.__call__ = change
        elif "__call__" in vars(Layer):
            del Layer.__call__
        for _ in range(3):
            same(static(X), model(X) * 2)
