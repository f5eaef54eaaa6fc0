"""Products of any rank and layout, and attention.

    aten.matmul.default(%x : f32[8, s0, 64], %w : f32[64, 64])      ->      for each of 8: gemm_f(...)
"""

from __future__ import annotations

from collections.abc import Sequence

from runtime.export.c.elements import arguments, at, close, dense, each, floats, size
from runtime.export.c.quantised import counted_or
from runtime.export.c.shaping import first_of
from runtime.ir import Operator
from runtime.native import products
from runtime.native.lowering import Lowering, Rule
from runtime.native.values import Expr, Tensor, Unsupported


def _common(low: Lowering, shapes: Sequence[Sequence[Expr]]) -> list[Expr]:
    """The sizes that batches have together."""
    rank = max(map(len, shapes))
    found: list[Expr] = [1] * rank
    for shape in shapes:
        for place, dim in enumerate(shape, start=rank - len(shape)):
            if found[place] == 1:
                found[place] = dim
            elif dim not in (1, found[place]):
                if isinstance(dim, int) and isinstance(found[place], int):
                    raise Unsupported("sizes that do not fit")
                low.w.bail(f"{dim} != {found[place]}")
    return found


def _batches(low: Lowering, t: Tensor, places: list[str]) -> str:
    """Where the matrix of a place in the batch begins."""
    lead = t.dims[:-2]
    own = Tensor(t.n, t.dtype, lead, low.w.dense(t.dims)[:-2], tuple(range(len(lead))))
    return "&" + at(low, own, *places[len(places) - len(lead) :]) if lead else f"p{t.n}"


def emit_matmul(low: Lowering, op: Operator) -> None:
    """``matmul`` and ``bmm`` of any rank."""
    given = op.args[:2]
    used = dense(low, *given)
    a, b = used
    kind, w = floats(a, b), low.w
    if not a.rank or not b.rank:
        raise Unsupported("a number")
    left = Tensor(a.n, a.dtype, (1, *a.dims) if a.rank == 1 else a.dims)
    right = Tensor(b.n, b.dtype, (*b.dims, 1) if b.rank == 1 else b.dims)
    m, k = left.dims[-2:]
    n = right.dims[-1]
    if k != right.dims[-2]:
        if isinstance(k, int) and isinstance(right.dims[-2], int):
            raise Unsupported("sizes that do not fit")
        w.bail(f"{k} != {right.dims[-2]}")
    batch = _common(low, [left.dims[:-2], right.dims[:-2]])
    dims = (*batch, *([m] if a.rank > 1 else []), *([n] if b.rank > 1 else []))
    made = low.fresh(a.dtype, dims)
    whole = Tensor(made.n, made.dtype, (*batch, m, n))
    starts = [low.w.dense(one.dims) for one in (left, right, whole)]  # computed before the loops
    assert starts
    with each(low, batch) as places:
        texts = [_batches(low, one, places) for one in (left, right, whole)]
        w.line(f"gemm_{kind}(0, 0, {m}, {n}, {k}, {texts[0]}, {k}, {texts[1]}, {n}, {texts[2]}, {n}, 0, 0);")
    close(low, given, used)
    low.give(op.outputs[0], made)


def emit_baddbmm(low: Lowering, op: Operator) -> None:
    """``baddbmm`` and ``addmm`` with factors, and ``addmv``."""
    call = arguments(op)
    names = ("batch1", "batch2") if "batch1" in call else ("mat1", "mat2")
    given = [call["self"], call[names[0]], call[names[1]]]
    used = dense(low, *given)
    bias, a, b = used
    kind, w = floats(*used), low.w
    alpha, beta = low.number(call["alpha"]).text, low.number(call["beta"]).text
    m, k = a.dims[-2:]
    n = b.dims[-1]
    for own, other in zip((k, *a.dims[:-2]), (b.dims[-2], *b.dims[:-2])):
        if own != other:
            w.bail(f"{own} != {other}")
    made = low.fresh(a.dtype, (*a.dims[:-1], n))
    for own, other in zip(reversed(bias.dims), reversed(made.dims)):
        if own not in (1, other):
            w.bail(f"{own} != {other}")
    sizes = [w.product(one.dims[-2:]) for one in (a, b, made)]
    with each(low, a.dims[:-2]) as places:
        i = places[0] if places else "0"
        w.line(f"gemm_{kind}(0, 0, {m}, {n}, {k}, p{a.n} + {i} * {sizes[0]}, {k}, p{b.n} + {i} * {sizes[1]}, {n}, "
               f"p{made.n} + {i} * {sizes[2]}, {n}, 0, 0);")  # fmt: skip
    with each(low, made.dims) as places:
        own_places = places[len(places) - bias.rank :]
        element = at(low, made, *places)
        w.line(f"{element} = ({a.ctype}){alpha} * {element} + ({beta} == 0 ? 0 : ({a.ctype}){beta} * "
               f"{at(low, bias, *own_places)});")  # fmt: skip
    close(low, given, used)
    low.give(op.outputs[0], made)


