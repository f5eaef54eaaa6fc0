"""What the ``backward`` of an ``autograd.Function`` looks up, changed between the call and ``backward()``: the gradient
is eager's, or backward raises and says what has changed."""

from __future__ import annotations

import contextvars
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import dy2static
from runtime.errors import TraceError

RATE = 2.0
TABLE: dict[str, Any] = {"k": 2.0}
LIST = [2.0]
WEIGHT = torch.tensor(2.0)
CONTEXT = contextvars.ContextVar("CONTEXT", default=2.0)


class Config:
    rate = 2.0


class Holder:
    def __init__(self) -> None:
        self.rate = 2.0


HELD = Holder()


def times(g: torch.Tensor) -> torch.Tensor:
    return g * RATE


def with_default(g: torch.Tensor, rate: float = 2.0) -> torch.Tensor:
    return g * rate


def with_keyword(g: torch.Tensor, *, rate: float = 2.0) -> torch.Tensor:
    return g * rate


def _closure() -> tuple[Callable[[torch.Tensor], torch.Tensor], Callable[[float], None]]:
    rate = 2.0

    def scaled(g: torch.Tensor) -> torch.Tensor:
        return g * rate

    def change(value: float) -> None:
        nonlocal rate
        rate = value

    return scaled, change


SCALED, change_closure = _closure()
Rule = Callable[[Any, torch.Tensor], torch.Tensor]


class Model(nn.Module):
    """Applies a function whose backward computes ``rule(model, gradient)``."""

    def __init__(self, rule: Rule, how: str) -> None:
        super().__init__()
        self.how = how
        self.scale, self.step, self.table = 2.0, 1.0, {"k": 2.0}
        self.register_buffer("buffer", torch.tensor(2.0))
        self.weight = nn.Parameter(torch.tensor(2.0))

        class Applied(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: torch.Tensor, model: Any) -> torch.Tensor:
                ctx.model, ctx.table = model, model.table
                return x * 3

            @staticmethod
            def backward(ctx: Any, g: torch.Tensor) -> Any:
                return rule(ctx, g), None

        self.applied = Applied

    @property
    def rate(self) -> float:
        return self.scale

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.how == "straight":
            return self.applied.apply(x, self) * 2
        if self.how == "branch":
            y = x * 2
            if x.sum() > 0:
                y = self.applied.apply(y, self)
            return y
        y = x * 1
        while y.abs().sum() < 100:
            y = self.applied.apply(y, self)
        return y


def _set(name: str, value: Any) -> Callable[[Any], None]:
    return lambda model: setattr(model, name, value)


def _set_global(name: str, value: Any) -> Callable[[Any], None]:
    return lambda model: globals().__setitem__(name, value)


PLACES: dict[str, tuple[Rule, Callable[[Any], None]]] = {
    "global": (lambda ctx, g: g * RATE, _set_global("RATE", 5.0)),
    "global of a helper": (lambda ctx, g: times(g), _set_global("RATE", 5.0)),
    "a helper": (lambda ctx, g: times(g), _set_global("times", with_default)),
    "globals()": (lambda ctx, g: g * globals()["RATE"], _set_global("RATE", 5.0)),
    "default": (lambda ctx, g: with_default(g), lambda model: setattr(with_default, "__defaults__", (5.0,))),
    "keyword": (lambda ctx, g: with_keyword(g), lambda model: setattr(with_keyword, "__kwdefaults__", {"rate": 5.0})),
    "item": (lambda ctx, g: g * TABLE["k"], lambda model: TABLE.update(k=5.0)),
    "items": (lambda ctx, g: g * sum(TABLE.values()), lambda model: TABLE.update(z=5.0)),
    "item of a list": (lambda ctx, g: g * LIST[0], lambda model: LIST.__setitem__(0, 5.0)),
    "length": (lambda ctx, g: g * len(LIST), lambda model: LIST.append(5.0)),
    "item on ctx": (lambda ctx, g: g * ctx.table["k"], lambda model: model.table.update(k=5.0)),
    "global tensor": (lambda ctx, g: g * WEIGHT, _set_global("WEIGHT", torch.tensor(5.0))),
    "written tensor": (lambda ctx, g: g * WEIGHT, lambda model: WEIGHT.fill_(5.0)),
    "class": (lambda ctx, g: g * Config.rate, lambda model: setattr(Config, "rate", 5.0)),
    "object": (lambda ctx, g: g * HELD.rate, lambda model: setattr(HELD, "rate", 5.0)),
    "attribute": (lambda ctx, g: g * ctx.model.scale, _set("scale", 5.0)),
    "getattr": (lambda ctx, g: g * getattr(ctx.model, "scale"), _set("scale", 5.0)),
    "vars": (lambda ctx, g: g * vars(ctx.model)["scale"], _set("scale", 5.0)),
    "property": (lambda ctx, g: g * ctx.model.rate, _set("scale", 5.0)),
    "number that varies": (lambda ctx, g: g * ctx.model.step, lambda model: setattr(model, "step", model.step + 5)),
    "absence": (lambda ctx, g: g * 5 if hasattr(ctx.model, "extra") else g, _set("extra", 1)),
    "training": (lambda ctx, g: g * 2 if ctx.model.training else g, lambda model: model.eval()),
    "buffer": (lambda ctx, g: g * ctx.model.buffer, _set("buffer", torch.tensor(5.0))),
    "written buffer": (lambda ctx, g: g * ctx.model.buffer, lambda model: model.buffer.fill_(5.0)),
    "buffer's data": (lambda ctx, g: g * ctx.model.buffer, lambda model: model.buffer.data.fill_(5.0)),
    "size": (lambda ctx, g: g * float(ctx.model.buffer.numel()), _set("buffer", torch.ones(7))),
    "parameter": (lambda ctx, g: g * ctx.model.weight, _set("weight", nn.Parameter(torch.tensor(5.0)))),
    "closure": (lambda ctx, g: SCALED(g), lambda model: change_closure(5.0)),
    "environment": (lambda ctx, g: g * 2 if os.environ.get("D2S_TEST") else g,
                    lambda model: os.environ.__setitem__("D2S_TEST", "1")),
    "context": (lambda ctx, g: g * CONTEXT.get(), lambda model: CONTEXT.set(5.0)),  # type: ignore[arg-type, return-value]
    "default dtype": (lambda ctx, g: g * torch.ones(3).element_size(),
                      lambda model: torch.set_default_dtype(torch.float64)),
    "on a path": (lambda ctx, g: g * ctx.model.scale if g.sum() > 0 else g * RATE, _set("scale", 5.0)),
}  # fmt: skip
SILENT = {"buffer's data"}
"""What autograd does not count, so that a Program reads the content of now, as eager does."""


