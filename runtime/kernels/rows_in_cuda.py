"""Rows as a kernel: a block a row, its threads side by side along the row.

    for (i64 i = blockIdx.x; i < rows; i += gridDim.x) {
        float sum = 0;
        for (i64 j = threadIdx.x; j < n; j += blockDim.x) { sum += x[j]; }
        sum = block_join<join_add>(sum);
        ...
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch

from runtime.kernels.prelude import JOINS
from runtime.kernels.row_kernel import Column, along, opened, tail_of
from runtime.kernels.text import UNROLL, KernelWriter
from runtime.native.lowering import Lowering
from runtime.native.target import Columns, Joins, RowLoops, computed
from runtime.native.values import HALVES, Expr, Tensor, Unsupported, identity

if TYPE_CHECKING:
    from runtime.kernels.lowering import KernelLowering

WIDTH = 32
"""Columns of a block that sums down columns."""
PARTS = 32
"""How many of its warps share a column."""
TOGETHER = 4
"""Sums that one kernel ends: of doubles, they take 32 KB of a block's memory."""


def pointer(t: Tensor) -> str:
    """The type of what points to a row: floats of 16 bits are read and written as floats of 32."""
    return f"{HALVES[t.dtype]}_row " if t.dtype in HALVES else f"{t.ctype} *"


def _with_rows_of_halves(low: KernelLowering, lines: list[str]) -> list[str]:
    """Lines in which pointers to floats of 16 bits are rows that are read and written as floats."""
    text = "\n".join(lines)
    names = sorted(name for name in set(re.findall(r"\bp\d+\b", text)) if name in low.of_halves)
    for name in names:
        text = re.sub(rf"\b{name}\b", f"h{name[1:]}", text)
    return [*(f"      const {low.of_halves[name]} h{name[1:]} = {{(uint16_t *){name}}};" for name in names),
            *text.split("\n")]  # fmt: skip


def _begin_row(w: KernelWriter, n: Expr, tensors: Sequence[tuple[str, Tensor]], written: set[str]) -> None:
    for name, t in tensors:
        const = "" if f"p{t.n}" in written or t.dtype in HALVES else "const "
        w.line(f"{const}{pointer(t)}{name} = p{t.n} + i * {n};")


