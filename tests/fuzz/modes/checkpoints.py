"""Loops whose gradients keep a few states: as eager, and bit for bit as the same loops without the option (in C but for
rounding)."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

from tests.fuzz.judging import TOLERANCE
from tests.fuzz.modes.skeleton import Mode
from tests.oracle import check, copied, run, same

_HEAD = """import torch
import torch.nn.functional as F
from dy2static import loop_options, to_static
def f(x, y, k, most=None):
    p, q, r, n, items = x * 0.5, y * 2, torch.ones(3), k, [x]
"""


class Checkpoints(Mode):
    """Tensors, numbers, writes in place, lists that grow and random numbers, in loops up to nine iterations long."""

    head = _HEAD
    tail = "    return p, q, r, n, items\n"

    def simple(self) -> str:
        """A value, a write, a list, or random numbers."""
        one, other = self.name(), self.name()
        return self.rng.choice((
            f"{one} = torch.tanh({other}) * 0.9 + 0.1", f"{one} = {one} * 0.5 + {other} * 0.4", f"{one} = {other}",
            f"{one} = torch.sin({other} * x)", f"{one} = {other}.flip(0) - y",
            f"{one} = {other}.detach() + {one} * 0.5",
            f"{one} = {one}.clone()\n{one}.mul_(0.7)", f"{one} = {one} * 1.0\n{one}[0] = {other}[1] * 0.5",
            f"{one} = F.dropout({one}, 0.3)", f"{one} = {one} + torch.rand(3) * 0.1", "n = n + 1", "n = n - 1",
            f"{one} = {one} * (n % 3) * 0.5", f"items.append({one} * 0.5)", f"{one} = {one} + items[-1] * 0.2",
            f"if len(items) > 1:\n    {one} = {one} + items.pop() * 0.1", f"items[-1] = {one}",
            f"{one} = torch.stack([{one}, {other}]).sum(0) * 0.5", f"with torch.no_grad():\n    {one} = {other} * 0.3",
        ))  # fmt: skip

    def nested(self, depth: int, pad: str, in_loop: bool) -> list[str]:
        """A loop with the option, or any other statement with a body."""
        if self.rng.random() < 0.4:
            return super().nested(depth, pad, in_loop)
        inner = pad + "    "
        count = f"n{self.rng.randint(0, 999)}"
        limit = self.rng.choice((1, 3, 6, 9))
        lines = [f"{pad}{count} = 0", f"{pad}with loop_options(checkpoints=most and {self.rng.choice((1, 2, 3, 5))}):"]
        if self.rng.random() < 0.3:
            lines.append(f"{inner}for _ in range(int(({self.name()} > 0).sum()) * {limit // 2}):")
        else:
            lines.append(f"{inner}while {count} < {limit} and {self.condition()}:")
        return [*lines, f"{inner}    {count} = {count} + 1", *self.block(depth, inner + "    ", True)]

    def calls(self, seed: int) -> list[tuple[Any, ...]]:
        """With the option, which eager does not see."""
        return [(*call, 1) for call in super().calls(seed)]

    def compare(self, load_program: Callable[[], types.ModuleType], seed: int) -> None:
        """Against eager, and against the Program without the option."""
        module = load_program()
        static = check(module.f, *self.calls(seed), tolerance=TOLERANCE, paths=("program",), none_is_zero=True)
        rounding = TOLERANCE if static.backend == "c" else 0.0  # C adds up two Programs in two orders
        for number, call in enumerate(self.calls(seed)):
            got = run(static, copied(call), number)
            plain = run(static, copied(call[:-1]), number)
            same(got.result, plain.result, "result without the option", tolerance=rounding)
            same(got.gradients, plain.gradients, "gradients without the option", tolerance=rounding)
