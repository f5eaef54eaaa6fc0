"""State that keeps its history from call to call: ``backward`` walks through it where eager's does."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
import torch

import dy2static


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.lin = torch.nn.Linear(3, 3)
        self.h = torch.tanh(torch.ones(3, requires_grad=True))


class Replaced(Model):
    def forward(self, x):
        if x.sum() > 0:
            self.h = self.lin(x)
        return self.h * 2


class NotInTheResult(Model):
    def forward(self, x):
        if x.sum() > 0:
            self.h = torch.tanh(self.lin(self.h))
        return (x * self.lin.weight[0]).sum()


class OfAnotherResult(Model):
    def forward(self, x):
        self.h = self.h * 2
        return self.lin(x)


class ReadOnAPath(Model):
    def forward(self, x):
        if x.sum() < 0:
            return self.lin(x) + self.h
        return self.lin(x)


class InALoop(Model):
    def forward(self, x):
        y = self.lin(x)
        for _ in range(int((x > 0).sum())):
            y = y * self.h
        return y


class Always(Model):
    def forward(self, x):
        y = self.lin(x) * self.h
        return y if x.sum() > 0 else y * 2


class Detached(Model):
    def forward(self, x):
        self.h = torch.tanh(self.lin(self.h.detach()))
        return self.h + x


class Grown(Model):
    def forward(self, x):
        self.h = torch.tanh(self.lin(x)) + self.h
        return self.lin(x), self.h.detach()


class Normed(Model):
    def __init__(self) -> None:
        super().__init__()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            torch.nn.utils.weight_norm(self.lin)

    def forward(self, x):
        return self.lin(x) if x.sum() > 0 else x * self.h.detach() * self.lin.bias


MODELS = [Replaced, NotInTheResult, OfAnotherResult, ReadOnAPath, InALoop, Always, Detached, Grown, Normed]
ORDERS = [(1, 1, -1, 1, 1, -1), (-1, 1, 1, 1, -1, 1), (1, -1, 1, 1), (-1, -1, 1)]


@pytest.mark.parametrize("signs", ORDERS, ids=str)
@pytest.mark.parametrize("make", MODELS, ids=lambda one: one.__name__)
def test_backward_of_each_call(make: type[Model], signs: tuple[int, ...]) -> None:
    model, eager = make(), make()
    for number, (mine, theirs) in enumerate(zip(steps(model, True, signs), steps(eager, False, signs))):
        assert (mine == "freed") is (theirs == "freed"), number
        if mine != "freed":
            torch.testing.assert_close(mine, theirs)


def steps(model: torch.nn.Module, converted: bool, signs: tuple[int, ...]) -> list[Any]:
    """Of each call, its results and the gradients that its backward leaves; what that raises where it does."""
    layer: Any = dy2static.to_static(model) if converted else model
    found: list[Any] = []
    for sign in signs:
        model.zero_grad()
        result = layer(sign * torch.ones(3))
        results = [one.detach() for one in (result if isinstance(result, tuple) else (result,))]
        try:
            (result[0] if isinstance(result, tuple) else result).sum().backward()
        except RuntimeError as error:
            assert "backward through the graph a second time" in str(error)
            found.append("freed")
            continue
        found.append([results, [one.grad for one in model.parameters()]])
    return found


@pytest.mark.parametrize("make", [Replaced, NotInTheResult, OfAnotherResult, Grown], ids=lambda one: one.__name__)
def test_a_loaded_layer_does_the_same(make: type[Model], tmp_path: Path) -> None:
    models = [make(), make()]
    for one in models:
        one.h = one.h.detach()
    layer = dy2static.to_static(make())
    layer.h = layer.h.detach()
    layer(torch.ones(3))
    layer.h = models[1].h.clone()
    loaded = dy2static.load(dy2static.save(layer, tmp_path / "layer"))
    for number, (mine, theirs) in enumerate(zip(*(steps(one, False, ORDERS[0]) for one in (loaded, models[1])))):
        assert (mine == "freed") is (theirs == "freed"), number
        if mine != "freed":
            torch.testing.assert_close(mine[0], theirs[0])
            torch.testing.assert_close(dict(enumerate(mine[1])), dict(enumerate(theirs[1])))


def test_a_state_that_every_result_depends_on_keeps_the_backward_program() -> None:
    layer: Any = dy2static.to_static(Always())
    for sign in (1, -1):
        result = layer(sign * torch.ones(3))
        assert type(result.grad_fn).__name__ == "ProgramNodeBackward"
        layer.h = torch.tanh(torch.ones(3, requires_grad=True))
