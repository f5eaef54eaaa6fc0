"""From Operators to kernels and the Python that launches them: the generator of ``runtime.native`` for another machine.

The rules are those of C (``rules`` says which); what they ask of ``Lowering`` is answered here for a device: memory is
PyTorch's, sizes are computed in Python, a nest or a row becomes a kernel. A region is straight: no branches and loops.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import torch

from runtime.ir import Operand, Operator, ScalarType, TensorType, Variable
from runtime.kernels import nest_in_cuda
from runtime.kernels.row_kernel import RowKernel
from runtime.kernels.rows_in_cuda import TOGETHER, BlockRows, add_up, pointer
from runtime.kernels.text import HostWriter, Kernel, KernelWriter, Kind, kernel
from runtime.native.layout import Layout
from runtime.native.lowering import Lowering, Rule
from runtime.native.nest import Nest
from runtime.native.outer import Input
from runtime.native.target import RowLoops, Target
from runtime.native.values import CTYPES, HALVES, NUMBERS, Expr, Items, Number, Tensor, Unsupported, Value, identity
from runtime.native.writer import Writer

CUDA = Target(
    registers=False, wide_sums=False, rounds_addends=False, divides_by_numbers=False,
    more_roundings=frozenset((name, dtype) for name in ("sigmoid_backward", "tanh_backward") for dtype in HALVES),
    halves_in_rows=True, rereads_rows=False,
)  # fmt: skip
"""PyTorch's kernels for CUDA, as their source has it."""

RULES: dict[str, Rule] = {}
"""How an Operator becomes part of a kernel, by name: ``rules.py`` fills it."""
OF_HALVES: set[str] = set()
"""Operators whose kernels are right for floats of 16 bits."""


