"""Functions that call themselves as deep as tensors decide, inside of branches and loops, and are called from those."""

from __future__ import annotations

from tests.fuzz.modes.skeleton import Mode

_HEAD = """import torch
def f(x, y, k):
    p, q, r, n = x * 0.5, y * 2, torch.ones(3), k
    w = x * 0.25 + 0.5
"""
_DEPTH = 3
"""So deep a program's function calls itself at most: each call may make two others."""


class Recursion(Mode):
    """A function of two tensors and a number, with calls of itself; a second one that the first may call, too."""

    refusals = frozenset({"D2S222", "D2S264", "D2S270", "D2S229", "D2S243"})
    head = _HEAD
    tail = "    return p * 1, q * 1, r * 1, n\n"

    def source(self) -> str:
        """The functions, then a block that calls them."""
        both = self.rng.random() < 0.4
        functions = [line for name, other in (("go", "hop" if both else "go"), ("hop", "go"))[: 1 + both]
                     for line in self._function(name, other)]  # fmt: skip
        lines = [*functions, "    p, q, n = go(p, q, 0)", *self.block(self.depth, "    ", False)]
        return self.head + "\n".join(lines) + "\n" + self.tail

    def _function(self, name: str, other: str) -> list[str]:
        """One of the functions. ``other``: what it calls besides itself."""
        outer = self.names, self.tail
        self.names, self.tail = ("a", "b"), f"return {self.rng.choice(('a, b', 'b, a', 'a * 1, b'))}, d\n"
        self._calls = name, other
        body = self.block(1, "        ", False)
        guard = f"        if d < {_DEPTH} and {self.condition()}:"
        calls = ["            " + line for line in self._again().split("\n")]
        after = self.block(1, "        ", False) if self.rng.random() < 0.6 else []
        end = "        " + self.tail.strip()
        self.names, self.tail = outer
        self._calls = ()
        return [f"    def {name}(a, b, d):", *body, guard, *calls, *after, end]

    _calls: tuple[str, ...] = ()

    def _again(self) -> str:
        """A call inside, or two, one deeper."""
        one, two = self.rng.choice(self._calls), self.rng.choice(self._calls)
        first, second = self.value(), self.value()
        return self.rng.choice((
            f"a, b, d = {one}({first}, {second}, d + 1)",
            f"a, _, e = {one}({first}, b, d + 1)\nd = d + e",
            f"u, v, e = {one}({first}, {second}, d + 1)\na = a + u * 0.5\nb = v + w",
            f"u, _, e = {one}({first}, b, d + 1)\n_, v, g = {two}({second}, u, d + 1)\na, b, d = u + v, v, d + e * g",
            f"return {one}({first}, {second}, d + 1)",
            f"for _ in range(2):\n    a, _, e = {one}({first}, {second}, d + 2)\n    b = b + a * e",
        ))  # fmt: skip

    def value(self) -> str:
        """What a call is given."""
        one, other = self.name(), self.name()
        return self.rng.choice((one, f"{one} - 0.5", f"{one} * 0.5", f"torch.tanh({one} + {other})", f"{one} + w"))

    def simple(self) -> str:
        """A statement on the tensors at hand, or a call of the function from outside."""
        rng, one, other = self.rng, self.name(), self.name()
        number = "d" if self._calls else "n"
        if not self._calls and rng.random() < 0.25:
            return f"{one}, {other}, n = go({self.value()}, {self.value()}, {rng.choice(('0', '1', 'k'))})"
        return rng.choice((
            f"{one} = {one} + {other}", f"{one} = {one} * w", f"{one} = torch.tanh({one})", f"{one} = {other}",
            f"{one} = {other} * 0.5 + {number}", f"{number} = {number} + 1", f"{one} = {other}.flip(0)",
            f"{one} = torch.where({other} > 0, {one}, {other})", f"{one} = {one}.clone().mul_(0.5)",
            f"{one} = {one} - {other}.mean() * 0.9", f"{one}, {other} = {other}, {one}",
        ))  # fmt: skip
