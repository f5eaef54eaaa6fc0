"""Every kind of fact that a call depends on, changed between calls: the next call is eager's, however it finds its way.

Each case runs once after a single call (the long way) and once after several (a shortcut stands by then).
"""

from __future__ import annotations

import contextlib
import enum
import sys
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrizations, parametrize

from dy2static import to_static
from dy2static.shortcut import MADE_AT
from tests.oracle import same

X = torch.tensor([1.0, -2.0, 4.0])
HERE = sys.modules[__name__]
NUMBER: Any = 2.0
TABLE: Any = {"a": 1.0, "b": 2.0}


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


class Text(str):
    def __len__(self):
        return 40


def helper(x):
    return x * 3


def other_helper(x):
    return x - 3


class Plain:
    shade = 7.0

    def __init__(self, value: Any = 2.0) -> None:
        self.value = value
        self.items = [1.0, 2.0]

    @property
    def twice(self):
        return 2.0

    def method(self, x):
        return x + 1

    @classmethod
    def make(cls, x):
        return x * 2

    @staticmethod
    def plain(x):
        return x * 5


class OtherPlain(Plain):
    @property
    def twice(self):
        return -8.0

    def method(self, x):
        return x - 30


def describe(value):
    """A number that tells values apart that a careless comparison takes for one."""
    name = type(value).__name__
    if isinstance(value, (list, tuple)):
        return float(sum((i + 1) * describe(item) for i, item in enumerate(value)))
    if isinstance(value, dict):
        return describe(list(value)) + 100 * describe(list(value.values()))
    text = f"{name} {value!r}"
    return float(sum(ord(letter) * (i + 1) for i, letter in enumerate(text)) % 1009)


@dataclass
class Case:
    make: Callable[[], tuple[Callable[..., Any], Any]]
    """The function to convert, and what the changes get."""
    changes: list[Callable[[Any], object]]


CASES: dict[str, Case] = {}


def case(name: str, make: Callable[[], Any], *changes: Callable[[Any], object]) -> None:
    CASES[name] = Case(make, list(changes))


VALUES = [
    1, True, 1.0, -1, -2, 0.0, -0.0, float("nan"), 0, False, None, "1", Text("1"), b"1", 1j, Colour.RED, Colour.BLUE,
    torch.float32, torch.float64, torch.device("cpu"), torch.device("meta"), 2**70, (1, 2), (1, True), (0.0,), (-0.0,),
    [1, 2], [True, 2], {"a": 1, "b": 2}, {"b": 2, "a": 1}, {1: 1}, {True: 1}, torch.strided, len, max, slice(1, 2),
]  # fmt: skip


def attribute_value():
    space = types.SimpleNamespace(value=5)
    return (lambda x: x + describe(space.value)), space


def to_value(value: Any) -> Callable[[Any], object]:
    return lambda space: setattr(space, "value", value)


case("values of an attribute", attribute_value, *map(to_value, VALUES))
case("values of a global", lambda: ((lambda x: x + describe(NUMBER)), None),
     *[(lambda _, value=value: setattr(HERE, "NUMBER", value)) for value in VALUES])  # fmt: skip


def closure():
    value = 5

    def move(new):
        nonlocal value
        value = new

    return (lambda x: x + describe(value)), move


case("values of a closure variable", closure, *[(lambda move, value=value: move(value)) for value in VALUES])


def on_plain(body: Callable[[Any, Any], Any]) -> Callable[[], Any]:
    def make():
        class Own(Plain):
            pass

        obj = Own()
        return (lambda x: body(obj, x)), obj

    return make


case("an attribute deleted and added", on_plain(lambda obj, x: x + (obj.extra if hasattr(obj, "extra") else 0)),
     lambda obj: setattr(obj, "extra", 3.0), lambda obj: delattr(obj, "extra"),
     lambda obj: setattr(type(obj), "extra", 9.0), lambda obj: setattr(obj, "extra", 4.0))  # fmt: skip
case("a class attribute shadowed", on_plain(lambda obj, x: x * obj.shade),
     lambda obj: setattr(obj, "shade", 2.0), lambda obj: delattr(obj, "shade"),
     lambda obj: setattr(type(obj), "shade", -1.0), lambda obj: delattr(type(obj), "shade"))  # fmt: skip
case("a property replaced", on_plain(lambda obj, x: x * obj.twice),
     lambda obj: setattr(type(obj), "twice", property(lambda self: 5.0)),
     lambda obj: setattr(type(obj), "twice", 6.0), lambda obj: delattr(type(obj), "twice"))  # fmt: skip
