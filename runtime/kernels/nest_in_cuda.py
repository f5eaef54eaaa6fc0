"""A nest as a kernel: a thread an element, or a block a row where something is folded, or was on the same rows.

    for (INDEX at = ...; at < total; at += ...) {           the numbers of the loops come from one number
        const i64 i1 = rest0 % 8; ...
        const float x3 = p3[i0 * 8 + i1];
        const float e7 = m_exp_f(x3);
        p7[i0 * 8 + i1] = e7;
    }
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from runtime.kernels.prelude import JOINS
from runtime.kernels.row_kernel import RowKernel, opened
from runtime.kernels.text import UNROLL, KernelWriter, indices
from runtime.native.lowering import Lowering
from runtime.native.nest import Nest, Span
from runtime.native.values import Expr, Tensor, Unsupported, identity

if TYPE_CHECKING:
    from runtime.kernels.lowering import KernelLowering

Operands = dict[int, tuple[Tensor, tuple[Expr, ...]]]


def write_nest(made: Lowering, nest: Nest) -> None:
    """The kernel, or a stage of one that goes over rows."""
    low: KernelLowering = made  # type: ignore[assignment]  # whose nests these are
    if any(step.target is not None for step in nest.steps):
        raise Unsupported("a write into memory that there was")
    nest.settle()
    for step in nest.steps:
        if step.stored:
            low.allocate(step.tensor)
    if nest.folds:
        stage(low, nest, opened(low, nest.dims, nest.tail))
    elif low.rows is not None and low.rows.dims == nest.dims and nest.order == identity(len(nest.dims)):
        stage(low, nest, low.rows)
    else:
        _elements(low, nest)
    for one in nest.releases:
        low.release(one)


def _elements(low: KernelLowering, nest: Nest) -> None:
    """A thread an element."""
    low.close()
    operands = nest.operands(low)
    spans = nest.spans(low, [strides for _, strides in operands.values()])
    counts: list[Expr] = [span.count for span in spans]
    total = low.host.product(tuple(counts))
    w = KernelWriter(low.host)
    w.line("const INDEX step = (INDEX)gridDim.x * blockDim.x;")
    w.line(f"for (INDEX at = (INDEX)blockIdx.x * blockDim.x + threadIdx.x; at < {total}; at += step) {{")
    w.indent += 1
    for line in indices("at", counts, 0):
        w.line(line)
    _body(nest, w, _places(operands, spans))
    w.indent -= 1
    w.line("}")
    low.launch("elements", w, total, 1, {f"p{step.tensor.n}" for step in nest.steps if step.stored})


def stage(low: KernelLowering, nest: Nest, kernel: RowKernel) -> None:
    """A part of what a block does with row ``i``."""
    before, nest.tail = nest.tail, kernel.tail
    if before not in (0, kernel.tail):
        raise Unsupported("folds of other rows")
    operands = nest.operands(low)
    if not all(kernel.may_read(n, strides) for n, (_, strides) in operands.items()):
        nest.tail = before
        low.close()
        if nest.folds:
            stage(low, nest, opened(low, nest.dims, nest.tail))
        else:
            _elements(low, nest)
        return
    spans = nest.spans(low, [strides for _, strides in operands.values()])
    outer = sum(1 for span in spans if span.last < len(nest.dims) - kernel.tail)
    counts: list[Expr] = [span.count for span in spans]
    places = _places(operands, spans)
    w = kernel.w
    kernel.begin()
    for line in indices("i", counts[:outer], 0):
        w.line(line)
    for fold in nest.folds:
        w.line(f"{fold.first};")
    w.line(UNROLL)
    w.line(f"for (INDEX at = threadIdx.x; at < {kernel.n}; at += blockDim.x) {{")
    w.indent += 1
    for line in indices("at", counts[outer:], outer):
        w.line(line)
    _body(nest, w, places)
    w.indent -= 1
    w.line("}")
    for fold in nest.folds:
        for sign, name in fold.joins:
            w.line(f"{name} = block_join<{JOINS[sign]}>({name});")
        w.line(f"if (threadIdx.x == 0) p{fold.to.n}[{places[fold.to.n]}] = ({fold.to.ctype})({fold.result});")
    kernel.end()
    for t in [*(step.tensor for step in nest.steps if step.stored), *(fold.to for fold in nest.folds)]:
        kernel.writes(t, operands[t.n][1], kernel.stages)
        low.unwritten.pop(t.n, None)


def _places(operands: Operands, spans: Sequence[Span]) -> dict[int, str]:
    """Where each operand's element is, in terms of the loops' numbers."""
    found: dict[int, str] = {}
    for place, number in enumerate(operands):
        moves = [(f"i{level}", span.strides[place]) for level, span in enumerate(spans) if span.strides[place] != 0]
        found[number] = " + ".join(name if stride == 1 else f"{name} * {stride}" for name, stride in moves) or "0"
    return found


def _body(nest: Nest, w: KernelWriter, places: dict[int, str]) -> None:
    """What is done for one element."""
    for t in nest.loads.values():
        w.line(f"const {t.ctype} x{t.n} = p{t.n}[{places[t.n]}];")
    for step in nest.steps:
        t = step.tensor
        w.line(f"const {t.ctype} e{t.n} = {step.text};")
        if step.stored:
            w.line(f"p{t.n}[{places[t.n]}] = e{t.n};")
    for fold in nest.folds:
        w.line(fold.text)


__all__ = ["write_nest"]
