"""Products: kernels of ours; on Intel's processors PyTorch's own sgemm and dgemm for big ones.

    aten.mm.default(%a, %b)            ->      gemm_f(0, 0, 8, 256, 256, p3, 256, p4, 256, p9, 256, 0, 0)
    aten.addmm.default(%c, %a, %b)     ->      gemm_f(0, 0, 8, 256, 256, p3, 256, p4, 256, p9, 256, p2, 0)
"""

from __future__ import annotations

from contextlib import ExitStack

import torch

from runtime.ir import Operand, Operator, Variable
from runtime.native import chunks
from runtime.native.lowering import Lowering
from runtime.native.nest import Nest
from runtime.native.pointwise import FLOATS
from runtime.native.values import Expr, Tensor, Unsupported, identity

LARGEST = 1 << 17
"""Elements of the largest matrix of which a loop keeps a transposed copy."""
WIDE, FIRST_CACHE = 16, 4096
"""For products with vectors: how many rows such a matrix has at least, and how many elements at most."""


def fit(low: Lowering, a: Expr, b: Expr) -> None:
    """Two sizes have to be one."""
    if isinstance(a, int) and isinstance(b, int):
        if a != b:
            raise Unsupported("sizes that do not fit")
    elif a != b:
        low.w.bail(f"{a} != {b}")


def _side(low: Lowering, t: Tensor) -> tuple[Tensor, bool, Expr, bool]:
    """A matrix for gemm: itself or a dense copy, whether it is transposed, its leading stride, whether it is a copy."""
    rows, columns = low.strides(t)
    for inner, step, turned in ((columns, rows, False), (rows, columns, True)):
        if inner == 1 and t.order == ((1, 0) if turned else (0, 1)) and step != 0:
            size = t.dims[0] if turned else t.dims[1]
            if isinstance(step, str) and step != size:
                low.w.bail(f"{step} < {size}")
            return t, turned, step, False
    return low.dense(t), False, t.dims[1], True


Start = tuple[str, Expr]
"""What sums begin with, as C: a pointer to rows, and how far apart those are; 0 for one row that all begin with."""
ZERO: Start = ("0", 0)


def gemm(low: Lowering, out: Tensor, a: Tensor, b: Tensor, start: Start = ZERO) -> None:
    """``out = start + a @ b``; ``out`` is dense, and may be what it starts with."""
    w = low.w
    m, k = a.dims
    n = b.dims[1]
    left, left_turned, left_step, left_copy = _side(low, a)
    right, right_turned, right_step, right_copy = _side(low, b)
    kind = "f" if a.dtype is torch.float32 else "d"

    def call(turned: bool, data: str, step: Expr) -> str:
        return (f"gemm_{kind}({int(left_turned)}, {int(turned)}, {m}, {n}, {k}, p{left.n}, {left_step}, {data}, "
                f"{step}, p{out.n}, {n}, {start[0]}, {start[1]});")  # fmt: skip

    panels = low.packed(b.origin or b, right_turned) if right is b and _is_whole(b) else None
    if panels is not None:
        w.line(f"gemm_packed_{kind}({int(left_turned)}, {m}, {n}, {k}, p{left.n}, {left_step}, {panels}, p{out.n}, "
               f"{n}, {start[0]}, {start[1]});")  # fmt: skip
        if left_copy and left is not a:
            low.release(left)
        return
    small = not (isinstance(n, int) and isinstance(k, int)) or n * k <= LARGEST
    kept = _kept(low, b.origin) if right_turned and m != 1 and small else None
    if kept is None:
        w.line(call(right_turned, f"p{right.n}", right_step))
    else:
        memory, uses = kept
        panels = f"({a.ctype} *){memory}->data"
        few = "1" if low.alone else f"{m} <= 4"
        with w.block(f"if (!{memory} && {m} > 1 && {k} * {n} <= {LARGEST} && {uses}++ >= 2)"):
            rows = f"(i64){k} * {n}"
            count = rows if low.alone else f"({few} ? {rows} : d2s_panels_{kind}({n}, {k}))"
            w.line(f"if (!({memory} = d2s_new(c, {count} * {a.dtype.itemsize}))) goto bail;")
            w.line(f"if ({few}) turn_{kind}({n}, {k}, p{right.n}, {right_step}, {panels});")
            if not low.alone:
                w.line(f"else d2s_pack_{kind}(1, {n}, {k}, p{right.n}, {right_step}, {panels});")
            w.line(f"{uses} = {few} ? 3 : -1;")
        if not low.alone:
            w.line(f"if ({memory} && {uses} < 0) gemm_packed_{kind}({int(left_turned)}, {m}, {n}, {k}, p{left.n}, "
                   f"{left_step}, {panels}, p{out.n}, {n}, {start[0]}, {start[1]}); else")  # fmt: skip
        w.line(f"if ({memory}) {call(False, panels, n)}")
        w.line(f"else {call(True, f'p{right.n}', right_step)}")
    for t, copied in ((left, left_copy), (right, right_copy)):
        if copied and t not in (a, b):
            low.release(t)


