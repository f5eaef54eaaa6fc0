"""Tensors that share memory in ways that only a run knows, handed out of calls, branches and loops inside each other.

A program of ``tests.fuzz.memory`` is a function here; another one calls it somewhere deep, writes one of the tensors
that it gets, and reads the others.
"""

from __future__ import annotations

from tests.fuzz.memory import Memory
from tests.fuzz.modes.skeleton import Mode


class HandedOn(Mode):
    """One such program."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._given = Memory(self.rng.randrange(10**9)).source(as_it_is=True).replace("def f(", "def given(")

    def simple(self) -> str:
        """A write to one of the two that come first."""
        one = f"t[{self.rng.randrange(2)}]"
        return self.rng.choice((
            f"{one}.add_(1)", f"{one}.detach().add_(1)", f"with torch.no_grad():\n    {one}.mul_(2)",
            f"{one}.data.add_(1)", f"{one}[0] = 2.0", f"{one}.view(-1).sub_(1)",
        ))  # fmt: skip

    def source(self) -> str:
        """The program's text."""
        body = ["t = given(x, y, k)"]
        for level in range(self.rng.choice((1, 2, 2, 3))):
            body = self._around(body, level)
        lines = ["t = (x * 3, y * 3)", *body, *self.simple().split("\n"),
                 "return t[0] * 1, t[1] * 1, t[0] is t[1], len(t)"]  # fmt: skip
        return "\n".join([self._given, "def f(x, y, k):", *_indented(lines)]) + "\n"

    def _around(self, body: list[str], level: int) -> list[str]:
        condition = self.rng.choice(("y.sum() > 0", "x[0] < x[1]", "x.sum() < 1e9", "(y > -5).any()"))
        count = f"n{level}"
        return self.rng.choice((
            [f"if {condition}:", *_indented(body)],
            [f"if {condition}:", "    t = (t[0], t[1].clone())", "else:", *_indented(body)],
            ["for _ in range(int((y > 0).sum())):", *_indented(body)],
            [f"{count} = 0", f"while {count} < 2 and {condition}:", f"    {count} = {count} + 1", *_indented(body)],
            ["for e in x:", "    if e > 0.5:", "        break", *_indented(body)],
            [f"def h{level}(t):", *_indented([*body, "return t"]), f"t = h{level}(t)"],
            [f"if {condition}:", "    if y[2] > 2:", "        return t", *_indented(body)],
        ))  # fmt: skip


def _indented(lines: list[str]) -> list[str]:
    return ["    " + line for line in lines]
