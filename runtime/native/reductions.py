"""Sums, means, extremes and norms: over all elements, or over some dimensions.

    aten.sum.dim_IntList(%x, [0])      ->      for (i1 ...) { double a = 0; for (i0 ...) a += x[...]; y[i1] = a; }

Sums of floats are added in double, which is closer to the true sum than either order of additions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from runtime.ir import Operator
from runtime.native.lowering import Lowering
from runtime.native.pointwise import FLOATS
from runtime.native.values import CTYPES, Expr, Tensor, Unsupported
from runtime.native.views import axis
from runtime.ops import aten


@dataclass(frozen=True)
class _Fold:
    """A reduction: the accumulator's type and first value, one step, the result."""

    ctype: str
    first: str
    step: str
    result: str
    joins: tuple[tuple[str, str], ...] = ()
    needs_one: bool = False

    @property
    def simd(self) -> str:
        """How vectors come together."""
        return " ".join(f"reduction({sign}:{name})" for sign, name in self.joins)


def _fold(low: Lowering, short: str, x: Tensor, dtype: torch.dtype, count: Expr) -> _Fold:
    real = x.dtype in FLOATS
    if short in ("sum", "mean"):
        if short == "mean" and not real:
            raise Unsupported("a mean of whole numbers")
        if dtype in FLOATS:
            wide = low.target.sums(dtype)
            result = "acc" if short == "sum" else f"acc / ({wide})({count})"
            return _Fold(wide, "0", "acc += v;", result, (("+", "acc"),))
        if dtype != torch.int64:
            raise Unsupported(f"{dtype}")
        return _Fold("uint64_t", "0", "acc += (uint64_t)v;", "acc", (("+", "acc"),))
    if short in ("max", "min", "amax", "amin"):
        word, sign = ("max", ">") if "max" in short else ("min", "<")
        step, join = f"acc = v {sign} acc ? v : acc;", (word, "acc")
        if not real:
            return _Fold(x.ctype, "*first", step, "acc", (join,), needs_one=True)
        return _Fold(x.ctype, "*first; int bad = 0", f"{step} bad |= v != v;", "bad ? NAN : acc",
                     (join, ("|", "bad")), needs_one=True)  # fmt: skip
    if short in ("any", "all"):
        step, first = ("acc |= v != 0;", "0") if short == "any" else ("acc &= v != 0;", "1")
        return _Fold("int", first, step, "acc", (("|" if short == "any" else "&", "acc"),))
    if short == "linalg_vector_norm" and real:
        wide = low.target.sums(dtype)
        return _Fold(wide, "0", f"acc += ({wide})v * ({wide})v;", "sqrt(acc)", (("+", "acc"),))
    raise Unsupported(short)


def emit(low: Lowering, op: Operator) -> None:
    """One fold."""
    short = op.name.split(".")[1]
    call = aten.arguments(aten.resolve(op.name), op.args, op.kwargs)
    x = low.tensor(op.args[0])
    if short == "linalg_vector_norm" and call.get("ord", 2) != 2:
        raise Unsupported("another norm")
    keep = bool(call.get("keepdim", False))
    dim: Any = call.get("dim")
    if isinstance(dim, int) and not isinstance(dim, bool):
        dim = [dim]
    if op.name in ("aten.max.dim", "aten.min.dim") or (dim is not None and short in ("any", "all")):
        raise Unsupported("two results")
    dims = list(range(x.rank)) if not dim else [axis(x, one) for one in dim]
    out = op.outputs[0].type
    wanted = call.get("dtype")
    if short in ("any", "all"):
        dtype = torch.bool
        if x.dtype == torch.uint8:
            raise Unsupported("uint8")
    elif short == "sum" and wanted is None and x.dtype not in FLOATS:
        dtype = torch.int64
    else:
        dtype = x.dtype if wanted is None else wanted
    if (wanted is not None and x.dtype in FLOATS and wanted not in FLOATS) or dtype not in CTYPES:
        raise Unsupported(f"{dtype}")
    if getattr(out, "dtype", dtype) not in (None, dtype):
        raise Unsupported("another dtype than expected")
    fused = _fused(low, x, dims, keep, short, dtype)
    if fused is not None:
        low.give(op.outputs[0], fused)
        return
    low.memory(x)
    if not x.straight:
        x = low.copied(x)
    low.flush()
    low.give(op.outputs[0], reduce(low, x, dims, keep, short, dtype))


def _fused(low: Lowering, x: Tensor, dims: list[int], keep: bool, short: str, dtype: torch.dtype) -> Tensor | None:
    """The fold as a part of the nest that computes what is folded, where that is pending; else None."""
    nest, tail = low.nest, len(dims)
    if nest is None or not x.pending or not nest.holds(x) or not tail or not nest.may_fold(tail) or (
            sorted(dims) != list(range(x.rank - tail, x.rank)) or x.dims != nest.dims):  # fmt: skip
        return None
    if tail == x.rank and not low.target.registers:
        return None
    count = low.w.product(x.dims[x.rank - tail :])
    fold = _fold(low, short, x, dtype, count)
    first = f"{fold.ctype} acc = {fold.first}"
    if fold.needs_one:
        if x.dtype not in FLOATS:
            return None
        low.w.bail(f"!({count})")
        first = first.replace("*first", "-INFINITY" if "max" in short else "INFINITY")
    stay = x.dims[: x.rank - tail]
    if stay or keep:
        made = low.fresh(dtype, (*stay, *[1] * tail) if keep else stay)
    else:
        made = low.blank(dtype, ())
        made.reg = low.w.local(made.ctype, "r")
    nest.fold(made, f"e{x.n}", tail, first=first, step=fold.step, result=fold.result, joins=fold.joins)
    return made


