"""A nest as loops of C: what is computed says the nest, here is how C says it.

    {                                                     memory of what is stored is there before
        for (i64 i0 = 0; i0 < d3_0; i0++) {
            double acc9 = 0;                              what is folded begins before the inner loops ...
            for (i64 i1 = 0; i1 < 8; i1++) {
                const float x3 = p3[i0 * 8 + i1];
                const float e7 = m_exp_f(x3);
                acc9 += e7;
            }
            p9[i0] = (float)(acc9);                       ... and is stored after them
        }
    }
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime.native.nest import SMALL, Nest
from runtime.native.target import shared
from runtime.native.values import Tensor

if TYPE_CHECKING:
    from runtime.native.lowering import Lowering


def write_nest(low: Lowering, nest: Nest) -> None:
    """The loops as C."""
    w = low.w
    nest.settle()
    for step in nest.steps:
        if step.stored and step.target is None:
            _allocate(low, nest, step.tensor)
    operands = nest.operands(low)
    spans = nest.spans(low, [strides for _, strides in operands.values()])
    outer = sum(1 for span in spans if span.last < len(nest.dims) - nest.tail)
    depth = w.indent
    parts: dict[int, list[str]] = {n: [] for n in operands}
    parallel = shared(w.product(nest.dims)) if outer else ""
    with w.block(""):
        for level, span in enumerate(spans):
            if level == outer:
                _begin(low, nest)
            if level == 0 and parallel:
                w.line(f"#pragma omp parallel for{' simd' if len(spans) == 1 else ''} schedule(static) {parallel}")
            elif level == len(spans) - 1:
                clauses = " ".join(fold.clause for fold in nest.folds)
                w.line(f"#pragma omp simd {clauses}" if clauses and level >= outer else "#pragma GCC ivdep")
            w.line(f"for (i64 i{level} = 0; i{level} < {span.count}; i{level}++) {{")
            w.indent += 1
            for n, stride in zip(operands, span.strides):
                if stride != 0:
                    parts[n].append(f"i{level}" if stride == 1 else f"i{level} * {stride}")
        if outer == len(spans):
            _begin(low, nest)
        places = {n: " + ".join(found) or "0" for n, found in parts.items()}
        for t in nest.loads.values():
            w.line(f"const {t.ctype} x{t.n} = p{t.n}[{places[t.n]}];")
        for step in nest.steps:
            w.line(f"const {step.tensor.ctype} e{step.tensor.n} = {step.text};")
            if step.stored:
                w.line(f"p{step.tensor.n}[{places[step.tensor.n]}] = e{step.tensor.n};")
        for fold in nest.folds:
            w.line(fold.text)
        for level in reversed(range(len(spans))):
            if level == outer - 1:
                _end(low, nest, places)
            w.indent -= 1
            w.line("}")
        if not outer:
            _end(low, nest, places)
    assert w.indent == depth
    for t in nest.releases:
        low.release(t)


def _begin(low: Lowering, nest: Nest) -> None:
    for fold in nest.folds:
        low.w.line(f"{fold.first};")


def _end(low: Lowering, nest: Nest, places: dict[int, str]) -> None:
    for fold in nest.folds:
        to = fold.to
        low.w.line(f"{to.reg or f'p{to.n}[{places[to.n]}]'} = ({to.ctype})({fold.result});")


def _allocate(low: Lowering, nest: Nest, t: Tensor) -> None:
    """Memory for a result: that of an operand that dies here, if nothing else refers to it, or new memory."""
    fits = [one for one in nest.releases if one.dtype.itemsize == t.dtype.itemsize and one.dims == t.dims
            and one.strides is None and one.order == t.order]  # fmt: skip
    count = low.w.product(t.dims)
    if not fits or (isinstance(count, int) and count < SMALL):
        low.allocate(t)
        return
    old, n = fits[0].n, t.n
    nest.releases.append(nest.releases.pop(nest.releases.index(fits[0])))
    with low.w.block(f"if (b{old} && b{old}->rc == 1 && b{old}->src < 0 && (char *)p{old} == b{old}->data && "
                     f"b{old}->size == ({count}) * {t.dtype.itemsize})"):  # fmt: skip
        low.w.line(f"b{n} = b{old}; b{n}->rc++; p{n} = ({t.ctype} *)b{n}->data; o{n} = ++objects;")
    with low.w.block("else"):
        low.allocate(t)


__all__ = ["write_nest"]
