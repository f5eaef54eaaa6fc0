"""A kernel that goes over rows, open for more: what is computed one after another on the same rows is one kernel.

    x + y                     for each row i, by one block:     { u = x + y; stored }
    layer_norm(...)                                             { sum, mean, squares, ...; stored }
    gelu(...)                                                   { g = gelu(...); stored }

A stage reads what stages before it stored, of its own row only: between them the threads of the block wait for each
other. What another row would have is read in a kernel of its own.

What only stages of the kernel read is never stored where rows are short: it stays in the memory that the block's
threads share (``at_home``). Sums down the columns are begun there, too: a block adds up its own rows, and a second
kernel what the blocks have.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from runtime.kernels.text import KernelWriter
from runtime.native.nest import Nest
from runtime.native.values import Expr, Tensor, Value, identity

if TYPE_CHECKING:
    from runtime.kernels.lowering import KernelLowering

SHARED = 40 << 10
"""Bytes of a block's own memory that rows may have: with what joins need it is less than every device has."""


@dataclass(frozen=True)
class Column:
    """A sum down each column. part: what each block has, a row a block; to: the whole sums, once all have."""

    part: Tensor
    to: Tensor


@dataclass(frozen=True)
class RowSpace:
    """Room for a row in a block's own memory, in bytes for each element of a row. before: what lies before it."""

    before: int
    size: int

    @property
    def end(self) -> int:
        """Bytes for each element of a row, up to the end of this one."""
        return self.before + self.size

    def fits(self, n: Expr) -> str:
        """Whether there is room, in words that C and Python have in common."""
        return f"{n} * {self.end} <= {SHARED}"


@dataclass(frozen=True)
class Home:
    """A row that stays in a block's own memory. kept: whether it is read outside of the kernel, too."""

    tensor: Tensor
    space: RowSpace
    kept: bool


