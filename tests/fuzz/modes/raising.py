"""Operators that may raise, and whose results nothing reads: with a gradient, and without."""

from __future__ import annotations

from tests.fuzz.modes.skeleton import Mode

_HEAD = """import math
import torch
import torch.nn.functional as F
def f(x, y, k):
    p, q, r, n, m = x * 0.5, y * 2, torch.eye(3), k, int((x > 0).sum())
"""


class Raising(Mode):
    """``u`` is computed from indices, divisors and sizes that only a run knows, and dropped."""

    head = _HEAD
    tail = "    return p, q, n, m\n"
    names = ("p", "q")
    # How many results split and chunk give (D2S212, D2S235, D2S238), steps of linspace, size of unfold (D2S238).
    refusals = frozenset({"D2S212", "D2S235", "D2S238", "D2S267"})

    def simple(self) -> str:
        """What may raise, or what changes the numbers that decide it."""
        one, other = self.name(), self.name()
        number = self.rng.choice(("n", "m", "m - 2", "n + m", "int(p.sum())", "int(q.sum())"))
        raising = (
            f"{one}[{number}]", f"{one}.select(0, {number})", f"1 / ({number})", f"5 % ({number})", f"5 // ({number})",
            f"torch.ones({number})", f"{one} + torch.ones(abs({number}))", f"{one}.view({number}, -1)",
            f"{one}.reshape({number}, 3)", f"math.sqrt({number})", f"math.log(float({one}.sum()))",
            f"math.acos(float({one}.max()))", f"int({one}.sum() / 0)", f"[1, 2, 3][{number}]",
            f"F.one_hot(torch.tensor({number}).abs() + 1, 3)", f"r.index_select(0, torch.tensor([{number}]))",
            f"{one}.gather(0, torch.tensor([{number}]))", f"F.embedding(torch.tensor([{number}]), r)",
            f"torch.linalg.cholesky({one}[:, None] * {other} + r * ({number}))", f"torch.linalg.inv(r * ({number}))",
            f"torch.stack([{one}, {other}[:{number}]])", f"torch.cat([{one}[None], {other}[None, :{number}]])",
            f"{one}.chunk({number})", f"{one}.narrow(0, 0, {number})", f"{one}.split({number})",
            f"torch.linspace(0, 1, {number})", f"r[{number}, {number}]", f"{one}.expand({number}, 3)",
            f"{one}.repeat({number})", f"{one}.unfold(0, {number}, 1)", f"r @ {one}[:{number}]", f"1.5 ** ({number})",
        )  # fmt: skip
        checks = (f"assert {number} < 3", f'assert {one}.sum() < 4, "much"', f"assert {number} > -4, {number}",
                  f'if {number} > 4:\n    raise ValueError("far")')  # fmt: skip
        values = (f"{one} = {other} * 0.5 + 0.1", f"{one} = {one} - {other}", "n = n + 1", "m = m - 1", f"n = {number}",
                  f"{one} = {one} / ({number})")  # fmt: skip
        kind = self.rng.choices((raising, checks, values), (5, 1, 4))[0]
        text = self.rng.choice(kind)
        return f"u = {text}" if kind is raising else text