def _is_whole(t: Tensor) -> bool:
    """Whether a matrix is an argument as it is, or transposed."""
    whole = t.origin or t
    return whole.rank == 2 and whole.strides is None and whole.straight and t.dims in (whole.dims, whole.dims[::-1])


def _kept(low: Lowering, whole: Tensor | None) -> tuple[str, str] | None:
    """The memory for a copy of a matrix that no iteration changes, and what counts its uses; else None.

    The copy is made in the third iteration: panels, for which the uses are below 0, or for a few rows the matrix
    transposed.
    """
    loop = None if whole is None or whole.dtype not in FLOATS else low.unchanging(whole)
    if whole is None or loop is None:
        return None
    key = (loop.start, whole.n)
    name = low.turned.get(key)
    if name is None:
        name = low.turned[key] = low.w.local("buf *", "b")
        low.w.declare("i64", f"u{name}")
        loop.kept.append(name)
    return name, f"u{name}"


def _kept_for_vectors(low: Lowering, a: Tensor) -> tuple[str, str] | None:
    """As ``_kept``, for a small matrix that a loop multiplies with vectors: whole vectors of results are quicker than a
    sum for each of them."""
    sizes = [size for size in a.dims if isinstance(size, int)]
    if len(sizes) < 2 or sizes[0] < WIDE or sizes[0] * sizes[1] > FIRST_CACHE:
        return None
    return _kept(low, a.origin or a) if a.strides is None and a.straight and _is_whole(a) else None


def _operands(low: Lowering, *operands: object) -> list[Tensor]:
    found = [low.tensor(one) for one in operands]
    if len({one.dtype for one in found}) > 1 or found[0].dtype not in FLOATS:
        raise Unsupported("these dtypes")
    for one in found:
        low.memory(one)
    low.flush()
    return found


def limit(low: Lowering, *dims: Expr) -> None:
    """Sizes have to be what BLAS takes."""
    for dim in dims:
        if isinstance(dim, str):
            low.w.bail(f"{dim} > 0x7fffffff")


def mm(low: Lowering, a: Tensor, b: Tensor) -> Tensor:
    """``a @ b`` of two matrices."""
    fit(low, a.dims[1], b.dims[0])
    limit(low, *a.dims, *b.dims)
    out = low.fresh(a.dtype, (a.dims[0], b.dims[1]))
    gemm(low, out, a, b)
    return out


