"""Modules that the function makes, and returns or stores: each call makes its own, with all that it holds."""

from __future__ import annotations

import collections
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import nn

from dy2static import to_static
from runtime.errors import TraceError


class Plain:
    def __init__(self, held: Any) -> None:
        self.held = held


class Slots:
    __slots__ = ("held",)

    def __init__(self, held: Any) -> None:
        self.held = held


class Holder(nn.Module):
    def __init__(self, held: Any) -> None:
        super().__init__()
        self.held = held


class Outer(nn.Module):
    def __init__(self, held: Any) -> None:
        super().__init__()
        self.inner = Holder(held)
        self.register_buffer("count", torch.zeros(()))


class Hidden(nn.Module):
    """What it holds is not registered, though it may be a module."""

    def __init__(self, held: Any) -> None:
        super().__init__()
        object.__setattr__(self, "held", held)
        self.__dict__["other"] = nn.Tanh()


HELD: dict[str, Callable[[torch.Tensor], Any]] = {
    "text": lambda x: "t",
    "tensor": lambda x: x * 2,
    "object": lambda x: Plain("s"),
    "object with a tensor": lambda x: Plain(Plain([1, x])),
    "list": lambda x: [1, Plain(x)],
    "dict": lambda x: {"k": Plain(3)},
    "tuple": lambda x: (Plain(3), x),
    "slots": lambda x: Slots(4),
    "namespace": lambda x: types.SimpleNamespace(q=2),
    "deque": lambda x: collections.deque([Plain(1)]),
    "set": lambda x: {1, 2},
    "module": lambda x: nn.ReLU(),
    "modules": lambda x: nn.Sequential(nn.ReLU(), Holder(x)),
}


def returned(box: Any, made: Any) -> Any:
    return made


def in_a_list(box: Any, made: Any) -> Any:
    return [made]


def to_a_dict(box: Any, made: Any) -> None:
    box.table["made"] = made


def to_a_list(box: Any, made: Any) -> None:
    box.items.append(made)


def to_an_object(box: Any, made: Any) -> None:
    box.plain.made = Plain(made)


def to_a_module(box: Any, made: Any) -> None:
    box.module.made = made


WAYS = [returned, in_a_list, to_a_dict, to_a_list, to_an_object, to_a_module]


class Box:
    def __init__(self) -> None:
        self.table: dict[str, Any] = {}
        self.items: list[Any] = []
        self.plain = Plain(0)
        self.module = nn.Sequential()


def shown(value: Any) -> Any:
    """All that a value holds, where it stands."""
    if isinstance(value, torch.Tensor):
        return type(value).__name__, value.tolist()
    if isinstance(value, Slots):
        return "Slots", shown(value.held)
    if isinstance(value, dict):
        return {key: shown(one) for key, one in value.items()}
    if isinstance(value, (list, tuple, collections.deque)):
        return type(value).__name__, [shown(one) for one in value]
    return (type(value).__name__, shown(vars(value))) if hasattr(value, "__dict__") else value


@pytest.mark.sample(12)
@pytest.mark.parametrize("on_a_path", [False, True])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("cls", [Holder, Outer, Hidden])
@pytest.mark.parametrize("held", HELD)
def test_a_module_and_what_it_holds(held: str, cls: Any, way: Any, on_a_path: bool) -> None:
    make = HELD[held]
    seen = []
    for convert in (False, True):
        box = Box()

        def f(x: torch.Tensor) -> Any:
            if on_a_path:
                if x.sum() > 0:
                    x = x + 1
            return way(box, cls(make(x))), x

        run = to_static(f) if convert else f
        seen.append([(shown(run(torch.ones(2) * sign)), shown(box)) for sign in (1.0, -1.0, 2.0)])
    assert seen[0] == seen[1]


def test_each_call_makes_its_own() -> None:
    box: list[Any] = []

    @to_static
    def f(x: torch.Tensor) -> None:
        box.append(Holder(Plain(x * 2)))

    f(torch.ones(2))
    f(torch.zeros(2))
    assert box[0] is not box[1] and box[0].held is not box[1].held
    assert [one.held.held.tolist() for one in box] == [[2, 2], [0, 0]]


@dataclass
class Meta:
    name: str
    kept: bool = False


class Metric(nn.Module):
    def __init__(self, meta: Meta) -> None:
        super().__init__()
        self.meta = meta
        self.register_buffer("value", torch.zeros(()))


def test_a_metric_that_is_registered_when_it_is_first_logged() -> None:
    results = []
    for convert in (False, True):
        metrics: dict[str, Any] = {}

        def log(name: str, value: torch.Tensor) -> None:
            meta = Meta(name)
            if name not in metrics:
                metrics[name] = Metric(meta)
            elif meta != metrics[name].meta:
                raise ValueError("twice")
            metrics[name].value = metrics[name].value + value

        def step(x: torch.Tensor) -> torch.Tensor:
            y = x * 2
            if x.sum() > 0:
                y = y + 1
            log("loss", y.sum())
            return y

        run = to_static(step) if convert else step
        for sign in (1.0, -1.0, 3.0):
            run(torch.ones(2) * sign)
        results.append(shown(metrics))
    assert results[0] == results[1]


class Past(nn.Module):
    """Stores past what ``nn.Module`` does with a registered name."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("value", torch.zeros(()))
        self.sub = nn.ReLU()


def by_object(m: nn.Module, name: str, value: Any) -> None:
    object.__setattr__(m, name, value)


def by_namespace(m: nn.Module, name: str, value: Any) -> None:
    m.__dict__[name] = value


def by_update(m: nn.Module, name: str, value: Any) -> None:
    vars(m).update({name: value})


@pytest.mark.parametrize("on_a_path", [False, True])
@pytest.mark.parametrize("name", ["value", "sub"])
@pytest.mark.parametrize("store", [by_object, by_namespace, by_update])
def test_a_store_beside_what_is_registered_is_refused_and_loses_nothing(store: Any, name: str, on_a_path: bool) -> None:
    module = Past()
    before = dict(module._buffers), dict(module._modules), list(vars(module))

    def f(x: torch.Tensor) -> torch.Tensor:
        if on_a_path:
            if x.sum() > 0:
                store(module, name, x * 2)
        else:
            store(module, name, x * 2)
        return x

    with pytest.raises(TraceError, match=f"D2S274.*'{name}' of a Past is stored beside"):
        to_static(f)(torch.ones(2))
    after = dict(module._buffers), dict(module._modules), list(vars(module))
    assert before[0]["value"] is after[0]["value"] and before[1:] == after[1:]


def test_a_module_that_has_two_of_a_name() -> None:
    module = Past()
    object.__setattr__(module, "value", torch.ones(()))
    object.__setattr__(module, "sub", 3)
    f = to_static(lambda x: module.sub + x)
    assert f(torch.ones(())) == 4
    object.__setattr__(module, "sub", 5)
    assert f(torch.ones(())) == 6
    for use in (lambda x: module.value + x, lambda x: setattr(module, "value", x)):
        with pytest.raises(TraceError, match="D2S274"):
            to_static(use)(torch.ones(()))
    assert module.value == 1 and module._buffers["value"] == 0
