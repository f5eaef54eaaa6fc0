"""Where regions begin and end, and how Python calls them: the part that all machines share.

    v9 = f3(v1)                      what no region takes: as the interpreter writes it
    t = R5(v9, v2)                   a region
    if t is None: (v7,) = g6(v9, v2)       where it gave up: the same Operators, as the interpreter writes them
    else: (v7,) = t

A region that takes a list may let go what it reads for the last time, before it ends:

    b = [v9, v2]
    del v9                           nobody but the list has it
    t = R5(b)
    if t is None: v9 = b[0]; ...
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from runtime.executor.emitter import Emitter
from runtime.ir import Operator, Variable

Lowered = TypeVar("Lowered")
"""What Operators of a region are once they are written for the machine."""


@dataclass
class RegionEmitter(Emitter, Generic[Lowered]):
    """Writes what a machine cannot do as the interpreter does, and calls of regions for the rest."""

    _python: int = 0

    @abstractmethod
    def may_join(self, op: Operator) -> bool:
        """Whether an Operator can be part of a region at all; what it computes shows when it is written."""

    @abstractmethod
    def is_worth(self, ops: Sequence[Operator]) -> bool:
        """Whether a region of them gains more than its call costs."""

    @abstractmethod
    def lower(self, ops: list[Operator]) -> tuple[Lowered | None, int]:
        """Operators for the machine, or None and how many come before the first that it cannot do."""

    @abstractmethod
    def call(self, lowered: Lowered, ops: list[Operator]) -> None:
        """Write the call of a region."""

    def before_python(self, ops: Sequence[Operator]) -> None:
        """Write what Operators need that the interpreter runs."""

    def regions(self, ops: Sequence[Operator]) -> None:
        """Write consecutive Operators: regions, and what is between them."""
        if self._python:
            super().regions(ops)
            return
        between: list[Operator] = []
        for region, part in self._parts(ops):
            if region is None:
                between += part
                continue
            self.as_python(between)
            between = []
            self.call(region, part)
        self.as_python(between)

    def as_python(self, ops: Sequence[Operator]) -> None:
        """Write Operators as the interpreter does."""
        self.before_python(ops)
        super().regions(ops)

    def results(self, ops: Sequence[Operator]) -> list[Variable]:
        """What of the Operators' results is alive after them."""
        dead = {var for op in ops for var in (*self.live.dying[id(op)], *self.live.unread[id(op)])}
        return [var for op in ops for var in op.outputs if var not in dead]

    def write_call(self, function: Callable[..., Any], given: Iterable[Variable], ops: list[Operator],
                   results: list[Variable], leaving: Collection[Variable] | None = None) -> None:  # fmt: skip
        """Call a region; where it gives None, the interpreter's code for the same Operators runs. ``leaving``: what
        may be gone when it gives something else; then it takes a list."""
        given = list(given)
        names = list(map(self.name, given))
        self._python += 1
        outline = self.outline(ops)
        self._python -= 1
        handed = [var for var in outline.dying if leaving and var in leaving and self.name(var) in names]
        found = self.fresh("t")
        box = self.fresh("b")
        if handed:
            self.line(f"{box} = [{', '.join(names)}]")
            self.drop(handed)
        arguments = ", ".join(names) if leaving is None else box if handed else f"[{', '.join(names)}]"
        self.line(f"{found} = {self.bind(function, 'R')}({arguments})")
        with self.indented(f"if {found} is None:"):
            for var in handed:
                self.line(f"{self.name(var)} = {box}[{names.index(self.name(var))}]")
            if handed:
                self.line(f"del {box}")
            self.before_region_in_python(given)
            self.line(outline.text)
            self.drop(handed)
        with self.indented("else:"):
            if handed:
                self.line(f"del {box}")
            self.line("pass")
            names = [self.name(var) for var in results]
            if names:
                self.line(f"({''.join(name + ', ' for name in names)}) = {found}")
            for var in results:
                if self.flag(var) in self.flagged:
                    self.line(f"{self.flag(var)} = False")
        self.line(f"del {found}")
        self.drop(var for var in outline.dying if var not in handed)

    def before_region_in_python(self, given: Iterable[Variable]) -> None:
        """Write what a region's arguments need where the interpreter runs it after all."""

    def _parts(self, ops: Sequence[Operator]) -> Iterator[tuple[Lowered | None, list[Operator]]]:
        """Runs of Operators, each as the machine has it, or None."""
        start = 0
        while start < len(ops):
            end = start
            while end < len(ops) and self.may_join(ops[end]):
                end += 1
            if end == start:
                yield None, [ops[start]]
                start += 1
                continue
            run = list(ops[start:end])
            if not self.is_worth(run):
                yield None, run
                start = end
                continue
            lowered, count = self.lower(run)
            if lowered is None and count and self.is_worth(run[:count]):
                lowered, again = self.lower(run[:count])
                count = again if lowered is None else count
            taken = run[: max(count, 1)]
            yield lowered, taken
            start += len(taken)


__all__ = ["Lowered", "RegionEmitter"]
