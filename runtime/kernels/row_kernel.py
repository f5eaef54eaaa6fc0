"""A kernel that goes over rows, open for more: what is computed one after another on the same rows is one kernel.

    x + y                     for each row i, by one block:     { u = x + y; stored }
    layer_norm(...)                                             { sum, mean, squares, ...; stored }
    gelu(...)                                                   { g = gelu(...); stored }

A stage reads what stages before it stored, of its own row only: between them the threads of the block wait for each
other. What another row would have is read in a kernel of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from runtime.kernels.text import KernelWriter
from runtime.native.nest import Nest
from runtime.native.values import Expr, Tensor, Value, identity

if TYPE_CHECKING:
    from runtime.kernels.lowering import KernelLowering


@dataclass
class RowKernel:
    """The rows of a space: its last ``tail`` dimensions. written: the strides of what is stored, along the space."""

    w: KernelWriter
    dims: tuple[Expr, ...]
    tail: int
    rows: Expr
    n: Expr
    written: dict[int, tuple[Expr, ...]] = field(default_factory=dict)
    releases: list[Value] = field(default_factory=list)
    """What is given back when it has been launched."""
    stages: int = 0

    def may_read(self, n: int, strides: tuple[Expr, ...]) -> bool:
        """Whether a tensor read with these strides is of the same row, where a stage has stored it."""
        own = self.written.get(n)
        outer = range(len(self.dims) - self.tail)
        return own is None or all(own[dim] == strides[dim] for dim in outer if self.dims[dim] != 1)

    def begin(self) -> None:
        """A stage begins."""
        if self.stages:
            self.w.line("__syncthreads();")
        self.stages += 1
        self.w.line("{")
        self.w.indent += 1

    def end(self) -> None:
        """A stage is written."""
        self.w.indent -= 1
        self.w.line("}")


def opened(low: KernelLowering, dims: tuple[Expr, ...], tail: int) -> RowKernel:
    """The open kernel if it goes over these rows, or a new one; another is closed."""
    if low.rows is not None and (low.rows.dims, low.rows.tail) == (dims, tail):
        return low.rows
    low.close()
    host = low.host
    stay = len(dims) - tail
    rows, n = host.product(dims[:stay]), host.product(dims[stay:])
    low.rows = RowKernel(KernelWriter(host), dims, tail, rows, n)
    low.rows.w.line(f"for (i64 i = blockIdx.x; i < {rows}; i += gridDim.x) {{")
    low.rows.w.indent += 1
    return low.rows


def tail_of(low: KernelLowering, dims: tuple[Expr, ...], n: Expr) -> int | None:
    """How many of the last dimensions a row of so many elements is; None if that is not certain."""
    places = range(1, len(dims) + 1)
    if low.rows is not None and low.rows.dims == dims and low.rows.n == n:
        return low.rows.tail
    return next((tail for tail in places if low.host.product(dims[len(dims) - tail :]) == n), None)


def along(low: KernelLowering, kernel: RowKernel, t: Tensor) -> tuple[Expr, ...]:
    """A tensor's strides along the dimensions of the rows' space."""
    return Nest(kernel.dims, identity(len(kernel.dims))).strides(low, t)


__all__ = ["RowKernel", "along", "opened", "tail_of"]