def emit_linear(low: Lowering, op: Operator) -> None:
    """``linear`` of any layout."""
    call = arguments(op)
    given = [one for one in (call["input"], call["weight"], call.get("bias")) if one is not None]
    used = dense(low, *given)
    x, weight = used[:2]
    bias = used[2] if len(used) > 2 else None
    kind, w = floats(*used), low.w
    if weight.rank != 2 or not x.rank or (bias is not None and bias.rank != 1):
        raise Unsupported("a rank")
    n, k = weight.dims
    rows = w.product(x.dims[:-1])
    if x.dims[-1] != k:
        w.bail(f"{x.dims[-1]} != {k}")
    if bias is not None and bias.dims[0] != n:
        w.bail(f"{bias.dims[0]} != {n}")
    made = low.fresh(x.dtype, (*x.dims[:-1], n))
    start = "0" if bias is None else f"p{bias.n}"
    w.line(f"gemm_{kind}(0, 1, {rows}, {n}, {k}, p{x.n}, {k}, p{weight.n}, {k}, p{made.n}, {n}, {start}, 0);")
    close(low, given, used)
    low.give(op.outputs[0], made)


def emit_attention(low: Lowering, op: Operator) -> None:
    """``scaled_dot_product_attention``, a row of weights at a time."""
    call = arguments(op)
    names = [one for one in (call["query"], call["key"], call["value"], call.get("attn_mask")) if one is not None]
    used = dense(low, *names)
    q, k, v = used[:3]
    mask = used[3] if len(used) > 3 else None
    kind, w = floats(q, k, v), low.w
    if call["dropout_p"] not in (0, 0.0) or call.get("enable_gqa") or min(q.rank, k.rank, v.rank) < 2:
        raise Unsupported("dropout, or groups of heads")
    if mask is not None and mask.dtype not in (q.dtype, *([] if mask.rank == 0 else [])) and mask.ctype != "uint8_t":
        raise Unsupported("this mask")
    rows, depth = q.dims[-2:]
    columns, width = v.dims[-2:]
    for own, other in ((depth, k.dims[-1]), (columns, k.dims[-2])):
        if own != other:
            w.bail(f"{own} != {other}")
    batch = _common(low, [one.dims[:-2] for one in (q, k, v)])
    made = low.fresh(q.dtype, (*batch, rows, width))
    weights = low.fresh(q.dtype, (columns,))
    given = call.get("scale")
    scale = w.local("double", "v")
    w.line(f"{scale} = {f'1 / sqrt((double){depth})' if given is None else low.number(given).text};")
    for one in (q, k, v, made):
        w.dense(one.dims)
    if mask is not None:
        whole = (*batch, rows, columns)
        for own, other in zip(reversed(mask.dims), reversed(whole)):
            if own not in (1, other):
                w.bail(f"{own} != {other}")
    t = q.ctype
    with each(low, (*batch, rows)) as (*places, i):
        limit: Expr = columns
        if call["is_causal"]:
            limit = size(low, f"{i} + 1 < {columns} ? {i} + 1 : {columns}")
        w.line(f"const {t} *query = {_batches(low, q, places)} + {i} * {depth}, *keys = {_batches(low, k, places)};")
        w.line(f"const {t} *values = {_batches(low, v, places)}; {t} *row = p{weights.n}, top = -INFINITY;")
        w.line(f"{t} *to = {_batches(low, made, places)} + {i} * {width}; double sum = 0;")
        w.line(f"gemm_{kind}(0, 1, 1, {limit}, {depth}, query, {depth}, keys, {depth}, row, {limit}, 0, 0);")
        with w.block(f"for (i64 j = 0; j < {limit}; j++)"):
            w.line(f"row[j] *= ({t}){scale};")
            if mask is not None:
                element = at(low, mask, *[*places, i, "j"][len(places) + 2 - mask.rank :])
                w.line(f"if (!{element}) row[j] = -INFINITY;" if mask.ctype == "uint8_t" else f"row[j] += {element};")
            w.line("if (row[j] > top || row[j] != row[j]) top = row[j];")
        w.line(f"for (i64 j = 0; j < {limit}; j++) {{ row[j] = top == -INFINITY ? 0 : m_exp_{kind}(row[j] - top); "
               "sum += row[j]; }")  # fmt: skip
        w.line(f"for (i64 j = 0; j < {limit} && sum != 0; j++) row[j] = ({t})(row[j] / sum);")
        w.line(f"gemm_{kind}(0, 0, 1, {width}, {limit}, row, {limit}, values, {width}, to, {width}, 0, 0);")
    low.release(weights)
    close(low, names, used)
    low.give(op.outputs[0], made)


NAMES: dict[Rule, list[str]] = {
    first_of(products.emit_matmul, emit_matmul): ["matmul.default"],
    first_of(products.emit_bmm, emit_matmul): ["bmm.default"],
    first_of(products.emit_addmm, emit_baddbmm): ["addmm.default"],
    emit_baddbmm: ["baddbmm.default"],
    counted_or(first_of(products.emit_linear, emit_linear)): ["linear.default"],
    emit_attention: ["scaled_dot_product_attention.default"],
    emit_matmul: ["mv.default", "dot.default"],
}