class BlockRows(RowLoops):
    """A block a row, in a kernel that may go on with more of the same rows."""

    def __init__(self) -> None:
        self.read: list[Tensor] = []
        """The operands of the rule that is being written."""
        self.down: list[Column] = []
        """The sums down columns that are begun in the next rows."""

    def given(self, low: Lowering, tensors: Sequence[Tensor]) -> list[Tensor]:
        """Operands; those that stand in a nest are computed in the same kernel, before."""
        self.read += tensors
        return list(tensors)

    @contextmanager
    def each(self, low: Lowering, rows: Expr, n: Expr, *tensors: tuple[str, Tensor], apart: bool = True
             ) -> Iterator[None]:  # fmt: skip
        """A stage; what is written meanwhile is what a block does with row ``i``."""
        made: KernelLowering = low  # type: ignore[assignment]  # who uses these rows
        dims = tensors[0][1].dims
        tail = tail_of(made, dims, n)
        if tail is None:
            raise Unsupported("rows that are not the last dimensions")
        if made.nest is not None and made.nest.dims == dims and made.nest.order == identity(len(dims)):
            opened(made, dims, tail)  # the nest becomes a stage of it
        made.flush()
        kernel = opened(made, dims, tail)
        if any(kernel.sums(t.n) or (t.n in kernel.written and t.dims != dims and made.host.product(t.dims) != rows)
               for t in self.read):  # fmt: skip
            made.close()
            kernel = opened(made, dims, tail)
        self.read = []
        kernel.columns += self.down
        self.down = []
        for t in made.unwritten.values():
            strides = along(made, kernel, t) if t.dims == dims else (1,) * len(dims)
            kernel.writes(t, strides, kernel.stages + 1)
        written = {f"p{number}" for number in kernel.written}
        made.unwritten.clear()
        kernel.begin()
        made.w, host = kernel.w, made.host
        start = len(kernel.w.lines)
        _begin_row(kernel.w, n, tensors, written)
        yield
        kernel.w.lines[start:] = _with_rows_of_halves(made, kernel.w.lines[start:])
        made.w = host
        kernel.end()

    def fold(self, low: Lowering, n: Expr, joins: Joins, step: str) -> None:
        """What each thread folds, and then all threads of the block together."""
        self.map(low, n, step)
        for sign, name in joins:
            low.w.line(f"{name} = block_join<{JOINS[sign]}>({name});")

    def map(self, low: Lowering, n: Expr, step: str) -> None:
        """Something for each element, one after another for a thread."""
        low.w.line(UNROLL)
        low.w.line(f"for (i64 j = threadIdx.x; j < {n}; j += blockDim.x) {{ {step} }}")

    def once(self, low: Lowering, text: str) -> None:
        """The first thread stores it."""
        low.w.line(f"if (threadIdx.x == 0) {{ {text} }}")

    def columns(self, low: Lowering, rows: Expr, n: Expr, tensors: Sequence[tuple[str, Tensor]], head: str,
                sums: Sequence[tuple[Tensor, str]]) -> Columns:  # fmt: skip
        """Each block adds up its own rows, in the kernel that goes over them; a second one what the blocks have."""
        made: KernelLowering = low  # type: ignore[assignment]  # who uses these rows
        if sums:
            count = made.host.local("i64", "z")
            made.host.line(f"{count} = parts({rows})")
        steps = []
        for to, step in sums:
            wide = torch.float64 if low.target.sums(to.dtype) == "double" else torch.float32
            column = Column(low.fresh(wide, (count, n)), to)
            self.down.append(column)
            steps.append(f"c{column.part.n}[j] += {step};")
        return Columns(steps, lambda: None)


def add_up(low: KernelLowering, columns: Sequence[Column], rows: Expr, n: Expr) -> None:
    """The kernel that adds up what blocks have: a block a few columns, a warp a part of the blocks."""
    w = KernelWriter(low.host)
    for place, one in enumerate(columns):
        w.line(f"__shared__ {one.part.ctype} parts{place}[{PARTS}][{WIDTH}];")
    w.line(f"const int lane = threadIdx.x % {WIDTH}, warp = threadIdx.x / {WIDTH};")
    w.line(f"for (i64 base = (i64)blockIdx.x * {WIDTH}; base < {n}; base += (i64)gridDim.x * {WIDTH}) {{")
    w.indent += 1
    w.line("const i64 j = base + lane;")
    for place, one in enumerate(columns):
        w.line(f"{one.part.ctype} total{place} = 0;")
    w.line(f"if (j < {n}) {{")
    w.line(f"  {UNROLL}")
    w.line(f"  for (i64 i = warp; i < {rows}; i += {PARTS}) {{")
    for place, one in enumerate(columns):
        w.line(f"    total{place} += p{one.part.n}[i * {n} + j];")
    w.line("  }")
    w.line("}")
    for place in range(len(columns)):
        w.line(f"parts{place}[warp][lane] = total{place};")
    w.line("__syncthreads();")
    w.line(f"if (warp == 0 && j < {n}) {{")
    for place, one in enumerate(columns):
        w.line(f"  for (int k = 1; k < {PARTS}; k++) total{place} += parts{place}[k][lane];")
        w.line(f"  p{one.to.n}[j] = ({computed(one.to)})total{place};")
    w.line("}")
    w.line("__syncthreads();")
    w.indent -= 1
    w.line("}")
    w.lines = _with_rows_of_halves(low, w.lines)
    low.launch("columns", w, rows, n, {f"p{one.to.n}" for one in columns})


__all__ = ["PARTS", "TOGETHER", "WIDTH", "BlockRows", "add_up"]
