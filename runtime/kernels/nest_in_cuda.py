"""A nest as a kernel: a thread an element, or a block a row where something is folded.

    for (INDEX at = ...; at < total; at += ...) {           the numbers of the loops come from one number
        const i64 i1 = rest0 % 8; ...
        const float x3 = p3[i0 * 8 + i1];
        const float e7 = m_exp_f(x3);
        p7[i0 * 8 + i1] = e7;
    }
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime.kernels.prelude import JOINS
from runtime.kernels.text import KernelWriter, indices
from runtime.native.lowering import Lowering
from runtime.native.nest import Nest
from runtime.native.values import Expr, Unsupported

if TYPE_CHECKING:
    from runtime.kernels.lowering import KernelLowering


def write_nest(made: Lowering, nest: Nest) -> None:
    """The kernel, and its launch."""
    low: KernelLowering = made  # type: ignore[assignment]  # whose nests these are
    if any(step.target is not None for step in nest.steps):
        raise Unsupported("a write into memory that there was")
    nest.settle()
    for step in nest.steps:
        if step.stored:
            low.allocate(step.tensor)
    host = low.host
    operands = nest.operands(low)
    spans = nest.spans(low, [strides for _, strides in operands.values()])
    outer = sum(1 for span in spans if span.last < len(nest.dims) - nest.tail) if nest.folds else len(spans)
    counts: list[Expr] = [span.count for span in spans]
    rows, n = host.product(tuple(counts[:outer])), host.product(tuple(counts[outer:]))
    places: dict[int, str] = {}
    for place, number in enumerate(operands):
        moves = [(f"i{level}", span.strides[place]) for level, span in enumerate(spans) if span.strides[place] != 0]
        places[number] = " + ".join(name if stride == 1 else f"{name} * {stride}" for name, stride in moves) or "0"
    w = KernelWriter(host)
    if nest.folds:
        w.line(f"for (i64 row = blockIdx.x; row < {rows}; row += gridDim.x) {{")
        w.lines += ["    " + line for line in indices("row", counts[:outer], 0)]
        for fold in nest.folds:
            w.line(f"  {fold.first};")
        w.line(f"for (INDEX at = threadIdx.x; at < {n}; at += blockDim.x) {{")
    else:
        w.line("const INDEX step = (INDEX)gridDim.x * blockDim.x;")
        w.line(f"for (INDEX at = (INDEX)blockIdx.x * blockDim.x + threadIdx.x; at < {rows}; at += step) {{")
    w.indent += 1
    for line in indices("at", counts[outer:] if nest.folds else counts, outer if nest.folds else 0):
        w.line(line)
    for t in nest.loads.values():
        w.line(f"const {t.ctype} x{t.n} = p{t.n}[{places[t.n]}];")
    for step in nest.steps:
        t = step.tensor
        w.line(f"const {t.ctype} e{t.n} = {step.text};")
        if step.stored:
            w.line(f"p{t.n}[{places[t.n]}] = e{t.n};")
    for fold in nest.folds:
        w.line(fold.text)
    w.indent -= 1
    w.line("}")
    written = {f"p{step.tensor.n}" for step in nest.steps if step.stored}
    if nest.folds:
        for fold in nest.folds:
            for sign, name in fold.joins:
                w.line(f"  {name} = block_join<{JOINS[sign]}>({name});")
            w.line(f"  if (threadIdx.x == 0) p{fold.to.n}[{places[fold.to.n]}] = ({fold.to.ctype})({fold.result});")
            written.add(f"p{fold.to.n}")
        w.line("}")
    low.launch("rows" if nest.folds else "elements", w, rows, n if nest.folds else 1, written)
    for one in nest.releases:
        low.release(one)


__all__ = ["write_nest"]