case("a method replaced", on_plain(lambda obj, x: obj.method(x)),
     lambda obj: setattr(type(obj), "method", lambda self, x: x * 9),
     lambda obj: setattr(obj, "method", lambda x: x * 11), lambda obj: delattr(obj, "method"),
     lambda obj: setattr(type(obj), "method", staticmethod(lambda x: x - 5)),
     lambda obj: delattr(type(obj), "method"))  # fmt: skip
case("a static method replaced", on_plain(lambda obj, x: obj.plain(x)),
     lambda obj: setattr(type(obj), "plain", lambda self, x: x * 7), lambda obj: delattr(type(obj), "plain"),
     lambda obj: setattr(type(obj), "plain", vars(Plain)["plain"]))  # fmt: skip
case("a class method replaced", on_plain(lambda obj, x: obj.make(x)),
     lambda obj: setattr(type(obj), "make", classmethod(lambda cls, x: x - 1)),
     lambda obj: delattr(type(obj), "make"))  # fmt: skip
case("another class", on_plain(lambda obj, x: obj.method(x) * obj.twice),
     lambda obj: setattr(obj, "__class__", OtherPlain), lambda obj: setattr(obj, "__class__", Plain))  # fmt: skip
case("another base", on_plain(lambda obj, x: obj.method(x)),
     lambda obj: setattr(type(obj), "__bases__", (OtherPlain,)), lambda obj: setattr(type(obj), "__bases__", (Plain,)))
case("another __dict__", on_plain(lambda obj, x: obj.method(x) * obj.value),
     lambda obj: setattr(obj, "__dict__", {"value": 9.0, "method": lambda x: x - 1}),
     lambda obj: setattr(obj, "__dict__", {"value": 9.0}))  # fmt: skip
case("a list in an attribute", on_plain(lambda obj, x: x * sum(obj.items)),
     lambda obj: obj.items.append(5.0), lambda obj: obj.items.reverse(), lambda obj: obj.items.__setitem__(0, 9.0),
     lambda obj: obj.items.clear())  # fmt: skip
case("the order of keys", lambda: ((lambda x: x * describe(TABLE)), None),
     lambda _: setattr(HERE, "TABLE", {"b": 2.0, "a": 1.0}), lambda _: TABLE.update(a=2.0),
     lambda _: TABLE.update(b=True))  # fmt: skip
case("a helper replaced in its namespace", lambda: ((lambda x: helper(x)), None),
     lambda _: setattr(HERE, "helper", other_helper))  # fmt: skip
case("an activation written in C", on_plain(lambda obj, x: obj.value(x) if callable(obj.value) else x),
     lambda obj: setattr(obj, "value", torch.relu), lambda obj: setattr(obj, "value", torch.tanh),
     lambda obj: setattr(type(obj), "value", torch.exp), lambda obj: delattr(obj, "value"),
     lambda obj: setattr(type(obj), "value", torch.neg))  # fmt: skip
case("a builtin shadowed by a global", lambda: ((lambda x: x + round(2.6)), None),
     lambda _: setattr(HERE, "round", lambda value: 9), lambda _: delattr(HERE, "round"))  # fmt: skip
case("a helper's code itself", lambda: ((lambda x: helper(x)), None),
     lambda _: setattr(HERE, "helper", lambda x: x + 8),
     lambda _: setattr(HERE.helper, "__code__", other_helper.__code__))  # fmt: skip
case("a helper's code and defaults", on_plain(lambda obj, x: OtherPlain.method(obj, x)),
     lambda _: setattr(OtherPlain, "method", lambda self, x, by=3: x + by),
     lambda _: setattr(OtherPlain.method, "__defaults__", (8,)))  # fmt: skip


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm, self.drop = nn.Linear(3, 3), nn.BatchNorm1d(3), nn.Dropout(0.5)
        self.scale = nn.Parameter(torch.ones(3))
        self.register_buffer("shift", torch.ones(3))
        self.threshold = 0.0

    def forward(self, x):
        y = self.drop(self.norm(self.first(torch.stack([x, 2 * x]))))
        return y * self.scale + self.shift if x.sum() > self.threshold else y - self.scale


def net(kind: type[nn.Module] = Net) -> Callable[[], Any]:
    def make():
        torch.manual_seed(0)
        made = type("Own", (kind,), {})()
        return made, made

    return make