@dataclass
class RowKernel:
    """The rows of a space: its last ``tail`` dimensions."""

    w: KernelWriter
    dims: tuple[Expr, ...]
    tail: int
    rows: Expr
    n: Expr
    written: dict[int, tuple[Expr, ...]] = field(default_factory=dict)
    """The strides of what is stored, along the space."""
    since: dict[int, int] = field(default_factory=dict)
    """The stage that stores it."""
    releases: list[Value] = field(default_factory=list)
    """What is given back when it has been launched."""
    columns: list[Column] = field(default_factory=list)
    stages: int = 0
    ends: list[int] = field(default_factory=list)
    """Where in the text each stage ends."""
    stored: dict[int, Tensor] = field(default_factory=dict)
    """What stages store, by its number."""

    def writes(self, t: Tensor, strides: tuple[Expr, ...], stage: int) -> None:
        """A stage stores a tensor."""
        self.written[t.n], self.stored[t.n] = strides, t
        self.since.setdefault(t.n, stage)

    def may_read(self, n: int, strides: tuple[Expr, ...]) -> bool:
        """Whether a tensor read with these strides is of the same row, where a stage has stored it."""
        if self.sums(n):
            return False
        own = self.written.get(n)
        outer = range(len(self.dims) - self.tail)
        return own is None or all(own[dim] == strides[dim] for dim in outer if self.dims[dim] != 1)

    def sums(self, n: int) -> bool:
        """Whether a tensor is there only when the kernel has ended."""
        return any(n == one.to.n for one in self.columns)

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
        self.ends.append(len(self.w.lines))

    def at_home(self) -> dict[int, Home]:
        """Whole rows that stages store and later ones read, and where each is: two share a place if the last stage that
        reads one comes before the first that stores the other."""
        base = sum(_size(one.part) for one in self.columns)
        dead = {value.n for value in self.releases if isinstance(value, Tensor)}
        found: dict[int, Home] = {}
        until: dict[RowSpace, int] = {}
        for n, t in sorted(self.stored.items(), key=lambda one: (-_size(one[1]), self.since[one[0]])):
            if t.dims != self.dims or not t.straight or t.strides is not None or self.sums(n):
                continue
            since, last = self.since[n], self._last(n)
            if n not in dead and last == since:
                continue
            free = [space for space, end in until.items() if space.size == _size(t) and end < since]
            space = min(free, key=lambda one: one.before) if free else RowSpace(_up(base, _size(t)), _size(t))
            base = max(base, space.end)
            until[space] = last
            found[n] = Home(t, space, n not in dead)
        return found

    def _last(self, n: int) -> int:
        """The last stage that speaks of a tensor."""
        named = re.compile(rf"\bp{n}\b")
        begins = [0, *self.ends]
        return max((stage for stage, (begin, end) in enumerate(zip(begins, self.ends), 1)
                    if any(named.search(line) for line in self.w.lines[begin:end])), default=self.since[n])  # fmt: skip

    def finish(self) -> tuple[int, ...]:
        """Write the loop's end, and what comes before and after it. How many bytes for each element of a row there may
        be in the block's own memory: as many as fit."""
        w, n = self.w, self.n
        home = self.at_home()
        bodies: list[str] = []
        for stage, (begin, end) in enumerate(zip([0, *self.ends], self.ends), 1):
            bodies += [re.sub(r"\bp(\d+)\b", lambda one: f"r{one[1]}" if int(one[1]) in home else one[0], line)
                       for line in w.lines[begin:end]]  # fmt: skip
            for number, one in home.items():
                if one.kept and self.since[number] == stage:  # by the very threads that made it
                    bodies.append(f"    if ({one.space.fits(n)}) {_each(n)} p{number}[i * {n} + j] = "
                                  f"r{number}[i * {n} + j];")  # fmt: skip
        rows = [f"    {_pointer(w, one.tensor)}const r{number} = {one.space.fits(n)} ? "
                f"{_own(w, one.tensor, one.space, n)} - i * {n} : p{number};"
                for number, one in home.items()]  # fmt: skip
        first, last, spaces = [], [], [one.space for one in home.values()]
        before = 0
        for column in self.columns:
            number, space = column.part.n, RowSpace(before, _size(column.part))
            before = space.end
            spaces.append(space)
            first += [f"  {_pointer(w, column.part)}const c{number} = {space.fits(n)} ? "
                      f"{_own(w, column.part, space, n)} : p{number} + (i64)blockIdx.x * {n};",
                      f"  {_each(n)} c{number}[j] = 0;"]  # fmt: skip
            last.append(f"  if ({space.fits(n)}) {_each(n)} p{number}[(i64)blockIdx.x * {n} + j] = c{number}[j];")
        ends = ["    __syncthreads();"] if home else []  # the next row takes the same places
        w.lines = [*first, f"  for (i64 i = blockIdx.x; i < {self.rows}; i += gridDim.x) {{", *rows, *bodies, *ends,
                   "  }", *last]  # fmt: skip
        return tuple(sorted({space.end for space in spaces}))


def _each(n: Expr) -> str:
    """Something for each element of a row, in the same threads as ever."""
    return f"for (i64 j = threadIdx.x; j < {n}; j += blockDim.x)"


def _up(count: int, size: int) -> int:
    return -(-count // size) * size


def _size(t: Tensor) -> int:
    return t.dtype.itemsize


def _pointer(w: KernelWriter, t: Tensor) -> str:
    return w.host.types[f"p{t.n}"]


def _own(w: KernelWriter, t: Tensor, space: RowSpace, n: Expr) -> str:
    return f"({_pointer(w, t).strip()})((char *)d2s_rows + {n} * {space.before})"


def opened(low: KernelLowering, dims: tuple[Expr, ...], tail: int) -> RowKernel:
    """The open kernel if it goes over these rows, or a new one; another is closed."""
    if low.rows is not None and (low.rows.dims, low.rows.tail) == (dims, tail):
        return low.rows
    low.close()
    host = low.host
    stay = len(dims) - tail
    rows, n = host.product(dims[:stay]), host.product(dims[stay:])
    low.rows = RowKernel(KernelWriter(host), dims, tail, rows, n)
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


__all__ = ["SHARED", "Column", "RowKernel", "RowSpace", "along", "opened", "tail_of"]
