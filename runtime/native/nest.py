"""Loop nests: operators on elements that share one iteration space, in one pass over memory.

    %a = exp(%x); %b = add(%a, %bias)      ->      for (i0 ...) for (i1 ...) { e7 = m_exp_f(x3); p8[...] = e7 + x4; }

A nest is *pending* until something else needs its memory; a value that dies before then is never stored. Folds over
the last dimensions, and copies into a part of something bigger, join the nest of what they read: their results are
*late*, there once the nest is written.

What is computed stands here; how a machine says it, ``Lowering.write_nest`` knows: loops of C in ``nest_in_c``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from runtime.native.values import HALVES, Expr, Tensor

if TYPE_CHECKING:
    from runtime.native.lowering import Lowering

MOST = 64
"""Operators in one nest."""


SMALL = 4096
"""Elements up to which memory is cheap."""


@dataclass
class Step:
    """One element computed: ``ctype e = text``; where it is stored, unless it died first."""

    tensor: Tensor
    text: str
    stored: bool = True
    target: Tensor | None = None


@dataclass
class Fold:
    """A fold of an element: ``first`` before the inner loops, ``text`` in them, ``result`` is stored after them.

    joins: how two halves of a row come together: a sign of C's (or max, min), and the name it is for.
    """

    to: Tensor
    first: str
    text: str
    result: str
    joins: tuple[tuple[str, str], ...]

    @property
    def clause(self) -> str:
        """How the halves come together, as C's vectors are told."""
        return " ".join(f"reduction({sign}:{name})" for sign, name in self.joins)


@dataclass
class Span:
    """A loop: how often, each operand's stride, and the last dimension of the space that it goes over."""

    count: Expr
    strides: list[Expr]
    last: int


@dataclass
class Nest:
    """The loops over ``dims``, the outermost dimension first in ``order``."""

    dims: tuple[Expr, ...]
    order: tuple[int, ...]
    steps: list[Step] = field(default_factory=list)
    loads: dict[int, Tensor] = field(default_factory=dict)
    releases: list[Tensor] = field(default_factory=list)
    late: list[Tensor] = field(default_factory=list)
    """What is complete once this is written."""
    folds: list[Fold] = field(default_factory=list)
    tail: int = 0
    """Over how many dimensions is folded, counted from the last."""

    def reads(self, t: Tensor) -> bool:
        """Whether a tensor's memory is read by what is pending."""
        return t.n in self.loads

    def holds(self, t: Tensor) -> bool:
        """Whether a tensor is computed here."""
        return any(step.tensor is t for step in self.steps)

    def load(self, low: Lowering, t: Tensor) -> str:
        """The element of an operand."""
        if t.half is not None:
            return f"{HALVES[t.half.dtype]}_wide({self.load(low, t.half)})"
        if t.reg:
            return t.reg
        if self.holds(t):
            return f"e{t.n}"
        self.loads[t.n] = t
        return f"x{t.n}"

    def add(self, t: Tensor, text: str) -> None:
        """A new tensor, an expression for each element."""
        t.pending = True
        self.steps.append(Step(t, text))

    def store(self, low: Lowering, to: Tensor, text: str) -> None:
        """Write elements into memory that there is already."""
        self.steps.append(Step(to, text, target=to))

    def finish_late(self, t: Tensor) -> None:
        """Some memory is complete only when this is written."""
        if t not in self.late:
            t.pending = True
            self.late.append(t)

    def may_fold(self, tail: int) -> bool:
        """Whether a fold over so many of the last dimensions can be part of this."""
        return self.order == tuple(range(len(self.dims))) and self.tail in (0, tail)

    def fold(self, to: Tensor, element: str, tail: int, *, first: str, step: str, result: str,
             joins: Sequence[tuple[str, str]]) -> None:  # fmt: skip
        """Fold an element over the last dimensions. The texts speak of it as v, and of acc and bad, which get names."""
        names = {"v": element, "acc": f"acc{to.n}", "bad": f"bad{to.n}"}
        first, step, result = (re.sub(r"\b(v|acc|bad)\b", lambda found: names[found[0]], one)
                               for one in (first, step, result))  # fmt: skip
        self.tail = tail
        self.folds.append(Fold(to, first, step, result, tuple((sign, names[name]) for sign, name in joins)))
        self.finish_late(to)

    def forget(self, t: Tensor) -> None:
        """Nothing reads the tensor any more but what is in the nest already."""
        for step in self.steps:
            if step.tensor is t:
                step.stored = False
        t.pending = False

    def write(self, low: Lowering) -> None:
        """The loops, as the machine has them."""
        low.write_nest(low, self)

    def settle(self) -> None:
        """Nothing is pending any more: what is computed here is about to be there."""
        for step in self.steps:
            step.tensor.pending = False
        for late in self.late:
            late.pending = False

    def operands(self, low: Lowering) -> dict[int, tuple[Tensor, tuple[Expr, ...]]]:
        """The tensors that are read or written, by number, and their strides along the space's dimensions."""
        stored = {step.tensor.n: step.tensor for step in self.steps if step.stored}
        folded = {fold.to.n: fold.to for fold in self.folds if not fold.to.reg}
        whole = {**self.loads, **stored, **folded}  # what is updated is read and written
        return {n: (t, self._folded(low) if n in folded else self.strides(low, t)) for n, t in whole.items()}

    def _folded(self, low: Lowering) -> tuple[Expr, ...]:
        """The strides of a fold's result: those dimensions that are folded do not move it."""
        stay = len(self.dims) - self.tail
        return (*low.w.dense(self.dims[:stay]), *[0] * self.tail)

    def strides(self, low: Lowering, t: Tensor) -> tuple[Expr, ...]:
        """A stride for each dimension of the space: 0 where the operand is broadcast."""
        missing = len(self.dims) - t.rank
        own = low.strides(t)
        found: list[Expr] = [0] * missing
        for dim in range(t.rank):
            broadcast = t.dims[dim] == 1 and self.dims[missing + dim] != 1
            found.append(0 if broadcast else own[dim])
        return tuple(found)

    def spans(self, low: Lowering, strides: list[tuple[Expr, ...]]) -> list[Span]:
        """The loops from the outermost. Neighbours are joined where all operands allow."""
        loops: list[Span] = []
        for dim in self.order:
            count = self.dims[dim]
            if count == 1:
                continue
            inner = [one[dim] for one in strides]
            if loops and (dim < len(self.dims) - self.tail or loops[-1].last >= len(self.dims) - self.tail):
                before = loops[-1]
                if all(
                    (a == 0 and b == 0) or (b != 0 and a == low.w.arith("*", count, b))
                    for a, b in zip(before.strides, inner)
                ):
                    loops[-1] = Span(low.w.arith("*", before.count, count), inner, dim)
                    continue
            loops.append(Span(count, inner, dim))
        return loops

