"""Random programs that give tensors several names, views and histories, and write them in place through each.

What a write does to another name, to its history and to ``requires_grad`` depends on the path and on the iteration.
Run as many as you like: ``python -m tests.fuzz.memory --seed 0 --count 500``.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from collections.abc import Callable

import torch

from tests.fuzz.judging import extreme_inputs, inputs, judge
from tests.fuzz.run import FAILURES

NAMES = ("p", "q", "r")
_HEAD = """import torch
def twist(t, u):
    if u.sum() > 0:
        t = t.detach()
    t += u
    return t
def f(x, y, k):
    p, q, r = x * 0.5, y * 2, torch.zeros(3)
    n, s = 0, torch.zeros(())
    box = [p]
"""
# Reading each in the program: what PyTorch lets nobody read raises there, not in the test.
_TAIL = "\n    return p * 1, q * 1, r * 1, n, s * 1, box[0] * 1\n"
_AS_IT_IS = """
    p * 1, q * 1, r * 1, box[0] * 1
    return p, q, r, n, s, box[0]
"""


class Memory:
    """One program of a seed."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)

    def source(self, as_it_is: bool = False) -> str:
        """Its text; ``as_it_is``: the tensors themselves are returned, so that it shows which are one object."""
        return _HEAD + "\n".join(self._block(2, "    ", False)) + (_AS_IT_IS if as_it_is else _TAIL)

    def _block(self, depth: int, pad: str, in_loop: bool) -> list[str]:
        lines: list[str] = []
        for _ in range(self._rng.randint(1, 3 + depth)):
            nested = depth > 0 and self._rng.random() < 0.35
            lines += self._nested(depth - 1, pad, in_loop) if nested else self._simple(pad, in_loop)
        return lines

    def _simple(self, pad: str, in_loop: bool) -> list[str]:
        rng = self._rng
        one, other, third = (rng.choice(NAMES) for _ in range(3))
        part = rng.choice(("[1:]", "[:2]", "[::2]", "[[0, 2]]"))
        names = [f"{one} = {other}", f"{one} = {other}.detach()", f"{one} = {other}.view(3)",
                 f"{one} = {other}.view(1, 3)[0]", f"{one} = {other} if {self._condition()} else {third}",
                 f"{one}, {other} = {other}, {one}", f"box[0] = {one}", f"{one} = box[0]"]  # fmt: skip
        values = [f"{one} = {other} * 0.5", f"{one} = {other}.clone()", f"{one} = {other} + {third}",
                  f"{one} = torch.zeros(3)", f"{one} = {other}.detach().clone()", f"s = s + {one}.sum()",
                  f"{one} = {one} + s", f"{one} = twist({other}, {third})"]  # fmt: skip
        writes = [f"{one} += {other}", f"{one} *= 0.5", f"{one}.mul_({other})", f"{one}.copy_({other})",
                  f"{one}.zero_()", f"{one}{part} += {other}{part}", f"{one}[0] = {other}[2]", f"{one}{part} = 0.5",
                  f"{one}.detach().add_({other}.detach())",
                  f"{one}[1:].sub_({other}[:2])"]  # fmt: skip
        others = [f"n = n + int({one}.requires_grad)",
                  f"if {self._condition()}:\n{pad}    return {one} * 1, {other} * 1, n"]  # fmt: skip
        if in_loop:
            others.append(f"if {self._condition()}:\n{pad}    break")
        kind = rng.choices((names, values, writes, others), (4, 3, 4, 1))[0]
        return [pad + rng.choice(kind)]

    def _nested(self, depth: int, pad: str, in_loop: bool) -> list[str]:
        rng = self._rng
        one, other = rng.choice(NAMES), rng.choice(NAMES)
        condition, inner = self._condition(), pad + "    "
        kind = rng.random()
        if kind < 0.45:
            lines = [f"{pad}if {condition}:", *self._block(depth, inner, in_loop)]
            return [*lines, f"{pad}else:", *self._block(depth, inner, in_loop)] if rng.random() < 0.5 else lines
        if kind < 0.6:
            return [f"{pad}with torch.no_grad():", *self._block(depth, inner, in_loop)]
        if kind < 0.68:
            return [f"{pad}u, v, w = {one}", *self._block(depth, pad, in_loop), f"{pad}{other} = {other} + v"]
        if kind < 0.76:
            return [f"{pad}for t in {one}:", *self._block(depth, inner, True), f"{inner}s = s + t"]
        if kind < 0.88:
            return [f"{pad}for _ in range(int(({one} > 0).sum())):", *self._block(depth, inner, True)]
        count = f"n{rng.randint(0, 999)}"
        return [f"{pad}{count} = 0", f"{pad}while {count} < 2 and {condition}:", f"{inner}{count} = {count} + 1",
                *self._block(depth, inner, True)]  # fmt: skip

    def _condition(self) -> str:
        one = self._rng.choice((*NAMES, "x", "y"))
        tests = f"{one}.sum() > 0", f"({one} > 0).any()", f"{one}.sum() < 1.5", f"{one}[0] < {one}[1]"
        return self._rng.choice(tests)


def main(arguments: list[str] | None = None, say: Callable[[str], None] = print) -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--extremes", action="store_true", help="zeros and infinities among the inputs")
    parser.add_argument("--as-it-is", action="store_true", help="return the tensors themselves, not new ones")
    parser.add_argument("--loaded", action="store_true", help="save each program, and run what is loaded")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    failed = False
    found: Counter[str] = Counter()
    for seed in range(options.seed, options.seed + options.count):
        source = Memory(seed).source(options.as_it_is)
        outcome = judge(source, seed, extreme_inputs if options.extremes else inputs, options.loaded)
        found[f"{outcome.kind} {outcome.code}".strip()] += 1
        if outcome.kind in FAILURES:
            failed = True
            say(f"seed {seed}: {outcome.kind} {outcome.code}\n{outcome.detail}\n{source}")
    say(", ".join(f"{count} {what}" for what, count in found.most_common()))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
