"""Random streams where a Program may be run again as plain Python: kept before, and put back where it raises."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy
import pytest
import torch

from dy2static import to_static
from tests.oracle import same

KINDS: dict[str, tuple[Callable[[int], Any], Callable[[Any], Any]]] = {
    "random.Random": (random.Random, lambda one: one.random()),
    "numpy RandomState": (numpy.random.RandomState, lambda one: one.random_sample()),
    "numpy Generator": (numpy.random.default_rng, lambda one: one.random()),
    "torch.Generator": (lambda seed: torch.Generator().manual_seed(seed), lambda one: torch.rand(2, generator=one)),
}
"""What makes a generator of a seed, and what draws from one."""


def _made_inside(kind: str) -> Callable[..., Any]:
    make, draw = KINDS[kind]

    def f(x):
        one = make(3)
        if x.sum() > 0:
            x = x + draw(one)
        return x + draw(one) + torch.rand(2), random.random(), numpy.random.rand()

    return f


def _given(kind: str) -> Callable[..., Any]:
    make, draw = KINDS[kind]
    one = make(3)

    def f(x):
        y = x + draw(one)
        if x.sum() < 0:
            raise ValueError("negative")
        return y + torch.rand(2), random.random(), numpy.random.rand()

    return f


def _outcome(f: Callable[..., Any], x: torch.Tensor) -> Any:
    try:
        return f(x)
    except ValueError as error:
        return str(error)


@pytest.mark.parametrize("full_graph", [True, False])
@pytest.mark.parametrize("made", [_made_inside, _given])
@pytest.mark.parametrize("kind", KINDS)
def test_calls_draw_what_eager_draws(kind: str, made: Callable[[str], Callable[..., Any]], full_graph: bool) -> None:
    seen = []
    for change in (lambda f: f, lambda f: to_static(f, full_graph=full_graph)):
        torch.manual_seed(0), random.seed(0), numpy.random.seed(0)
        f = change(made(kind))
        seen.append([_outcome(f, x) for x in (torch.ones(2), -torch.ones(2), torch.ones(2), -torch.ones(2))])
        seen[-1] += [torch.rand(3), random.random(), numpy.random.rand()]
    same(seen[1], seen[0])