def matvec(low: Lowering, a: Tensor, x: Tensor) -> Tensor:
    """``a @ x`` of a matrix and a vector."""
    fit(low, a.dims[1], x.dims[0])
    w = low.w
    out = low.fresh(a.dtype, (a.dims[0],))
    rows, columns = low.strides(a)
    (step,) = low.strides(x)
    if columns == 1 and step == 1 and a.order == (0, 1) and rows != 0:
        size = a.dims[1]
        if isinstance(rows, str) and rows != size:
            w.bail(f"{rows} < {size}")
        limit(low, *a.dims)
        kind = "f" if a.dtype is torch.float32 else "d"
        ends = f"p{out.n}, {a.dims[0]}, 0, 0);"
        kept = _kept_for_vectors(low, a)
        if kept is not None:
            memory, uses = kept
            with w.block(f"if (!{memory} && {uses}++ >= 2)"):
                w.line(f"if (!({memory} = d2s_new(c, {w.product(a.dims)} * {a.dtype.itemsize}))) goto bail;")
                w.line(f"turn_{kind}({a.dims[0]}, {size}, p{a.n}, {rows}, ({a.ctype} *){memory}->data); {uses} = 3;")
            w.line(f"if ({memory} && {uses} >= 0) gemm_{kind}(0, 0, 1, {a.dims[0]}, {size}, p{x.n}, {size}, "
                   f"({a.ctype} *){memory}->data, {a.dims[0]}, {ends} else")  # fmt: skip
        w.line(f"gemm_{kind}(0, 1, 1, {a.dims[0]}, {size}, p{x.n}, {size}, p{a.n}, {rows}, {ends}")
        return out
    with w.block(""):
        if columns == 1 or rows != 1:
            w.line(f"for (i64 i = 0; i < {a.dims[0]}; i++) {{")
            w.line(f"  const {a.ctype} *row = p{a.n} + i * {rows}; {a.ctype} acc = 0;")
            w.line("  #pragma omp simd reduction(+:acc)")
            w.line(f"  for (i64 j = 0; j < {a.dims[1]}; j++) acc += row[j * {columns}] * p{x.n}[j * {step}];")
            w.line(f"  p{out.n}[i] = acc;")
            w.line("}")
        else:
            w.line(f"for (i64 i = 0; i < {a.dims[0]}; i++) p{out.n}[i] = 0;")
            w.line(f"for (i64 j = 0; j < {a.dims[1]}; j++) {{")
            w.line(f"  const {a.ctype} v = p{x.n}[j * {step}], *column = p{a.n} + j * {columns};")
            w.line("  #pragma GCC ivdep")
            w.line(f"  for (i64 i = 0; i < {a.dims[0]}; i++) p{out.n}[i] += v * column[i];")
            w.line("}")
    return out


def dot(low: Lowering, a: Tensor, b: Tensor) -> Tensor:
    """``a @ b`` of two vectors."""
    fit(low, a.dims[0], b.dims[0])
    made = low.blank(a.dtype, ())
    made.reg = low.w.local(made.ctype, "r")
    (left,), (right,) = low.strides(a), low.strides(b)
    with low.w.block(""):
        low.w.line("double acc = 0;")
        low.w.line("#pragma omp simd reduction(+:acc)")
        low.w.line(f"for (i64 i = 0; i < {a.dims[0]}; i++) acc += (double)p{a.n}[i * {left}] * p{b.n}[i * {right}];")
        low.w.line(f"{made.reg} = ({made.ctype})acc;")
    return made


def emit_mm(low: Lowering, op: Operator) -> None:
    """``mm``."""
    a, b = _operands(low, *op.args)
    made = _ahead(low, op, op.args[0], b, None)
    low.give(op.outputs[0], mm(low, a, b) if made is None else made)


def emit_matmul(low: Lowering, op: Operator) -> None:
    """``matmul`` of matrices and vectors."""
    a, b = _operands(low, *op.args)
    ranks = (a.rank, b.rank)
    made = _ahead(low, op, op.args[0], b, None) if ranks in ((2, 2), (1, 2)) else None
    if made is not None:
        pass
    elif ranks == (2, 2):
        made = mm(low, a, b)
    elif ranks == (2, 1):
        made = matvec(low, a, b)
    elif ranks == (1, 2):
        rows, columns = low.strides(b)
        turned = low.view(b, (b.dims[1], b.dims[0]), (columns, rows), 0, (1, 0) if b.straight else (0, 1))
        made = matvec(low, turned, a)
        low.release(turned)
    elif ranks == (1, 1):
        made = dot(low, a, b)
    elif a.rank > 2 and b.rank == 2:
        whole = low.dense(a)
        flat = low.view(whole, (low.w.product(a.dims[:-1]), a.dims[-1]), None)
        made = mm(low, flat, b)
        made.dims = (*a.dims[:-1], b.dims[1])
        made.order = identity(a.rank)
        low.release(flat)
        if whole is not a:
            low.release(whole)
    else:
        made = _batched(low, a, b)
    low.give(op.outputs[0], made)


