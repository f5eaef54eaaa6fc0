"""Attention: scores, softmax and the weighted sum for some rows at a time, so that scores stay in the first cache.

    aten.scaled_dot_product_attention.default(%q, %k, %v)      ->      for each head, for 24 rows: q @ k.t(), exp, @ v

Where there are more rows than that, keys and values are packed first.

The result lies as PyTorch has it: as the query does where its kernel for attention runs, else row after row.
"""

from __future__ import annotations

import math
from contextlib import ExitStack

import torch

from runtime.ir import Operand, Operator
from runtime.native.lowering import Lowering
from runtime.native.pointwise import FLOATS
from runtime.native.products import fit, limit
from runtime.native.target import shared
from runtime.native.values import Expr, Tensor, Unsupported
from runtime.ops import aten

_SCORES = 4096
"""Scores at a time, so far as that is as many rows as products do well on."""
_TILE = 12
_MOST = 5 * _TILE
_FEW = 24
"""Rows up to which nothing is packed."""


def emit(low: Lowering, op: Operator) -> None:
    """``scaled_dot_product_attention`` that drops nothing."""
    call = aten.arguments(aten.resolve(op.name), op.args, op.kwargs)
    if call["dropout_p"] != 0 or call["enable_gqa"] is not False or type(call["is_causal"]) is not bool:
        raise Unsupported("this attention")
    q, k, v = given = [low.tensor(call[name]) for name in ("query", "key", "value")]
    mask = None if call["attn_mask"] is None else low.tensor(call["attn_mask"])
    if any(one.rank != 4 or one.dtype != q.dtype or not one.order for one in given) or q.dtype not in FLOATS:
        raise Unsupported("these tensors")
    if mask is not None and (mask.dtype not in (torch.bool, q.dtype) or call["is_causal"]):
        raise Unsupported("this mask")
    if mask is not None and mask.rank not in (2, 3, 4):
        raise Unsupported("a rank")
    w = low.w
    batch: list[Expr] = []
    for sizes in zip(q.dims[:2], k.dims[:2], v.dims[:2]):
        whole = [size for size in sizes if size != 1] or [1]
        for other in whole[1:]:
            fit(low, whole[0], other)
        batch.append(whole[0])
    fit(low, q.dims[3], k.dims[3])
    fit(low, k.dims[2], v.dims[2])
    rows, columns, depth, width = q.dims[2], k.dims[2], q.dims[3], v.dims[3]
    limit(low, rows, columns, depth, width)
    if mask is not None:
        _fits(low, mask, (*batch, rows, columns))
        low.memory(mask)
    alike = all(len({size == 1 for size in sizes}) == 1 for sizes in zip(q.dims[:2], k.dims[:2], v.dims[:2]))
    by_kernel = alike and _has_kernel(low, q, k, v, mask)
    scale = f"({q.ctype}){_scale(low, call['scale'], depth)}"
    low.flush()
    q, k, v = laid = [_with_rows(low, one) for one in given]
    out = low.blank(q.dtype, (*batch, rows, width))
    out.order = given[0].order if by_kernel else out.order
    low.allocate(out)
    threads = w.local("i64", "z")
    w.line(f"{threads} = d2s_threads();")
    letter = "f" if q.dtype is torch.float32 else "d"
    block = _block(low, columns)
    scores = low.fresh(q.dtype, (threads, block, columns))
    panels = [_panels(low, rows, letter, threads, q.dtype, *sizes) for sizes in ((columns, depth), (width, columns))]
    work = w.product((*batch, rows, columns, depth))
    steps = [[0 if size == 1 else step for size, step in zip(one.dims[:2], low.strides(one))] + [low.strides(one)[2]]
             for one in (q, k, v, out)]  # fmt: skip
    indices = [w.local("i64", "y") for _ in range(2)]
    clause = shared(work)
    if clause:
        w.line(f"#pragma omp parallel for collapse(2) schedule(static) {clause}")
    with ExitStack() as loops:
        for index, size in zip(indices, batch):
            loops.enter_context(w.block(f"for ({index} = 0; {index} < {size}; {index}++)"))
        for name, one, step in zip("qkvo", (q, k, v, out), steps):
            place = " + ".join(f"{index} * {size}" for index, size in zip(indices, step))
            w.line(f"{'const ' if one is not out else ''}{q.ctype} *{name} = p{one.n} + {place};")
        w.line(f"{q.ctype} *scores = p{scores.n} + omp_get_thread_num() * {block} * {columns};")
        many = f"if ({rows} > {_FEW})"
        for name, (size, room) in zip("kv", panels):
            w.line(f"{q.ctype} *{name}s = p{room.n} + omp_get_thread_num() * {size};")
        w.line(f"{many} d2s_pack_{letter}(1, {columns}, {depth}, k, {steps[1][2]}, ks);")
        w.line(f"{many} d2s_pack_{letter}(0, {width}, {columns}, v, {steps[2][2]}, vs);")
        loops.enter_context(w.block(f"for (i64 at = 0; at < {rows}; at += {block})"))
        w.line(f"i64 some = {rows} - at < {block} ? {rows} - at : {block};")
        first, last = f"q + at * {steps[0][2]}, {steps[0][2]}", f"o + at * {steps[3][2]}, {steps[3][2]}, 0, 0"
        made = f"scores, {columns}, 0, 0"
        w.line(f"{many} gemm_packed_{letter}(0, some, {columns}, {depth}, {first}, ks, {made});")
        w.line(f"else gemm_{letter}(0, 1, some, {columns}, {depth}, {first}, k, {steps[1][2]}, {made});")
        with w.block("for (i64 i = 0; i < some; i++)"):
            _softmax(low, scores, columns, letter, scale, mask, indices, call["is_causal"], by_kernel,
                     call["scale"] is None)
        made = f"scores, {columns}"
        w.line(f"{many} gemm_packed_{letter}(0, some, {width}, {columns}, {made}, vs, {last});")
        w.line(f"else gemm_{letter}(0, 0, some, {width}, {columns}, {made}, v, {steps[2][2]}, {last});")
    for _, room in panels:
        low.release(room)
    low.release(scores)
    for one, before in zip(laid, given):
        if one is not before:
            low.release(one)
    low.give(op.outputs[0], out)


