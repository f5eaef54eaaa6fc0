"""Writes a random program's text, and counts which constructs it holds and what each stands in."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")

TENSORS = ("x", "y", "a", "b", "c")
"""Float tensors of three elements; ``x`` and ``y`` are arguments."""
INTS = ("i", "j", "m")


class Writer:
    """The text so far, the random numbers, and the constructs around the point of writing."""

    def __init__(self, seed: int, size: int = 3) -> None:
        self.random = random.Random(seed)
        self.size = size
        self.lines: list[str] = []
        self.indent = 1
        self.loops = 0
        """How many loops of the same function are around this point."""
        self.returns = True
        """Whether ``return`` may stand here."""
        self.module = False
        """Whether the program is the forward of a module."""
        self.draws = True
        """Whether it may draw random numbers."""
        self.stack: list[str] = ["function"]
        self.used: Counter[str] = Counter()
        self.pairs: Counter[tuple[str, str]] = Counter()
        self._fresh = 0

    def line(self, text: str) -> None:
        """One line, at the current indentation."""
        self.lines.append("    " * self.indent + text)

    @contextmanager
    def inside(self, kind: str, header: str, *, loop: bool = False) -> Iterator[None]:
        """A compound statement's header; what is written inside is its body."""
        self.line(header)
        before = len(self.lines)
        self.indent += 1
        self.stack.append(kind)
        self.loops += loop
        yield
        self.loops -= loop
        self.stack.pop()
        if len(self.lines) == before:
            self.line("pass")
        self.indent -= 1

    def note(self, kind: str) -> None:
        """A construct occurs here."""
        self.used[kind] += 1
        self.pairs[self.stack[-1], kind] += 1

    def name(self, stem: str) -> str:
        """A name that no other part of the program has."""
        self._fresh += 1
        return f"{stem}{self._fresh}"

    def pick(self, options: Sequence[T]) -> T:
        """One of several."""
        return self.random.choice(options)

    def one_of(self, *options: Callable[[], str]) -> str:
        """The text that one of several writes."""
        return self.random.choice(options)()

    def chance(self, probability: float) -> bool:
        """True with this probability."""
        return self.random.random() < probability


Simple = Callable[[Writer], None]
Nested = Callable[[Writer, int], None]
SIMPLE: list[tuple[str, float, Simple]] = []
"""Statements without a body: name, weight, what writes one."""
NESTED: list[tuple[str, float, Nested]] = []
"""Statements with bodies, which are written with less depth."""


def simple(kind: str, weight: float = 1.0) -> Callable[[Simple], Simple]:
    """Register what writes a statement."""

    def register(write: Simple) -> Simple:
        SIMPLE.append((kind, weight, write))
        return write

    return register


def nested(kind: str, weight: float = 1.0) -> Callable[[Nested], Nested]:
    """Register what writes a compound statement."""

    def register(write: Nested) -> Nested:
        NESTED.append((kind, weight, write))
        return write

    return register


def block(g: Writer, depth: int, most: int | None = None) -> None:
    """Some statements."""
    for _ in range(g.random.randint(1, most or g.size)):
        statement(g, depth)


def statement(g: Writer, depth: int) -> None:
    """One statement; ``depth`` more may be nested in it."""
    if depth > 0 and g.chance(0.45):
        kind, _, write_nested = g.random.choices(NESTED, [weight for _, weight, _ in NESTED])[0]
        g.note(kind)
        write_nested(g, depth - 1)
        return
    kind, _, write = g.random.choices(SIMPLE, [weight for _, weight, _ in SIMPLE])[0]
    g.note(kind)
    write(g)