def emit_addmm(low: Lowering, op: Operator) -> None:
    """``bias + a @ b``: sums begin with the bias; with factors, both are made and added."""
    bias, a, b = _operands(low, *op.args[:3])
    if _has_factors(op):
        low.give(op.outputs[0], _weighed(low, op, bias, mm(low, a, b)))
        return
    made = _ahead(low, op, op.args[1], b, bias)
    low.give(op.outputs[0], _with_bias(low, bias, a, b) if made is None else made)


def _has_factors(op: Operator) -> bool:
    if len(op.args) > 3:
        raise Unsupported("factors")
    return any(op.kwargs.get(name, 1) != 1 for name in ("alpha", "beta"))


def _weighed(low: Lowering, op: Operator, bias: Tensor, product: Tensor) -> Tensor:
    """``beta * bias + alpha * product``, in the product's memory; a bias with factor 0 is not read."""
    alpha, beta = (low.number(op.kwargs.get(name, 1)) for name in ("alpha", "beta"))
    if bias.rank > product.rank or isinstance(op.kwargs.get("beta", 1), Variable):
        raise Unsupported("a bias")
    for own, size in zip(reversed(bias.dims), reversed(product.dims)):
        if own != 1:
            fit(low, own, size)
    nest = Nest(product.dims, identity(product.rank))
    text = f"({product.ctype}){alpha.text} * {nest.load(low, product)}"
    if op.kwargs.get("beta", 1) != 0:
        text = f"({product.ctype}){beta.text} * {nest.load(low, bias)} + {text}"
    nest.store(low, product, text)
    nest.write(low)
    return product


def _ahead(low: Lowering, op: Operator, row: Operand, weight: Tensor, bias: Tensor | None) -> Tensor | None:
    """The product of a row that a loop takes, computed with those of the next ones; None where it is not so."""
    row_of = low.tensor(row)
    if bias is not None and (bias.rank != 1 or bias.dims != weight.dims[1:]) or row_of.dims[-1:] != weight.dims[:1]:
        return None
    return chunks.product(low, op, row, weight, bias, _onto)


def _onto(low: Lowering, out: Tensor, a: Tensor, b: Tensor, bias: Tensor | None) -> None:
    """``out = bias + a @ b``; the bias is broadcast to the sizes of ``out``, or has them."""
    if bias is None:
        gemm(low, out, a, b)
        return
    whole = all(own != 1 or size == 1 for own, size in zip(reversed(bias.dims), reversed(out.dims)))
    if whole and bias.rank in (1, 2) and bias.strides is None and bias.straight:
        gemm(low, out, a, b, (f"p{bias.n}", out.dims[1] if bias.rank == 2 else 0))
        return
    nest = Nest(out.dims, (0, 1))
    nest.store(low, out, nest.load(low, bias))
    nest.write(low)
    gemm(low, out, a, b, (f"p{out.n}", out.dims[1]))


def _with_bias(low: Lowering, bias: Tensor, a: Tensor, b: Tensor) -> Tensor:
    fit(low, a.dims[1], b.dims[0])
    limit(low, *a.dims, *b.dims)
    dims = (a.dims[0], b.dims[1])
    if bias.rank > 2:
        raise Unsupported("a bias")
    for own, size in zip(reversed(bias.dims), reversed(dims)):
        if own != 1:
            fit(low, own, size)
    out = low.fresh(a.dtype, dims)
    _onto(low, out, a, b, bias)
    return out