def _as_before(model: Any) -> None:
    globals().update(RATE=2.0, WEIGHT=torch.tensor(2.0), times=TIMES)
    TABLE.clear()
    TABLE["k"] = 2.0
    LIST[:] = [2.0]
    Config.rate = HELD.rate = 2.0
    change_closure(2.0)
    CONTEXT.set(2.0)
    os.environ.pop("D2S_TEST", None)
    with_default.__defaults__, with_keyword.__kwdefaults__ = (2.0,), {"rate": 2.0}
    torch.set_default_dtype(torch.float32)
    model.train()
    model.scale, model.buffer, model.weight = 2.0, torch.tensor(2.0), nn.Parameter(torch.tensor(2.0))
    model.table.clear()
    model.table["k"] = 2.0
    vars(model).pop("extra", None)
    model.step += 1


TIMES = times


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    yield
    _as_before(Model(lambda ctx, g: g, "straight"))


def _gradients(model: Any, change: Callable[[Any], None] | None, x: torch.Tensor, backwards: str) -> list[torch.Tensor]:
    _as_before(model)
    given = x.clone().requires_grad_()
    loss = model(given).square().sum()
    found = []
    if backwards == "one before":
        found += torch.autograd.grad(loss, [given], retain_graph=True)
    if change is not None:
        change(model)
    found += torch.autograd.grad(loss, [given], retain_graph=backwards == "two", create_graph=backwards == "create")
    if backwards == "two":
        found += torch.autograd.grad(loss, [given])
    return [one.detach() for one in found]


@pytest.mark.sample(9)
@pytest.mark.filterwarnings("ignore::dy2static.RetraceWarning")
@pytest.mark.parametrize("backend", ["interpreter", "c"])
@pytest.mark.parametrize("how", ["straight", "branch", "loop"])
@pytest.mark.parametrize("place", PLACES)
def test_it_changes_before_backward(place: str, how: str, backend: str) -> None:
    rule, change = PLACES[place]
    model, static = Model(rule, how), dy2static.to_static(Model(rule, how), backend=backend)
    refused = 0
    for backwards in ("one", "two", "one before", "create"):
        for now in (None, change):
            for x in (torch.tensor([1.0, 2.0, 3.0]), -torch.tensor([1.0, 2.0, 3.0])):
                expected = _gradients(model, now, x, backwards)
                try:
                    found = _gradients(static, now, x, backwards)
                except (TraceError, RuntimeError) as error:
                    assert now is not None
                    assert "D2S275" in str(error) or "modified by an inplace operation" in str(error)
                    refused += 1
                else:
                    assert all(map(torch.equal, found, expected)), (backwards, x)
    assert refused or place in SILENT