def active(function: Any) -> Any:
    class Active(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.act = function
            self.weight = nn.Parameter(torch.ones(3))

        def forward(self, x):
            return self.act(x * self.weight)

    made = Active()
    return made, made


def replaced(slot: str) -> Callable[[Any], object]:
    return lambda net: net.__dict__.__setitem__(slot, {**net.__dict__[slot]})


def freshened(net: Any) -> None:
    net._parameters = {name: nn.Parameter(value.detach() * 2) for name, value in net._parameters.items()}
    net._buffers = {name: value * 3 for name, value in net._buffers.items()}


case("an activation of a module", lambda: active(torch.relu),
     lambda net: setattr(net, "act", torch.tanh), lambda net: setattr(net, "act", nn.Sigmoid()))  # fmt: skip
case("layers", net(), lambda net: setattr(net, "first", nn.Linear(3, 3, bias=False)),
     lambda net: setattr(net, "norm", nn.Identity()), lambda net: setattr(net, "drop", nn.ReLU()),
     lambda net: net._modules.update(first=nn.Identity()))  # fmt: skip
case("modes", net(), lambda net: net.eval(), lambda net: net.train(), lambda net: net.norm.eval(),
     lambda net: net.drop.eval())  # fmt: skip
case("parameters", net(), lambda net: net.scale.requires_grad_(False),
     lambda net: setattr(net, "scale", nn.Parameter(torch.full((3,), 5.0))),
     lambda net: setattr(net.first, "bias", None), lambda net: net.double(), lambda net: net.float(),
     lambda net: setattr(net, "scale", None) or setattr(net, "scale", nn.Parameter(torch.ones(1))),
     lambda net: net.scale.data.fill_(7.0), lambda net: setattr(net.scale, "data", torch.ones(3)),
     lambda net: setattr(net, "scale", nn.Parameter(torch.ones(3, 2).t()[0])),
     lambda net: net.register_buffer("shift", torch.zeros(3)), lambda net: net.requires_grad_(False),
     lambda net: setattr(net.norm, "running_mean", torch.full((3,), 2.0)))  # fmt: skip
case("tied", net(), lambda net: setattr(net, "scale", net.first.bias), lambda net: net.scale.data.fill_(3.0),
     lambda net: setattr(net, "scale", nn.Parameter(torch.ones(3))))  # fmt: skip
case("a tensor in two places", on_plain(lambda obj, x: x * obj.one + obj.two if hasattr(obj, "one") else x),
     lambda obj: vars(obj).update(one=(t := torch.ones(3)), two=t), lambda obj: obj.one.fill_(5.0),
     lambda obj: setattr(obj, "two", torch.zeros(3)), lambda obj: setattr(obj, "one", obj.two))  # fmt: skip
case("dicts of a module replaced", net(), freshened, lambda net: freshened(net.first), replaced("_forward_hooks"),
     lambda net: net.__dict__.update(_forward_hooks={1: lambda m, a, y: y * 4}))  # fmt: skip
case("hooks", net(), lambda net: net.first.register_forward_hook(lambda m, args, y: y + 1),
     lambda net: net.register_forward_pre_hook(lambda m, args: (args[0] * 2,)),
     lambda net: net.norm.register_forward_hook(lambda m, args, y: y * 2, prepend=True),
     lambda net: net.first._forward_hooks.clear(), lambda net: net._forward_pre_hooks.clear())  # fmt: skip
case("parametrizations", net(), lambda net: parametrizations.weight_norm(net.first),
     lambda net: parametrize.remove_parametrizations(net.first, "weight"),
     lambda net: parametrize.register_parametrization(net, "scale", nn.Tanh()),
     lambda net: parametrize.remove_parametrizations(net, "scale", leave_parametrized=False))  # fmt: skip
case("settings of layers", net(), lambda net: setattr(net.drop, "p", 0.0), lambda net: setattr(net.norm, "eps", 0.1),
     lambda net: setattr(net.norm, "momentum", 0.5), lambda net: setattr(net.norm, "track_running_stats", False),
     lambda net: setattr(net, "threshold", 9.0), lambda net: setattr(net, "threshold", torch.tensor(-9.0)))  # fmt: skip
case("classes of layers", net(), lambda net: setattr(net.drop, "__class__", nn.ReLU),
     lambda net: setattr(type(net), "forward", lambda self, x: self.first(x)))  # fmt: skip


def run(function: Any, arguments: tuple[Any, ...]) -> list[Any]:
    torch.manual_seed(5)
    result = function(*arguments)
    found = [result.detach(), result.requires_grad, result.dtype]
    if isinstance(function, nn.Module) or isinstance(getattr(function, "__self__", None), nn.Module):
        module = function if isinstance(function, nn.Module) else function.__self__
        module.zero_grad()
        if result.requires_grad:
            result.square().sum().backward()
        found += [(name, p.grad) for name, p in module.named_parameters()]
        found += [(name, buffer.clone()) for name, buffer in module.named_buffers()]
    return found


@contextlib.contextmanager
def restored(*owners: Any) -> Iterator[None]:
    before = [dict(vars(owner)) for owner in owners]
    try:
        yield
    finally:
        for owner, content in zip(owners, before):
            for name in list(vars(owner)):
                if name not in content:
                    delattr(owner, name)
            for name, value in content.items():
                if vars(owner)[name] is not value and name not in ("__dict__", "__weakref__"):
                    setattr(owner, name, value)


@pytest.mark.sample(3)
@pytest.mark.parametrize("calls", [1, MADE_AT[0] + 1], ids=["long", "short"])
@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore::dy2static.RetraceWarning")
def test_a_fact_changes(name: str, calls: int) -> None:
    one = CASES[name]
    arguments = (X.clone(),)
    with restored(HERE, OtherPlain):
        results = []
        for convert in (True, False):
            function, about = one.make()
            with restored(HERE, OtherPlain):
                globals().update(TABLE={"a": 1.0, "b": 2.0})
                target = to_static(function) if convert else function
                found = []
                for change in [lambda _: None, *one.changes]:
                    change(about)
                    wanted = next(iter(target.parameters())).dtype if isinstance(target, nn.Module) else X.dtype
                    found += [run(target, tuple(a.to(wanted) for a in arguments)) for _ in range(calls)]
                results.append(found)
    for mine, eager in zip(*results, strict=True):
        same(mine, eager, tolerance=1e-5)


# -- PyTorch's own state


@contextlib.contextmanager
def set_and_back(setter: Callable[[Any], object], value: Any, before: Any) -> Iterator[None]:
    setter(value)
    try:
        yield
    finally:
        setter(before)


def autocast_dtype() -> Any:
    return set_and_back(lambda dtype: torch.set_autocast_dtype("cpu", dtype), torch.float16,
                        torch.get_autocast_dtype("cpu"))  # fmt: skip


STATES: dict[str, Callable[[], Any]] = {
    "no_grad": torch.no_grad, "inference_mode": torch.inference_mode,
    "autocast": lambda: torch.autocast("cpu", dtype=torch.bfloat16),
    "autocast in another dtype": lambda: torch.autocast("cpu", dtype=torch.float16),
    "the dtype of autocast": autocast_dtype,
    "default dtype": lambda: set_and_back(torch.set_default_dtype, torch.float64, torch.float32),
    "default device": lambda: torch.device("cpu"),
    "another default device": lambda: torch.device("meta"),
    "deterministic algorithms": lambda: set_and_back(torch.use_deterministic_algorithms, True, False),
    "threads": lambda: set_and_back(torch.set_num_threads, torch.get_num_threads() + 1, torch.get_num_threads()),
}  # fmt: skip


def stateful(x, w):
    y = x @ w
    z = torch.ones(3) + (1 if torch.is_grad_enabled() else 2)
    z = z + (10 if torch.are_deterministic_algorithms_enabled() else 20)
    if torch.is_autocast_enabled("cpu"):
        z = z + 100
    if torch.get_autocast_dtype("cpu") == torch.float16:
        z = z + 1000
    return y, z, torch.is_inference_mode_enabled()


@pytest.mark.parametrize("calls", [1, MADE_AT[0] + 1], ids=["long", "short"])
def test_torchs_state_changes(calls: int) -> None:
    static = to_static(stateful)
    x, w = torch.rand(3, 3), torch.rand(3, 3, requires_grad=True)
    contexts = [contextlib.nullcontext, *(one for state in STATES.values() for one in (state, contextlib.nullcontext))]
    for context in [*contexts, *contexts]:
        for _ in range(calls):
            with context():
                for mine, eager in zip(static(x, w), stateful(x, w), strict=True):
                    assert type(mine) is type(eager)
                    if isinstance(mine, torch.Tensor):
                        assert (mine.dtype, mine.device, mine.requires_grad, mine.is_inference()) == (
                            eager.dtype, eager.device, eager.requires_grad, eager.is_inference())  # fmt: skip
                        assert mine.is_meta or torch.equal(mine, eager)
                    else:
                        assert mine == eager
