"""A module whose attributes change form, inside of calls and between them, and helpers whose caches keep objects."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import dy2static
from tests.fuzz.judging import TOLERANCE
from tests.fuzz.modes.skeleton import Mode
from tests.oracle import Terms, copied, hold, run, seeded, state_of

_HEAD = """import functools
import torch
class Box:
    def __init__(self, n):
        self.n, self.items = n, [n]
    def apply(self, t):
        return t * self.n
class Crate(Box):
    def apply(self, t):
        return torch.relu(t) + self.n
@functools.cache
def kept(n):
    return torch.arange(3.0) * n
@functools.cache
def row(n):
    return [n, n * 2, 0.5]
@functools.cache
def table(n):
    return {"a": n, "b": torch.ones(3) * n}
@functools.cache
def box(n):
    return Box(n)
"""
_MODEL = """class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 3)
        self.w = torch.nn.Parameter(torch.tensor([0.5, -1.0, 1.5]))
        self.register_buffer("mean", torch.zeros(3))
        self.h, self.count, self.scale, self.mode = None, 0, 1.0, "a"
        self.items, self.box, self.settings = [], Box(2), {"a": 1.0}
    def forward(self, x, y, k):
        p, q, n = x * 0.5, y * 2, k
"""
_CHANGES = (
    "m.h = None", "m.h = torch.ones(3)", "m.h = torch.ones(3, dtype=torch.float64)", "m.h = torch.ones(2, 3)",
    "m.h = torch.ones(3, requires_grad=True)", "m.h = torch.arange(3)", "m.h = 2.0", "m.count = 2.5", "m.count = True",
    "m.count = m.count + 1", "m.scale = torch.tensor(2.0)", "m.scale = 3", "m.mode = 'b'", "m.mode = None",
    "m.items.append(1.5)", "m.items.append(torch.ones(3))", "m.items.clear()", "m.items = (1.0, 2)", "m.box = Crate(3)",
    "m.box = Box(1.5)", "m.box.n = 4",
    "m.settings['b'] = 2.0", "m.settings['a'] = torch.ones(3)", "m.eval()",
    "m.train()",
    "m.settings.pop('b', None)", "m.mean = torch.ones(3)", "m.mean.add_(1)", "m.w.requires_grad_(False)",
    "m.w.requires_grad_()", "m.linear = torch.nn.Linear(3, 3, bias=False)", "m.linear = torch.nn.Tanh()",
    "m.w.data = torch.ones(3)", "m.box.__class__ = Crate", "kept(2).add_(1)", "row(2).append(1)", "table(1)['a'] = 7",
    "box(2).n = 5", "kept.cache_clear()", "m.linear.double()\n    m.linear.float()",
)  # fmt: skip


class ChangingState(Mode):
    """Reads that ask which form an attribute has, stores of another, and calls of cached helpers.

    Few programs change on a path what only some forms have, or write what a cache keeps there: that is refused.
    """

    head = _HEAD
    tail = "        return p, q, n\n"
    names = ("p", "q")
    margin = "        "
    depth = 1
    stays = True
    refusals = frozenset({"D2S211", "D2S213", "D2S228", "D2S274", "D2S276", "D2S277"})

    def source(self) -> str:
        """Helpers, changes, the module."""
        changes = "".join(f"def change_{number}(m):\n    {self.rng.choice(_CHANGES)}\n" for number in range(5))
        body = "\n".join(self.block(self.depth, self.margin, False))
        return f"{self.head}{changes}{_MODEL}{body}\n{self.tail}"

    def simple(self) -> str:
        """A read, a store, a call of a helper, a value."""
        rng, one, other = self.rng, self.name(), self.name()
        number = rng.choice(("1", "2", "2", "k"))
        reads = (
            f"if self.h is not None:\n    {one} = {one} + self.h", f"{one} = {one} * self.scale",
            "if isinstance(self.h, torch.Tensor):\n    n = n + self.h.dim()", "n = n + self.count",
            f"{one} = {one} + (1 if self.mode == 'a' else 2)", "n = n + len(self.items)",
            f"for item in self.items:\n    {one} = {one} + item", f"{one} = self.box.apply({one})",
            "n = n + isinstance(self.box, Crate)", f"{one} = {one} * self.settings['a']",
            "n = n + sum(1 for _ in self.settings)", f"{one} = {one} * self.w", f"{one} = self.linear({one})",
            f"{one} = {one} + self.mean", "n = n + self.w.requires_grad",
            f"{one} = {one} * 2 if self.training else {one}",
            "if isinstance(self.h, torch.Tensor) and self.h.dtype == torch.float64:\n    n = n + 3",
        )  # fmt: skip
        stores = (
            f"self.h = {one}.detach()", "self.h = None", f"self.h = {one}.detach().double()",
            "self.count = self.count + 1",
            f"self.h = {one}.detach().sum()", "self.scale = 0.5", f"self.scale = float({one}.sum() > 0) + 1",
            "self.mode = 'b'", f"self.items.append({one}.detach())", "self.items.append(1.0)",
            "self.items = self.items[-1:]",
            "self.box = Crate(2)", "self.box = Box(1)", "self.box.n = self.box.n + 1",
            f"self.settings['a'] = {one}.detach()",
            "self.settings['a'] = 2.0", f"self.mean.mul_(0.5).add_({one}.detach())",
            f"self.mean = {one}.detach() * 0.5",
        )  # fmt: skip
        cached = (
            f"{one} = {other} + kept({number})", f"{one} = {one} * row({number})[1]", f"n = n + len(row({number}))",
            f"{one} = {one} + table({number})['b']", f"n = n + table({number})['a']",
            f"{one} = box({number}).apply({one})",
            f"n = n + sum(row({number})[:2])", f"n = n + box({number}).n",
        )  # fmt: skip
        changed = (f"kept({number}).add_(1)", f"row({number}).append(n)", f"table({number})['a'] = n",
                   f"box({number}).n = 3", f"self.h = kept({number})")  # fmt: skip
        values = (f"{one} = {other} * 0.5 + 0.1", f"{one} = {one} - {other}", "n = n + 1")
        at_the_end = changed if self.free else values
        return rng.choice(rng.choices((reads, stores, cached, at_the_end, values), (5, 4, 3, 1, 1))[0])

    def compare(self, load_program: Callable[[], types.ModuleType], seed: int) -> None:
        """Two copies of the program, each with caches of its own; after every second call something is changed."""
        theirs, mine = load_program(), load_program()
        seeded(1234)
        static: Any = dy2static.to_static(mine.Model())
        seeded(1234)
        eager: Any = theirs.Model()
        for number, call in enumerate(self.calls(seed) * 2):
            if number % 2 and number // 2 < 5:
                for module, model in ((theirs, eager), (mine, static)):
                    seeded(number)
                    try:
                        getattr(module, f"change_{number // 2}")(model)
                    except (AttributeError, TypeError):  # there may be no such attribute by now: in both
                        pass
            expected = run(eager, copied(call), number, list(eager.parameters()))
            got = run(static, copied(call), number, list(static.parameters()))
            states = [("state", state_of(static), state_of(eager)), ("caches", caches(mine), caches(theirs))]
            terms = Terms(tolerance=TOLERANCE, none_is_zero=True, by_name=True)
            if not hold(got, expected, f"call {number}", terms, states):
                return


def caches(module: types.ModuleType) -> list[Any]:
    """What the helpers give, asked outside."""
    return [function(number) for function in (module.kept, module.row, module.table, module.box) for number in (1, 2)]
