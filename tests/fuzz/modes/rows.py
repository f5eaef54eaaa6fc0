"""Programs under vmap: rows go different ways, and each is what it is by itself."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import torch

from tests import devices, over_rows
from tests.fuzz.generator import Generator
from tests.fuzz.modes.skeleton import Mode

_HEAD = """import torch
def f(x, y, k):
    p, q, r, n, m, s = x * 0.5, y * 2, torch.ones(3), k, 1, 0.5
"""
ROWS = 5


class OverRows(Mode):
    """Tensors, numbers, writes and lists; every fourth program is one of the generator of all statements."""

    head = _HEAD
    tail = "    return p, q, r, n, m, s\n"
    depth = 3
    refusals = frozenset({"D2S283", "D2S284", "D2S285"})

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.whole = Generator(seed, depth=2).source() if seed % 4 == 3 else ""

    def source(self) -> str:
        """The program's text."""
        return self.whole or super().source()

    def simple(self) -> str:
        """One value from others, or a write."""
        one, other, third = self.name(), self.name(), self.name()
        return self.rng.choice((
            f"{one} = {other} * 0.5 + {third}", f"{one} = {other}.tanh()", f"{one} = {other}.sin() * {third}",
            f"{one} = {other}", f"{one} = {other}.view(3)", f"{one} = {other}.detach()", f"{one} = {other}[[2, 0, 1]]",
            f"{one} = torch.cat([{other}[1:], {third}[:1]])", f"{one} = {other} * {other}.sum()",
            f"{one} = {other}.clamp(-2.0, 2.0) / {third}.abs().clamp(min=0.1)", f"{one} = {other}.abs().sqrt()",
            f"{one} = {other} * n", f"{one} = {other} + s", f"{one} = {other}.roll(n)", f"{one} = {other} ** 2 - m",
            f"{one} = {other}.clone()\n{one}[n % 3] = {third}[0]", f"{one} = {other}.clone()\n{one}.mul_({third})",
            f"{one} = {other}.clone()\n{one}[{one} > 0] = s", f"{one} = torch.zeros(3)\n{one}[1:] = {other}[:2]",
            f"{one} = torch.full((3,), s) * {other}", f"{one} = torch.where({other} > m, {third}, s)",
            f"{one} = torch.stack([{other}[i] for i in range(3)])", f"{one} = [{other}, {third}, x][n % 3] * 2",
            f"n += int({one}.sum().item() > 0)", "n = (n * 3 + m) % 7", "m = n // 2 - m", "m, n = n, m",
            f"s = {one}.max().item()", "s = s * 0.5 + n", "s = abs(s) ** 0.5", f"m = int({one}.argmax())",
            f"n = 2 if {one}[0] > 0 else m", f"s = min(s, {one}[1].item(), 3.0)",
            f"if n:\n    {one} = {other} / n", f"assert {one}.isnan().any() or {one}.sum() < 1e9",
            f"if {one}.min() > 0:\n    {other} = {one}.log()", "if m != 0:\n    n = n % m",
        ))  # fmt: skip

    def condition(self) -> str:
        """A condition on a tensor or number that differs between rows."""
        return self.rng.choice((super().condition(), "n > 1", "s < m", f"{self.name()}[n % 3] > s"))

    def compare(self, load_program: Callable[[], types.ModuleType], seed: int) -> None:
        """Rows of mixed signs."""
        generator = devices.generator(seed)
        rows = []
        for row in range(ROWS):
            x = (torch.randn(3, generator=generator) + row % 3 - 1).requires_grad_()
            rows.append((x, (torch.randn(3, generator=generator) * 0.5).requires_grad_(), seed % 3))

        def make() -> Any:
            torch.manual_seed(0)
            module = load_program()
            return module.Model() if hasattr(module, "Model") else module.f

        if over_rows.judge(make, rows, 1e-4).startswith("D2S"):
            raise over_rows.LAST[-1]


__all__ = ["OverRows"]
