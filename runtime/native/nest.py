"""Loop nests: operators on elements that share one iteration space, in one pass over memory.

    %a = exp(%x); %b = add(%a, %bias)      ->      for (i0 ...) for (i1 ...) { e7 = m_exp_f(x3); p8[...] = e7 + x4; }

A nest is *pending* until something else needs its memory; a value that dies before then is never stored. Folds over
the last dimensions, and copies into a part of something bigger, join the nest of what they read: their results are
*late*, there once the nest is written.
"""

from __future__ import annotations

import re
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
class _Step:
    """One element computed: ``ctype e = text``; where it is stored, unless it died first."""

    tensor: Tensor
    text: str
    stored: bool = True
    target: Tensor | None = None


@dataclass
class _Fold:
    """A fold of an element: ``first`` before the inner loops, ``text`` in them, ``result`` is stored after them."""

    to: Tensor
    first: str
    text: str
    result: str
    clause: str


@dataclass
class Nest:
    """The loops over ``dims``, the outermost dimension first in ``order``."""

    dims: tuple[Expr, ...]
    order: tuple[int, ...]
    steps: list[_Step] = field(default_factory=list)
    loads: dict[int, Tensor] = field(default_factory=dict)
    releases: list[Tensor] = field(default_factory=list)
    late: list[Tensor] = field(default_factory=list)
    """What is complete once this is written."""
    folds: list[_Fold] = field(default_factory=list)
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
        self.steps.append(_Step(t, text))

    def store(self, low: Lowering, to: Tensor, text: str) -> None:
        """Write elements into memory that there is already."""
        self.steps.append(_Step(to, text, target=to))

    def finish_late(self, t: Tensor) -> None:
        """Some memory is complete only when this is written."""
        if t not in self.late:
            t.pending = True
            self.late.append(t)

    def may_fold(self, tail: int) -> bool:
        """Whether a fold over so many of the last dimensions can be part of this."""
        return self.order == tuple(range(len(self.dims))) and self.tail in (0, tail)

    def fold(self, to: Tensor, element: str, tail: int, *, first: str, step: str, result: str, clause: str) -> None:
        """Fold an element over the last dimensions. The texts speak of it as v, and of acc and bad, which get names."""
        names = {"v": element, "acc": f"acc{to.n}", "bad": f"bad{to.n}"}
        texts = [re.sub(r"\b(v|acc|bad)\b", lambda found: names[found[0]], one)
                 for one in (first, step, result, clause)]  # fmt: skip
        self.tail = tail
        self.folds.append(_Fold(to, *texts))
        self.finish_late(to)

    def forget(self, t: Tensor) -> None:
        """Nothing reads the tensor any more but what is in the nest already."""
        for step in self.steps:
            if step.tensor is t:
                step.stored = False
        t.pending = False

    def write(self, low: Lowering) -> None:
        """The loops as C."""
        w = low.w
        for step in self.steps:
            step.tensor.pending = False
            if step.stored and step.target is None:
                self._allocate(low, step.tensor)
        for late in self.late:
            late.pending = False
        stored = {step.tensor.n: step.tensor for step in self.steps if step.stored}
        folded = {fold.to.n: fold.to for fold in self.folds if not fold.to.reg}
        operands = list({**self.loads, **stored, **folded}.values())  # what is updated is read and written
        strides = {t.n: self._folded(low, t) if t.n in folded else self._strides(low, t) for t in operands}
        loops = self._loops(low, [strides[t.n] for t in operands])
        outer = sum(1 for loop in loops if loop.last < len(self.dims) - self.tail)
        depth = w.indent
        places: dict[int, list[str]] = {t.n: [] for t in operands}
        with w.block(""):
            for level, loop in enumerate(loops):
                if level == outer:
                    self._begin(low)
                if level == len(loops) - 1:
                    clauses = " ".join(fold.clause for fold in self.folds)
                    w.line(f"#pragma omp simd {clauses}" if clauses and level >= outer else "#pragma GCC ivdep")
                w.line(f"for (i64 i{level} = 0; i{level} < {loop.count}; i{level}++) {{")
                w.indent += 1
                for t, stride in zip(operands, loop.strides):
                    if stride != 0:
                        places[t.n].append(f"i{level}" if stride == 1 else f"i{level} * {stride}")
            if outer == len(loops):
                self._begin(low)
            for t in self.loads.values():
                w.line(f"const {t.ctype} x{t.n} = p{t.n}[{' + '.join(places[t.n]) or '0'}];")
            for step in self.steps:
                w.line(f"const {step.tensor.ctype} e{step.tensor.n} = {step.text};")
                if step.stored:
                    w.line(f"p{step.tensor.n}[{' + '.join(places[step.tensor.n]) or '0'}] = e{step.tensor.n};")
            for fold in self.folds:
                w.line(fold.text)
            for level in reversed(range(len(loops))):
                if level == outer - 1:
                    self._end(low, places)
                w.indent -= 1
                w.line("}")
            if not outer:
                self._end(low, places)
        assert w.indent == depth
        for t in self.releases:
            low.release(t)

    def _begin(self, low: Lowering) -> None:
        for fold in self.folds:
            low.w.line(f"{fold.first};")

    def _end(self, low: Lowering, places: dict[int, list[str]]) -> None:
        for fold in self.folds:
            to = fold.to
            target = to.reg or f"p{to.n}[{' + '.join(places[to.n]) or '0'}]"
            low.w.line(f"{target} = ({to.ctype})({fold.result});")

    def _folded(self, low: Lowering, t: Tensor) -> tuple[Expr, ...]:
        """The strides of a fold's result: those dimensions that are folded do not move it."""
        stay = len(self.dims) - self.tail
        return (*low.w.dense(self.dims[:stay]), *[0] * self.tail)

    def _allocate(self, low: Lowering, t: Tensor) -> None:
        """Memory for a result: that of an operand that dies here, if nothing else refers to it, or new memory."""
        fits = [one for one in self.releases if one.dtype.itemsize == t.dtype.itemsize and one.dims == t.dims
                and one.strides is None and one.order == t.order]  # fmt: skip
        count = low.w.product(t.dims)
        if not fits or (isinstance(count, int) and count < SMALL):
            low.allocate(t)
            return
        old, n = fits[0].n, t.n
        self.releases.append(self.releases.pop(self.releases.index(fits[0])))
        with low.w.block(f"if (b{old} && b{old}->rc == 1 && b{old}->src < 0 && (char *)p{old} == b{old}->data && "
                         f"b{old}->size == ({count}) * {t.dtype.itemsize})"):  # fmt: skip
            low.w.line(f"b{n} = b{old}; b{n}->rc++; p{n} = ({t.ctype} *)b{n}->data; o{n} = ++objects;")
        with low.w.block("else"):
            low.allocate(t)

    def _strides(self, low: Lowering, t: Tensor) -> tuple[Expr, ...]:
        """A stride for each dimension of the space: 0 where the operand is broadcast."""
        missing = len(self.dims) - t.rank
        own = low.strides(t)
        found: list[Expr] = [0] * missing
        for dim in range(t.rank):
            broadcast = t.dims[dim] == 1 and self.dims[missing + dim] != 1
            found.append(0 if broadcast else own[dim])
        return tuple(found)

    def _loops(self, low: Lowering, strides: list[tuple[Expr, ...]]) -> list[_Loop]:
        """The loops from the outermost. Neighbours are joined where all operands allow."""
        loops: list[_Loop] = []
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
                    loops[-1] = _Loop(low.w.arith("*", before.count, count), inner, dim)
                    continue
            loops.append(_Loop(count, inner, dim))
        return loops


@dataclass
class _Loop:
    """How often, each operand's stride, and the last dimension of the space that it goes over."""

    count: Expr
    strides: list[Expr]
    last: int