@dataclass
class KernelLowering(Lowering):
    """The generator of one region of kernels."""

    w: Writer = field(default_factory=HostWriter)
    rules: Mapping[str, Rule] = field(default_factory=lambda: RULES)
    target: Target = CUDA
    row: RowLoops = field(default_factory=BlockRows)
    write_nest: Callable[[Lowering, Nest], None] = nest_in_cuda.write_nest
    placed: Mapping[Variable, Layout] = field(default_factory=dict)
    """The arguments that do not lie row after row."""
    kernels: list[Kernel] = field(default_factory=list)
    dtypes: dict[str, torch.dtype] = field(default_factory=dict)
    """The names of dtypes in the host's text."""
    allocations: dict[int, tuple[int, str]] = field(default_factory=dict)
    """Where in the host's text memory is made, and how."""
    unwritten: dict[int, Tensor] = field(default_factory=dict)
    """New memory that no kernel has written."""
    rows: RowKernel | None = None
    """The kernel that goes over rows and may go on."""
    of_halves: dict[str, str] = field(default_factory=dict)
    """Pointers to floats of 16 bits, and the class of their rows."""

    @property
    def host(self) -> HostWriter:
        """The host's text. While a kernel is written, ``w`` is that kernel's."""
        assert isinstance(self.w, HostWriter)
        return self.w

    # -- arguments -----------------------------------------------------------------------------------------------

    def value(self, operand: Operand) -> Value:
        """An operand; a Variable from outside becomes an argument of the region."""
        if isinstance(operand, Variable) and operand not in self.values and operand in self.outer:
            made = self._argument(operand)
            if made is not None:
                self.inputs.append(made)
                self.values[operand] = made.value
        return super().value(operand)

    def _argument(self, var: Variable) -> Input | None:
        type_ = var.type
        if isinstance(type_, ScalarType) and type_.kind in NUMBERS:
            return Input(var, type_.kind, Number(type_.kind, self.w.local(NUMBERS[type_.kind], "n")))
        if not isinstance(type_, TensorType) or type_.dtype not in CTYPES or type_.shape is None:
            return None
        if type_.device is not None and type_.device.type != "cuda":
            return None
        t = self.blank(type_.dtype, ())
        dims: list[Expr] = []
        new: set[str] = set()
        for place, dim in enumerate(type_.shape):
            known: Expr | None = dim if isinstance(dim, int) else self.symbols.get(dim)
            if known is None:
                known = self.symbols[str(dim)] = f"d{t.n}_{place}"
                self.w.declare("i64", known)
                new.add(known)
            dims.append(known)
        t.dims, t.order, t.mine = tuple(dims), identity(len(dims)), False
        layout = self.placed.get(var)
        if layout is not None:
            t.order = layout.order
            strides = tuple(f"s{t.n}_{place}" for place in range(len(dims)))
            for one in strides:
                self.w.declare("i64", one)
            t.strides = strides
        return Input(var, "tensor", t, tuple(dims), new)

    # -- memory --------------------------------------------------------------------------------------------------

    def blank(self, dtype: torch.dtype | None, dims: Sequence[Expr]) -> Tensor:
        """A tensor without memory yet."""
        made = super().blank(dtype, dims)
        if made.dtype in HALVES:
            self.of_halves[f"p{made.n}"] = pointer(made).strip()
        return made

    def allocate(self, t: Tensor) -> Tensor:
        """Memory of PyTorch's, with the strides that PyTorch's operator would give it."""
        name = str(t.dtype).removeprefix("torch.")
        self.dtypes[name] = t.dtype
        sizes = f"({''.join(f'{dim}, ' for dim in t.dims)})"
        if t.straight:
            text = f"empty({sizes}, dtype={name}, device=device)"
        else:
            strides = f"({''.join(f'{one}, ' for one in self.strides(t))})"
            text = f"empty_strided({sizes}, {strides}, dtype={name}, device=device)"
        self.allocations[t.n] = (len(self.host.lines), text)
        self.host.line(f"p{t.n} = {text}")
        self.unwritten[t.n] = t
        return t

    def memory(self, t: Tensor) -> Tensor:
        """The same tensor, in memory."""
        if t.pending:
            self.flush()
        return t

    def view(self, t: Tensor, dims: Sequence[Expr], strides: Sequence[Expr] | None, offset: Expr = 0,
             order: Sequence[int] | None = None, *, detached: bool = False) -> Tensor:  # fmt: skip
        """Errors raised: Unsupported; views are Python's."""
        raise Unsupported("a view")

    def same(self, t: Tensor) -> Tensor:
        """Errors raised: Unsupported; the very same object is Python's."""
        raise Unsupported("the same object")

    def copy(self, to: Tensor, source: Tensor) -> None:
        """Errors raised: Unsupported."""
        raise Unsupported("a copy")

    def release(self, value: Value) -> None:
        """Nothing reads it any more: what was not computed yet is never stored, what is there is given back."""
        if isinstance(value, Items) or not isinstance(value, Tensor) or not value.mine:
            return
        if not value.pending:
            if self.nest is not None and self.nest.reads(value):
                self.nest.releases.append(value)
            elif self.rows is not None:
                self.rows.releases.append(value)
            else:
                self.w.line(f"p{value.n} = None")
        elif self.nest is not None and self.nest.holds(value):
            self.nest.forget(value)
        elif self.nest is not None:
            self.nest.releases.append(value)

    def drop(self, variables: Iterable[Variable]) -> None:
        """Values that are dead give up their memory."""
        for var in dict.fromkeys(variables):
            value = self.values.get(var)
            if value is not None and var not in self.live.pinned:
                self.release(value)

    # -- the walk ------------------------------------------------------------------------------------------------

    def operator(self, op: Operator) -> None:
        """One Operator, and the end of what it was the last to read. Errors raised: Unsupported."""
        rule = self.rules.get(op.name)
        if rule is None or op.blocks:
            raise Unsupported(op.name)
        types = [var.type for var in (*op.inputs, *op.outputs)]
        if len({one.device for one in types if isinstance(one, TensorType)}) > 1:
            raise Unsupported("tensors of several devices")
        if op.name not in OF_HALVES and any(isinstance(one, TensorType) and one.dtype in HALVES for one in types):
            raise Unsupported("floats of 16 bits")
        rule(self, op)
        self.in_c[id(op)] = op.name
        self.drop([*self.live.dying[id(op)], *self.live.unread[id(op)]])

    def close(self) -> None:
        """Launch the kernel that goes over rows."""
        kernel, self.rows = self.rows, None
        if kernel is None:
            return
        for number, one in kernel.at_home().items():
            if not one.kept:  # memory only where the block's own does not suffice
                place, text = self.allocations[number]
                self.host.lines[place] = ""
                self.host.line(f"p{number} = None if {one.space.fits(kernel.n)} else {text}")
        shared = kernel.finish()
        self.w.line(f"if is_long({kernel.rows}, {kernel.n}): return None")
        self.launch("sums" if kernel.columns else "rows", kernel.w, kernel.rows, kernel.n,
                    {f"p{n}" for n in kernel.written}, shared)  # fmt: skip
        for begin in range(0, len(kernel.columns), TOGETHER):
            add_up(self, kernel.columns[begin : begin + TOGETHER], kernel.columns[0].part.dims[0], kernel.n)
        for column in kernel.columns:
            self.release(column.part)
        for value in kernel.releases:
            self.release(value)

    def launch(self, kind: Kind, body: KernelWriter, count: Expr, width: Expr, written: set[str],
               shared: tuple[int, ...] = ()) -> None:  # fmt: skip
        """A kernel, and the line that launches it. count: elements or rows; width: how long a row is; shared: see
        ``Kernel``."""
        name = f"k{len(self.kernels)}"
        made = kernel(self.host, name, kind, body, written, shared)
        self.kernels.append(made)
        for one in written:
            self.unwritten.pop(int(one[1:]), None)
        self.w.line(f"{name.upper()}({', '.join([str(count), str(width), *made.parameters])})")


__all__ = ["CUDA", "OF_HALVES", "RULES", "KernelLowering"]
