"""Numbers outside the arguments that change from call to call: whether one is 0 chooses the Program, not a branch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from dy2static import to_static
from tests.oracle import difference


class Owner:
    def __init__(self, number: Any) -> None:
        self.number = number


def compared(owner: Owner, x: Any) -> Any:
    if owner.number != 0:
        return x * owner.number
    return x - 1


def from_the_right(owner: Owner, x: Any) -> Any:
    return x + 3 if 0 == owner.number else x / owner.number


def truth(owner: Owner, x: Any) -> Any:
    y = x * owner.number if owner.number else x.abs()
    return y, not owner.number, owner.number and 5, bool(owner.number)


def counted(owner: Owner, x: Any) -> Any:
    owner.number += 1
    if owner.number == 0:
        return x
    return x * owner.number


def grown(owner: Owner, x: Any) -> Any:
    held = []
    if owner.number != 0:
        held.append(x * owner.number)
        held[0].add_(1)
    return held


def in_a_loop(owner: Owner, x: Any) -> Any:
    left = owner.number
    while left != 0 and x.sum() < 100:
        left = left - 1 if left > 0 else left + 1
        x = x + 1
    return x, left


NUMBERS = [1, 2, 3, 0, 4, 0, -1, 5, 0, 6]


@pytest.mark.parametrize("kind", [int, float])
@pytest.mark.parametrize("function", [compared, from_the_right, truth, counted, grown, in_a_loop],
                         ids=lambda one: one.__name__)  # fmt: skip
def test_as_eager(function: Callable[..., Any], kind: type) -> None:
    mine, theirs = Owner(kind(1)), Owner(kind(1))
    converted: Any = to_static(lambda x: function(mine, x))
    for number in NUMBERS:
        mine.number = theirs.number = kind(number)
        x = torch.tensor([1.0, -2.0])
        assert not difference(converted(x.clone()), function(theirs, x.clone()))
        assert not difference(mine.number, theirs.number)
    assert len(converted.programs) <= 4  # of two numbers, of any, of any but 0


def _trained(make: Callable[[Any], Any], static: bool) -> tuple[list[Any], int]:
    torch.manual_seed(0)
    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    scheduler = make(optimizer)

    def step(x: Any) -> Any:
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        scheduler.step()
        return loss

    called: Any = to_static(step) if static else step
    left = [called(torch.ones(4, 3) * number) for number in range(1, 15)]
    return [left, list(model.parameters()), optimizer.state_dict()], len(called.programs) if static else 0


schedulers = torch.optim.lr_scheduler
SCHEDULERS: dict[str, Callable[[Any], Any]] = {
    "OneCycleLR": lambda optimizer: schedulers.OneCycleLR(optimizer, 0.2, total_steps=40),
    "MultiStepLR": lambda optimizer: schedulers.MultiStepLR(optimizer, [2, 5, 9]),
    "CyclicLR": lambda optimizer: schedulers.CyclicLR(optimizer, 0.01, 0.1, step_size_up=2),
    "StepLR": lambda optimizer: schedulers.StepLR(optimizer, 3),
}


@pytest.mark.parametrize("name", SCHEDULERS)
def test_schedulers_inside_cost_few_programs(name: str) -> None:
    expected, _ = _trained(SCHEDULERS[name], False)
    found, programs = _trained(SCHEDULERS[name], True)
    assert not difference(found, expected)
    assert programs <= 6  # the learning rate is seen changing twice
