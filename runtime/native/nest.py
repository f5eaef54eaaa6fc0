"""Loop nests: operators on elements that share one iteration space, in one pass over memory.

    %a = exp(%x); %b = add(%a, %bias)      ->      for (i0 ...) for (i1 ...) { e7 = m_exp_f(x3); p8[...] = e7 + x4; }

A nest is *pending* until something else needs its memory; a value that dies before then is never stored.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from runtime.native.values import Expr, Tensor

if TYPE_CHECKING:
    from runtime.native.lowering import Lowering

MOST = 64
"""Operators in one nest."""


@dataclass
class _Step:
    """One element computed: ``ctype e = text``; where it is stored, unless it died first."""

    tensor: Tensor
    text: str
    stored: bool = True
    target: Tensor | None = None


@dataclass
class Nest:
    """The loops over ``dims``, the outermost dimension first in ``order``."""

    dims: tuple[Expr, ...]
    order: tuple[int, ...]
    steps: list[_Step] = field(default_factory=list)
    loads: dict[int, Tensor] = field(default_factory=dict)
    releases: list[Tensor] = field(default_factory=list)

    def reads(self, t: Tensor) -> bool:
        """Whether a tensor's memory is read by what is pending."""
        return t.n in self.loads

    def holds(self, t: Tensor) -> bool:
        """Whether a tensor is computed here."""
        return any(step.tensor is t for step in self.steps)

    def load(self, low: Lowering, t: Tensor) -> str:
        """The element of an operand."""
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
                low.allocate(step.tensor)
        stored = {step.tensor.n: step.tensor for step in self.steps if step.stored}
        operands = list({**self.loads, **stored}.values())  # what is updated is read and written
        strides = {t.n: self._strides(low, t) for t in operands}
        loops = self._loops(low, [strides[t.n] for t in operands])
        depth = w.indent
        places: dict[int, list[str]] = {t.n: [] for t in operands}
        with w.block(""):
            for level, (dim, pieces) in enumerate(loops):
                if level == len(loops) - 1:
                    w.line("#pragma GCC ivdep")
                w.line(f"for (i64 i{level} = 0; i{level} < {dim}; i{level}++) {{")
                w.indent += 1
                for t, stride in zip(operands, pieces):
                    if stride != 0:
                        places[t.n].append(f"i{level}" if stride == 1 else f"i{level} * {stride}")
            for t in self.loads.values():
                w.line(f"const {t.ctype} x{t.n} = p{t.n}[{' + '.join(places[t.n]) or '0'}];")
            for step in self.steps:
                w.line(f"const {step.tensor.ctype} e{step.tensor.n} = {step.text};")
                if step.stored:
                    w.line(f"p{step.tensor.n}[{' + '.join(places[step.tensor.n]) or '0'}] = e{step.tensor.n};")
            for _ in loops:
                w.indent -= 1
                w.line("}")
        assert w.indent == depth
        for t in self.releases:
            low.release(t)

    def _strides(self, low: Lowering, t: Tensor) -> tuple[Expr, ...]:
        """A stride for each dimension of the space: 0 where the operand is broadcast."""
        missing = len(self.dims) - t.rank
        own = low.strides(t)
        found: list[Expr] = [0] * missing
        for dim in range(t.rank):
            broadcast = t.dims[dim] == 1 and self.dims[missing + dim] != 1
            found.append(0 if broadcast else own[dim])
        return tuple(found)

    def _loops(self, low: Lowering, strides: list[tuple[Expr, ...]]) -> list[tuple[Expr, list[Expr]]]:
        """The loops from the outermost: how often, and each operand's stride. Neighbours are joined where all allow."""
        loops: list[tuple[Expr, list[Expr]]] = []
        for dim in self.order:
            count = self.dims[dim]
            if count == 1:
                continue
            inner = [one[dim] for one in strides]
            if loops:
                outer_count, outer = loops[-1]
                if all(
                    (a == 0 and b == 0) or (b != 0 and a == low.w.arith("*", count, b)) for a, b in zip(outer, inner)
                ):
                    loops[-1] = (low.w.arith("*", outer_count, count), inner)
                    continue
            loops.append((count, inner))
        return loops
