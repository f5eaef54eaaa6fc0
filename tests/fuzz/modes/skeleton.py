"""What the modes share: random blocks of statements in branches, loops and ``with``, and how they are judged."""

from __future__ import annotations

import random
import types
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from tests.fuzz.judging import ALLOWED, TOLERANCE, Outcome, inputs, judged, load
from tests.oracle import check


class Mode(ABC):
    """One program of a seed; a subclass says which statements there are, and what is around them."""

    head = "import torch\ndef f(x, y, k):\n    p, q, r, n = x * 0.5, y * 2, torch.ones(3), k\n"
    tail = "    return p, q, r, n\n"
    names: Sequence[str] = ("p", "q", "r")
    contexts: Sequence[str] = ()
    """Headers of ``with`` statements that blocks may stand in."""
    margin = "    "
    """What the statements of the function stand behind."""
    depth = 2
    refusals = frozenset[str]()
    """Codes that a program may be refused with, besides those of every generator."""
    stays = False
    """Whether few programs return before their end: what comes after that is in a branch."""
    told = ""
    """What is said of a program that is the same."""
    inside = False
    """Whether the block that is being written is in a branch or loop."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.free = random.Random(f"free {seed}").random() < 0.15
        """Whether the program may have what is refused for good: a mode in which much is has little of it elsewhere."""

    @abstractmethod
    def simple(self) -> str:
        """A statement without a body."""

    def source(self) -> str:
        """The program's text."""
        return self.head + "\n".join(self.block(self.depth, self.margin, False)) + "\n" + self.tail

    def block(self, depth: int, pad: str, in_loop: bool) -> list[str]:
        """Some statements; ``depth`` more may be nested in each."""
        lines: list[str] = []
        before = self.inside
        for _ in range(self.rng.randint(1, 3 + depth)):
            self.inside = pad != self.margin
            if depth > 0 and self.rng.random() < 0.35:
                lines += self.nested(depth - 1, pad, in_loop)
            elif self.rng.random() < 0.06 and (in_loop or self.free or not self.stays):
                lines.append(f"{pad}if {self.condition()}:\n{pad}    {self.leaving(in_loop)}")
            else:
                lines += [pad + line for line in self.simple().split("\n")]
        self.inside = before
        return lines

    def nested(self, depth: int, pad: str, in_loop: bool) -> list[str]:
        """A statement with a body."""
        rng, inner = self.rng, pad + "    "
        kind = rng.random()
        if self.contexts and kind < 0.3:
            return [f"{pad}with {rng.choice(self.contexts)}:", *self.block(depth, inner, in_loop)]
        if kind < 0.7:
            lines = [f"{pad}if {self.condition()}:", *self.block(depth, inner, in_loop)]
            return [*lines, f"{pad}else:", *self.block(depth, inner, in_loop)] if rng.random() < 0.5 else lines
        if kind < 0.82:
            return [f"{pad}for _ in range(int(({self.name()} > 0).sum())):", *self.block(depth, inner, True)]
        if kind < 0.9:
            return [f"{pad}for _ in range(2):", *self.block(depth, inner, True)]
        count = f"n{rng.randint(0, 999)}"
        header = [f"{pad}{count} = 0", f"{pad}while {count} < 2 and {self.condition()}:"]
        return [*header, f"{inner}{count} = {count} + 1", *self.block(depth, inner, True)]

    def leaving(self, in_loop: bool) -> str:
        """A statement that leaves the block."""
        return self.rng.choice(("break", "continue")) if in_loop else self.tail.strip()

    def name(self) -> str:
        """A tensor."""
        return self.rng.choice(self.names)

    def condition(self) -> str:
        """A condition that depends on a tensor."""
        one = self.rng.choice((*self.names, "x", "y"))
        return self.rng.choice((f"{one}.sum() > 0", f"({one} > 0).any()", f"{one}.sum() < 1.5"))

    def calls(self, seed: int) -> list[tuple[Any, ...]]:
        """The arguments of each call: with gradients, and then without."""
        calls = inputs(seed)
        return calls + [(x.detach(), y.detach(), k) for x, y, k in calls]

    def compare(self, load_program: Callable[[], types.ModuleType], seed: int) -> None:
        """Raise AssertionError where the converted program is not what eager is."""
        paths = ("program",)
        check(load_program().f, *self.calls(seed), tolerance=TOLERANCE, paths=paths, none_is_zero=True)


def judge(mode: Mode, seed: int, source: str | None = None) -> Outcome:
    """Run a mode's program, or a smaller version of it."""
    text = source or mode.source()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # eager warns as well: of out= that resizes, of reading .grad of a result
        outcome = judged(
            lambda folder: mode.compare(lambda: load(text, seed, folder), seed), ALLOWED | mode.refusals, text
        )
    return Outcome("same", mode.told) if outcome.kind == "same" else outcome
