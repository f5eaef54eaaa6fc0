"""Programs with things of their own beside the function: two copies of one program are held against each other.

A program has ``begin()``, which puts what is beside the function back to where it starts, ``beside()``, which shows it,
and ``shown()``, which shows arguments: generators are compared by their state.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from typing import Any

import torch

import dy2static
from tests import devices
from tests.fuzz.judging import TOLERANCE
from tests.fuzz.modes.skeleton import Mode
from tests.oracle import Terms, copied, hold, run, same

_TERMS = Terms(TOLERANCE, none_is_zero=True, separate_gradients=True, by_name=True)


class Beside(Mode):
    """A mode whose programs change what is beside the function; calls of several sizes, with and without gradients."""

    sizes: Sequence[Sequence[int]] = ((3, 3, 3), (3, 3, 5), (3, 4, 3), (2, 1, 3))

    def calls(self, seed: int) -> list[tuple[Any, ...]]:
        """Four or five calls: a size may come back, a number may change, the last ones have no gradients."""
        generator = devices.generator(seed)
        sizes = self.sizes[seed % len(self.sizes)] if seed % 3 == 0 else self.sizes[0]
        calls = []
        for number, (size, shift) in enumerate(zip(sizes, (0.3, 1.0, -1.0))):
            x = torch.randn(size, generator=generator) + shift
            y = torch.randn(size, generator=generator) * 0.5
            calls.append((x, y, (seed + (number // 2 if seed % 4 == 0 else 0)) % 3))
        with_gradients = [(x.clone().requires_grad_(), y.clone().requires_grad_(), k) for x, y, k in calls]
        return [*with_gradients, *calls[:: 1 if seed % 2 else 2]]

    def arguments(self, call: tuple[Any, ...], module: types.ModuleType, number: int) -> list[Any]:
        """The arguments of a call for one of the copies."""
        return list(copied(call))

    def compare(self, load_program: Callable[[], types.ModuleType], seed: int) -> None:
        """Each call of both copies: results, gradients, arguments and what is beside them afterwards."""
        theirs, mine = load_program(), load_program()
        static = dy2static.to_static(mine.f)
        raised, begin, calls = 0, True, self.calls(seed)
        for number, call in enumerate(calls):
            outcomes, given = [], []
            for module, function in ((theirs, theirs.f), (mine, static)):
                if begin or number % 2 == 0:
                    module.begin()
                given.append(self.arguments(call, module, number))
                outcomes.append(run(function, given[-1], number))
            around = [("arguments", mine.shown(given[1]), theirs.shown(given[0]))]
            begin = not hold(outcomes[1], outcomes[0], f"call {number}", _TERMS, around)
            raised += begin
            if not begin:
                same(mine.beside(), theirs.beside(), f"call {number} state", TOLERANCE, by_name=True)
        self.told = "raising" if raised == len(calls) else ""