def test_the_error_says_what_has_changed() -> None:
    static = dy2static.to_static(Model(lambda ctx, g: g * ctx.model.scale, "straight"))
    y = static(torch.ones(3, requires_grad=True))
    static.scale = 5.0
    with pytest.raises(TraceError, match="attribute 'scale' of Model, .* was 2.0, and is 5.0") as caught:
        y.sum().backward(retain_graph=True)
    assert caught.value.code == "D2S275"
    assert "ctx.model.scale" in str(caught.value)
    static.scale = 2.0  # as it was
    y.sum().backward()


def test_a_file_has_no_python_to_ask(tmp_path: Path) -> None:
    model = Model(lambda ctx, g: g * ctx.model.scale, "branch")
    dy2static.save(model, tmp_path / "model", [dy2static.InputSpec([3], "float32", "x")])
    loaded = dy2static.load(tmp_path / "model")
    x = torch.ones(3, requires_grad=True)
    (expected,) = torch.autograd.grad(model(x).sum(), [x])
    y = loaded(x)
    model.scale = 5.0
    assert torch.equal(torch.autograd.grad(y.sum(), [x])[0], expected)


class OfAttribute(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, holder: Any) -> torch.Tensor:
        ctx.holder = holder
        return x * 3

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> Any:
        return g * ctx.holder.rate, None


def stored_after(x: torch.Tensor) -> torch.Tensor:
    y = OfAttribute.apply(x, HELD)
    HELD.rate = 3.0
    return y


def made_inside(x: torch.Tensor) -> torch.Tensor:
    holder = Holder()
    y = OfAttribute.apply(x, holder)
    holder.rate = 3.0
    return y


def bound_inside(x: torch.Tensor) -> torch.Tensor:
    rate = 2.0

    class Bound(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            return x * 3

        @staticmethod
        def backward(ctx: Any, g: torch.Tensor) -> torch.Tensor:
            return g * rate

    y = Bound.apply(x)
    rate = 3.0
    return y


def unrolled(x: torch.Tensor) -> torch.Tensor:
    for rate in range(3):
        HELD.rate = float(rate)
        x = OfAttribute.apply(x, HELD)
    return x


def in_a_loop(x: torch.Tensor) -> torch.Tensor:
    while x.abs().sum() < 50:
        HELD.rate = HELD.rate + 1.0
        x = OfAttribute.apply(x, HELD)
    return x


@pytest.mark.parametrize("function", [stored_after, made_inside, bound_inside, unrolled, in_a_loop],
                         ids=lambda one: one.__name__)
def test_the_function_itself_changes_it(function: Callable[[torch.Tensor], torch.Tensor]) -> None:
    HELD.rate = 2.0
    x = torch.ones(3, requires_grad=True)
    y = dy2static.to_static(function)(x)
    assert torch.equal(y, function(x))
    with pytest.raises(TraceError, match="D2S275"):
        y.sum().backward()


def stored_before(x: torch.Tensor) -> torch.Tensor:
    HELD.rate = HELD.rate + 1.0
    return OfAttribute.apply(x, HELD)


def asked_inside(x: torch.Tensor) -> torch.Tensor:
    HELD.rate = 3.0
    y = OfAttribute.apply(x, HELD)
    (g,) = torch.autograd.grad(y.sum(), [x])
    HELD.rate = 4.0
    return g


@pytest.mark.parametrize("function", [stored_before, asked_inside], ids=lambda one: one.__name__)
def test_what_was_stored_before(function: Callable[[torch.Tensor], torch.Tensor]) -> None:
    static = dy2static.to_static(function)
    for _ in range(4):
        rate = HELD.rate
        found = []
        for one in (function, static):
            HELD.rate = rate
            x = torch.ones(3, requires_grad=True)
            y = one(x)
            found.append(torch.autograd.grad(y.sum(), [x])[0] if y.requires_grad else y)
        assert torch.equal(*found)


def stored_before_asked_inside(x: torch.Tensor) -> torch.Tensor:
    y = OfAttribute.apply(x, HELD)
    HELD.rate = 3.0
    return torch.autograd.grad(y.sum(), [x])[0]


def test_the_function_changes_it_before_it_asks_for_a_gradient() -> None:
    with pytest.raises(TraceError, match="D2S213"):
        dy2static.to_static(stored_before_asked_inside)(torch.ones(3, requires_grad=True))


class Hooked(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = x * 2
        h.register_hook(lambda g: g * Config.rate)
        return h * 1.0 if x.sum() > 0 else h - 1


def test_a_hook_looks_up_an_attribute_of_a_class() -> None:
    """Backward calls it, as in eager."""
    for x in (torch.ones(3), -torch.ones(3)):
        found = []
        for model in (Hooked(), dy2static.to_static(Hooked())):
            Config.rate = 2.0
            given = x.clone().requires_grad_()
            y = model(given)
            Config.rate = 5.0
            found.append(torch.autograd.grad(y.sum(), [given])[0])
        assert torch.equal(*found)
