"""What differs between the machines that generated code runs on, in what it computes and in how a row is gone over.

``Target`` has the facts that rules ask for; ``RowLoops`` writes the folds and maps of a row as loops of C.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from runtime.native.values import HALVES, Expr, Tensor

if TYPE_CHECKING:
    from runtime.native.lowering import Lowering

Joins = Sequence[tuple[str, str]]
"""How two halves of a row come together: a sign of C's (or max, min), and the local it is for."""


@dataclass(frozen=True)
class Target:
    """Where PyTorch's kernels differ from one kind of device to another, and so does the code that stands for them."""

    registers: bool
    """Whether a tensor of rank 0 may live in a local between kernels."""
    wide_sums: bool
    """Whether sums of floats are added in double."""
    rounds_addends: bool
    """Whether a number is rounded to 16 bits before it is added to a tensor of such floats."""
    divides_by_numbers: bool
    """Whether ``x / 3.0`` divides; else it is multiplied with what 1 / 3.0 is."""
    more_roundings: frozenset[tuple[str, torch.dtype]]
    """Operators that round more than once in a dtype of 16 bits."""
    halves_in_rows: bool
    """Whether rows may be of floats of 16 bits."""
    rereads_rows: bool
    """Whether what a fold stored in a row is read again, rather than computed twice."""

    device: torch.device | None = None
    """The device of all its tensors, where a conversion to it moves nothing; None: any that is named may be another."""
    copies: bool = False
    """Whether operands that do not lie row after row may be copied."""

    def sums(self, dtype: torch.dtype) -> str:
        """The type that sums of elements are added in."""
        return "double" if self.wide_sums or dtype is torch.float64 else "float"


C = Target(registers=True, wide_sums=True, rounds_addends=True, divides_by_numbers=True,
           more_roundings=frozenset({("sigmoid_backward", torch.float16)}), halves_in_rows=False,
           rereads_rows=True, device=torch.device("cpu"), copies=True)  # fmt: skip
"""PyTorch's kernels for the CPU."""


@dataclass(frozen=True)
class Columns:
    """Sums down the columns of rows. inside: steps that the loop over rows does; finish: what comes after it."""

    inside: Sequence[str]
    finish: Callable[[], None]


GRAIN = 32768
"""Elements from which on threads share a loop, as in PyTorch."""


def shared(elements: Expr) -> str:
    """The clause of OpenMP for a loop over so many elements; nothing where one thread is always quicker.

    >>> shared(1000), shared(1 << 20), shared("n")
    ('', 'if(1)', 'if(n >= 32768)')
    """
    if isinstance(elements, int):
        return "if(1)" if elements >= GRAIN else ""
    return f"if({elements} >= {GRAIN})"


class RowLoops:
    """Rows one after another, each in loops of C that become vectors."""

    def given(self, low: Lowering, tensors: Sequence[Tensor]) -> list[Tensor]:
        """Operands, there when the rows are gone over."""
        found = [low.memory(one) for one in tensors]
        low.flush()
        return found

    @contextmanager
    def each(self, low: Lowering, rows: Expr, n: Expr, *tensors: tuple[str, Tensor], apart: bool = True
             ) -> Iterator[None]:  # fmt: skip
        """A loop over rows ``i``, with a pointer to the row of each tensor. ``apart``: no row writes what another
        does."""
        clause = shared(low.w.arith("*", rows, n)) if apart else ""
        if clause:
            low.w.line(f"#pragma omp parallel for schedule(static) {clause}")
        with low.w.block(f"for (i64 i = 0; i < {rows}; i++)"):
            for name, t in tensors:
                low.w.line(f"{t.ctype} *{name} = p{t.n} + i * {n};")
            yield

    def fold(self, low: Lowering, n: Expr, joins: Joins, step: str) -> None:
        """A fold over the elements ``j`` of a row, into locals that have their first values."""
        clauses = " ".join(f"reduction({sign}:{name})" for sign, name in joins)
        low.w.line(f"#pragma omp simd {clauses}")
        low.w.line(f"for (i64 j = 0; j < {n}; j++) {{ {step} }}")

    def map(self, low: Lowering, n: Expr, step: str) -> None:
        """Something for each element ``j`` of a row."""
        low.w.line("#pragma GCC ivdep")
        low.w.line(f"for (i64 j = 0; j < {n}; j++) {{ {step} }}")

    def once(self, low: Lowering, text: str) -> None:
        """Something that is stored once for the row."""
        low.w.line(text)

    def columns(self, low: Lowering, rows: Expr, n: Expr, tensors: Sequence[tuple[str, Tensor]], head: str,
                sums: Sequence[tuple[Tensor, str]]) -> Columns:  # fmt: skip
        """Sums of a row's elements ``j`` over all rows: tensors, and what is added to each. ``head``: what the
        expressions take for granted of row ``i`` besides the pointers to it."""
        totals = [low.fresh(torch.float64, to.dims) for to, _ in sums]
        for total in totals:
            low.w.line(f"d2s_zero(p{total.n}, {n} * 8);")

        def finish() -> None:
            for total, (to, _) in zip(totals, sums):
                self.map(low, n, f"p{to.n}[j] = ({to.ctype})p{total.n}[j];")
                low.release(total)

        return Columns([f"p{total.n}[j] += {step};" for total, (_, step) in zip(totals, sums)], finish)


def computed(t: Tensor) -> str:
    """The C type that a tensor's elements are computed in."""
    return "float" if t.dtype in HALVES else t.ctype


__all__ = ["C", "Columns", "Joins", "RowLoops", "Target", "computed", "shared"]