def emit_linear(low: Lowering, op: Operator) -> None:
    """``x @ w.t() + bias`` for x of any rank, and for one vector."""
    operands = _operands(low, *(one for one in op.args if one is not None))
    x, weight = operands[:2]
    bias = operands[2] if len(operands) > 2 else None
    if weight.rank != 2 or x.rank < 1 or (bias and bias.rank != 1):
        raise Unsupported("a rank")
    whole = x if x.rank == 2 and x.order else low.dense(x)
    rows, columns = low.strides(weight)
    turned = low.view(weight, (weight.dims[1], weight.dims[0]), (columns, rows), 0,
                      (1, 0) if weight.straight else (0, 1))  # fmt: skip
    turned.origin = weight.origin or weight
    ahead = _ahead(low, op, op.args[0], turned, bias)
    if ahead is not None:
        low.release(turned)
        low.give(op.outputs[0], ahead)
        return
    flat = whole if whole.rank == 2 else low.view(whole, (low.w.product(x.dims[:-1]), x.dims[-1]), None)
    made = mm(low, flat, turned) if bias is None else _with_bias(low, bias, flat, turned)
    made.dims = (*x.dims[:-1], weight.dims[0])
    made.order = tuple(range(len(made.dims)))
    for one in {flat.n: flat, whole.n: whole}.values():
        if one is not x:
            low.release(one)
    low.release(turned)
    low.give(op.outputs[0], made)


def emit_bmm(low: Lowering, op: Operator) -> None:
    """``bmm``: one product for each of the batch."""
    a, b = _operands(low, *op.args)
    low.give(op.outputs[0], _batched(low, a, b))


def emit_baddbmm(low: Lowering, op: Operator) -> None:
    """``bias + a @ b`` for each of the batch, the bias of one size with the result unless there are factors."""
    bias, a, b = _operands(low, *op.args[:3])
    if _has_factors(op):
        low.give(op.outputs[0], _weighed(low, op, bias, _batched(low, a, b)))
        return
    low.give(op.outputs[0], _batched(low, a, b, bias))


def _batched(low: Lowering, a: Tensor, b: Tensor, bias: Tensor | None = None) -> Tensor:
    """One product for each of a batch of any rank; matrices may lie anywhere, and be transposed."""
    if a.rank != b.rank or a.rank < 3:
        raise Unsupported("a rank")
    given = (a, b)
    a, b = (one if one.order else low.dense(one) for one in given)
    for own, other in zip(a.dims[:-2], b.dims[:-2]):
        fit(low, own, other)
    fit(low, a.dims[-1], b.dims[-2])
    limit(low, *a.dims[-2:], *b.dims[-2:])
    w = low.w
    out = low.fresh(a.dtype, (*a.dims[:-1], b.dims[-1]))
    if bias is not None:
        if bias.dims != out.dims:
            raise Unsupported("a bias")
        low.copy(out, bias)
    indices = [w.local("i64", "y") for _ in a.dims[:-2]]
    parts = [_part(low, t) for t in (a, b, out)]
    steps = [low.strides(t) for t in (a, b, out)]
    with ExitStack() as loops:
        for index, size in zip(indices, a.dims):
            loops.enter_context(w.block(f"for ({index} = 0; {index} < {size}; {index}++)"))
        for t, part, step in zip((a, b, out), parts, steps):
            offsets = [f"{index} * {one}" for index, one in zip(indices, step) if one != 0]
            w.line(f"p{part.n} = p{t.n}{''.join(' + ' + one for one in offsets)};")
        gemm(low, parts[2], parts[0], parts[1], ZERO if bias is None else (f"p{parts[2].n}", parts[2].dims[1]))
    for one, before in zip((a, b), given):
        if one is not before:
            low.release(one)
    return out


def _part(low: Lowering, t: Tensor) -> Tensor:
    """The form of one matrix of a batch: it has no memory of its own."""
    part = low.blank(t.dtype, t.dims[-2:])
    part.mine = False
    if t.strides is not None or not t.straight:
        part.strides = low.strides(t)[-2:]
        turned = t.order.index(t.rank - 2) > t.order.index(t.rank - 1)
        part.order = (1, 0) if turned else (0, 1)
    return part