def reduce(low: Lowering, x: Tensor, dims: list[int], keep: bool, short: str, dtype: torch.dtype) -> Tensor:
    """The loops: over the dimensions that stay, inside them over those that go."""
    w = low.w
    count = w.product(tuple(x.dims[dim] for dim in dims))
    fold = _fold(low, short, x, dtype, count)
    if fold.needs_one:
        w.bail(f"!({count})")
    stay = [dim for dim in range(x.rank) if dim not in dims]
    result_dims = tuple(1 if dim in dims else x.dims[dim] for dim in range(x.rank) if keep or dim not in dims)
    strides = w.dense(x.dims) if x.strides is None else x.strides
    if not result_dims:
        made = low.blank(dtype, ())
        made.reg = w.local(made.ctype, "r")
        target = made.reg
    else:
        made = low.fresh(dtype, result_dims)
        inner = dict(zip(stay, w.dense(tuple(x.dims[dim] for dim in stay))))
        place = " + ".join(f"i{dim} * {inner[dim]}" for dim in stay) or "0"
        target = f"p{made.n}[{place}]"
    flat = x.strides is None and len(dims) == x.rank
    last = stay[-1] if stay else None
    columns = last is not None and last > max(dims, default=0) and fold.simd and not fold.needs_one and (
        short != "linalg_vector_norm")
    with w.block(""):
        base = " + ".join(f"i{dim} * {strides[dim]}" for dim in stay) or "0"
        if columns and strides[last] == 1 and (isinstance(x.dims[last], str) or x.dims[last] > 1):  # type: ignore[index,operator]
            _columns(low, x, fold, stay, dims, strides, target, dtype)
            return made
        for dim in stay:
            w.line(f"for (i64 i{dim} = 0; i{dim} < {x.dims[dim]}; i{dim}++) {{")
            w.indent += 1
        w.line(f"const {x.ctype} *first = p{x.n} + {base};")
        w.line(f"{fold.ctype} acc = {fold.first}; (void)first;")
        loops = [(count, 1)] if flat else [(x.dims[dim], strides[dim]) for dim in dims]
        for level, (size, _) in enumerate(loops):
            if level == len(loops) - 1 and fold.simd:
                w.line(f"#pragma omp simd {fold.simd}")
            w.line(f"for (i64 j{level} = 0; j{level} < {size}; j{level}++) {{")
            w.indent += 1
        at = " + ".join(f"j{level} * {stride}" for level, (_, stride) in enumerate(loops)) or "0"
        w.line(f"const {x.ctype} v = first[{at}];")
        w.line(fold.step)
        for _ in loops:
            w.indent -= 1
            w.line("}")
        w.line(f"{target} = {_cast(fold, dtype)};")
        for _ in stay:
            w.indent -= 1
            w.line("}")
    return made


def _cast(fold: _Fold, dtype: torch.dtype) -> str:
    return f"({CTYPES[dtype]})({fold.result})" if dtype != torch.bool else fold.result


def _columns(
    low: Lowering, x: Tensor, fold: _Fold, stay: list[int], dims: list[int], strides: tuple[Expr, ...], target: str,
    dtype: torch.dtype,
) -> None:  # fmt: skip
    """Neighbours are folded side by side, 64 at a time, so that memory is read in its order."""
    w = low.w
    last = stay[-1]
    for dim in stay[:-1]:
        w.line(f"for (i64 i{dim} = 0; i{dim} < {x.dims[dim]}; i{dim}++) {{")
        w.indent += 1
    size = x.dims[last]
    w.line(f"for (i64 k = 0; k < {size}; k += 64) {{")
    w.line(f"  {fold.ctype} accs[64]; i64 n = {size} - k < 64 ? {size} - k : 64;")
    w.line(f"  for (i64 m = 0; m < n; m++) accs[m] = {fold.first};")
    w.indent += 1
    for level, dim in enumerate(dims):
        w.line(f"for (i64 j{level} = 0; j{level} < {x.dims[dim]}; j{level}++) {{")
        w.indent += 1
    parts = [f"i{dim} * {strides[dim]}" for dim in stay[:-1]]
    parts += [f"j{level} * {strides[dim]}" for level, dim in enumerate(dims)]
    w.line(f"const {x.ctype} *row = p{x.n} + {' + '.join([*parts, 'k'])};")
    w.line("#pragma GCC ivdep")
    w.line(f"for (i64 m = 0; m < n; m++) {{ const {x.ctype} v = row[m]; {fold.step.replace('acc', 'accs[m]')} }}")
    for _ in dims:
        w.indent -= 1
        w.line("}")
    w.line(f"for (i64 m = 0; m < n; m++) {{ i64 i{last} = k + m; {target} = "
           f"{_cast(fold, dtype).replace('acc', 'accs[m]')}; }}")  # fmt: skip
    w.indent -= 1
    w.line("}")
    for _ in stay[:-1]:
        w.indent -= 1
        w.line("}")