def _block(low: Lowering, columns: Expr) -> Expr:
    """How many rows of scores are there at a time: whole tiles of a product, as many as stay in the first cache."""
    if isinstance(columns, int):
        return min(max(_SCORES // max(columns, 1) // _TILE * _TILE, _TILE), _MOST)
    block = low.w.local("i64", "z")
    low.w.line(f"{block} = {_SCORES} / ({columns} + !{columns}) / {_TILE} * {_TILE};")
    low.w.line(f"{block} = {block} < {_TILE} ? {_TILE} : {block} > {_MOST} ? {_MOST} : {block};")
    return block


def _panels(low: Lowering, rows: Expr, letter: str, threads: str, dtype: torch.dtype, n: Expr, k: Expr
            ) -> tuple[str, Tensor]:  # fmt: skip
    """How long the panels of a matrix with n columns and k rows are, and memory for those of each thread."""
    size = low.w.local("i64", "z")
    low.w.line(f"{size} = {rows} > {_FEW} ? d2s_panels_{letter}({n}, {k}) : 0;")
    return size, low.fresh(dtype, (threads, size))


def _softmax(low: Lowering, scores: Tensor, columns: Expr, letter: str, scale: str, mask: Tensor | None,
             indices: list[str], causal: bool, by_kernel: bool, rising: bool) -> None:  # fmt: skip
    """One row of scores: scaled, masked, and their softmax; zeros where everything is masked, as in PyTorch. Its kernel
    takes what is no number as masked."""
    w, ctype = low.w, scores.ctype
    w.line(f"{ctype} *x = scores + i * {columns};")
    w.line(f"i64 n = {f'at + i + 1 < {columns} ? at + i + 1 : {columns}' if causal else columns};")
    w.line(f"{ctype} top = -INFINITY; double sum = 0;")
    element = "x[j]"
    if mask is None and rising:  # the largest is the largest before it is multiplied, too
        low.row.fold(low, "n", [("max", "top")], "top = x[j] > top ? x[j] : top;")
        w.line(f"top *= {scale};")
        element = f"x[j] * {scale}"
    elif mask is None:
        low.row.fold(low, "n", [("max", "top")], f"x[j] *= {scale}; top = x[j] > top ? x[j] : top;")
    else:
        missing = 4 - mask.rank
        step = [0 if one == 1 else size for one, size in zip(mask.dims, low.strides(mask))]
        places = (*indices, "(at + i)")[missing:]
        place = " + ".join(f"{index} * {one}" for index, one in zip(places, step) if one != 0) or "0"
        w.line(f"const {mask.ctype} *mask = p{mask.n} + {place};")
        chosen = f"mask[j * {step[-1]}]"
        made = f"x[j] * {scale}"
        made = f"{chosen} ? {made} : -INFINITY" if mask.dtype is torch.bool else f"{made} + {chosen}"
        low.row.fold(low, "n", [("max", "top")], f"x[j] = {made}; top = x[j] > top ? x[j] : top;")
    with w.block("if (top == -INFINITY)"):
        low.row.map(low, columns, "x[j] = 0;" if by_kernel else "x[j] = x[j] == x[j] ? 0 : x[j];")
    with w.block("else"):
        power = f"const {ctype} e = m_exp_{letter}({element} - top);"
        low.row.fold(low, "n", [("+", "sum")], f"{power} x[j] = e; sum += e;")
        w.line(f"const {ctype} part = ({ctype})(1 / sum);")
        low.row.map(low, "n", "x[j] *= part;")
        if causal:
            w.line(f"for (i64 j = n; j < {columns}; j++) x[j] = 0;")


def _fits(low: Lowering, mask: Tensor, dims: tuple[Expr, ...]) -> None:
    """A mask broadcasts to the scores' sizes; a size that is not known to be 1 has to be the whole."""
    for own, size in zip(reversed(mask.dims), reversed(dims)):
        if own != 1:
            fit(low, own, size)


def _has_kernel(low: Lowering, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> bool:
    """Whether PyTorch runs its kernel for attention; C gives up where nothing is asked, or nothing answers."""
    if q.dims[3] != v.dims[3] or (mask is not None and mask.rank not in (2, 4)):
        return False
    for one in (q, k, v):
        low.memory(one)
        if not (one.order[-1:] == (3,) and low.is_unit(one)) and one.dims[3] != 1:
            return False
        if not isinstance(one.dims[2], int):
            low.w.bail(f"{one.dims[2]} == 0")
        elif not one.dims[2]:
            return False
    return True


def _scale(low: Lowering, given: Operand, depth: Expr) -> str:
    """The factor of scores."""
    if given is None:
        if isinstance(depth, int):
            return f"({1 / math.sqrt(depth)!r})" if depth else "0"
        name = low.w.local("double", "r")
        low.w.line(f"{name} = 1 / sqrt((double){depth});")
        return name
    return f"({low.number(given).text})"


def _with_rows(low: Lowering, t: Tensor) -> Tensor:
    """The tensor, or a dense copy where the elements of a row do not lie side by side."""
    low.memory(t)
    return t if t.order[-1:] == (3,) and low.is_unit(t) else low.dense(t)


__all__ = ["emit"]
