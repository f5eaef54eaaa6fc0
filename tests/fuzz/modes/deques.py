"""Deques that grow, shrink and turn on paths and in loops: made inside, given as arguments, and kept in attributes."""

from __future__ import annotations

import types
from collections import deque
from typing import Any

import torch

from tests.fuzz.modes.skeleton import Mode

_HEAD = """import torch
from collections import deque
class Window:
    def __init__(self, size):
        self.items = deque(maxlen=size)
        self.seen = 0
    def push(self, t):
        self.items.append(t)
        self.seen += 1
    def mean(self, default):
        return sum(self.items) / len(self.items) if self.items else default
def drain(d, limit):
    total = torch.zeros(3)
    while len(d) > limit:
        total = total + d.popleft()
    return total
def f(x, y, k, given, owner):
    p, q, r, n = x * 0.5, y * 2, torch.ones(3), k
    h, w, b = deque([p]), deque([q, p], maxlen=3), Window(2)
"""


class Deques(Mode):
    """Deques with and without a limit, of tensors."""

    refusals = frozenset({"D2S210", "D2S229", "D2S252"})  # the last: a sum, of no items an int, beside tensors
    head = _HEAD
    tail = "    return p, q, n, h, w, b.items, b.seen, given, owner.items\n"

    def simple(self) -> str:
        """A change of a deque, a look at one, or a value."""
        rng = self.rng
        d = rng.choice(("h", "h", "w", "w", "given", "owner.items"))
        one, value = self.name(), self.value()
        return rng.choice((
            f"{d}.append({value})", f"{d}.append({value})", f"{d}.appendleft({value})", f"{d}.extend([{value}, q])",
            f"{d}.extend({rng.choice(('h', 'w'))})", f"{d}.extendleft([{value}, p])", f"{d}.rotate(1)",
            f"{d}.rotate(-n)", f"if {d}:\n    {one} = {d}.pop()", f"if len({d}) > 1:\n    {one} = {d}.popleft()",
            f"while len({d}) > 2:\n    {d}.popleft()", f"n = n + len({d})", f"if {d}:\n    {one} = {d}[0] + {d}[-1]",
            f"for t in {d}:\n    {one} = {one} + t * 0.1", f"{one} = sum({d}) * 0.5 + {value}",
            f"if len({d}) > 0:\n    {d}[-1] = {value}", f"{d}.reverse()", f"{d}.clear()", "h = deque(w)",
            f"h = deque(t * 0.5 for t in {d})", "w = deque(h, maxlen=3)", "w = deque(list(h)[-2:], maxlen=3)",
            f"h = {d}.copy()", f"if {d}:\n    {one} = torch.stack(list({d})).mean(0)", f"b.push({value})",
            f"{one} = b.mean({value})", f"{one} = {one} + drain({d}, 1)", f"n = {d}.maxlen or n",
            f"for i, t in enumerate({d}):\n    {one} = {one} + t * i", "h = w",
            f"{one} = {one} + sum(t.sum() for t in {d})",
            f"try:\n    {one} = {d}[1]\nexcept IndexError:\n    n = n + 1",
            f"h += [{value}]", f"{one}, h = {value}, deque([{value}])", f"owner.items = deque([{value}])",
            f"for t in reversed({d}):\n    {one} = t - {one} * 0.5",
        ))  # fmt: skip

    def value(self) -> str:
        """A tensor to put in."""
        return self.rng.choice(("p", "q", "r", "p + 1", "q * 2", "x * n"))

    def condition(self) -> str:
        """A condition, of lengths too."""
        if self.rng.random() < 0.25:
            return f"len({self.rng.choice(('h', 'w', 'given', 'b.items'))}) > {self.rng.randint(1, 2)}"
        return super().condition()

    def calls(self, seed: int) -> list[tuple[Any, ...]]:
        """A deque and an object that has one are given, too."""
        return [
            (*call, deque([torch.full((3,), 0.5)], maxlen=2 + seed % 2 if seed % 3 else None),
             types.SimpleNamespace(items=deque([torch.ones(3)])))
            for call in super().calls(seed)
        ]  # fmt: skip
