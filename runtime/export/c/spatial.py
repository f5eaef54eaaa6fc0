"""Convolutions and pooling over one to three dimensions; fewer than three are filled up with sizes of 1.

    aten.conv2d.default(%x, %w, %b, [2, 2])      ->      d2s_cols_f(columns, x, ...); gemm_f(0, 0, ..., w, ..., columns)
"""

from __future__ import annotations

from typing import Any

from runtime.export.c.elements import arguments, close, dense, dtype_of, each, floats, numbers, size, triple
from runtime.ir import Operator
from runtime.native.lowering import Lowering
from runtime.native.values import Expr, Tensor, Unsupported


def _spatial(name: str) -> int:
    """How many dimensions a pool goes over, by its name: ``adaptive_avg_pool2d``."""
    return int(name.partition("pool")[2][0])


def _batch(low: Lowering, x: Tensor, spatial: int) -> tuple[Expr, Expr, list[Expr]]:
    """How many examples, how many channels, the sizes."""
    if x.rank not in (spatial + 1, spatial + 2):
        raise Unsupported("a rank")
    return (x.dims[0] if x.rank == spatial + 2 else 1), x.dims[-spatial - 1], list(x.dims[-spatial:])


def _out(low: Lowering, sizes: list[Expr], kernel: list[Expr], stride: list[Expr], before: list[Expr],
         after: list[Expr], dilation: list[Expr], ceil: bool = False) -> list[Expr]:  # fmt: skip
    """The sizes of what comes out."""
    found: list[Expr] = []
    for n, k, s, a, b, d in zip(sizes, kernel, stride, before, after, dilation):
        if all(isinstance(one, int) for one in (n, k)):
            room = int(n) + int(a) + int(b) - int(d) * (int(k) - 1) - 1
            if room < 0:
                raise Unsupported("a kernel that is larger than what it goes over")
            count = (room + (int(s) - 1 if ceil else 0)) // int(s) + 1
            found.append(count - 1 if ceil and (count - 1) * int(s) >= int(n) + int(a) else count)
            continue
        room_ = size(low, f"{n} + {a} + {b} - {d} * ({k} - 1) - 1")
        low.w.bail(f"{room_} < 0")
        made = size(low, f"({room_}{f' + {s} - 1' if ceil else ''}) / {s} + 1")
        if ceil:
            low.w.line(f"{made} -= ({made} - 1) * {s} >= {n} + {a};")
        found.append(made)
    return found


def emit_convolution(low: Lowering, op: Operator) -> None:
    """``conv1d``, ``conv2d``, ``conv3d``: the weight as a matrix times what each place of the kernel sees."""
    call = arguments(op)
    given = [one for one in (call["input"], call["weight"], call.get("bias")) if one is not None]
    used = dense(low, *given)
    x, weight = used[:2]
    bias = used[2] if len(used) > 2 else None
    kind, w = floats(*used), low.w
    spatial = weight.rank - 2
    examples, channels, sizes = _batch(low, x, spatial)
    groups = call["groups"]
    outs, per, kernel = weight.dims[0], weight.dims[1], list(weight.dims[2:])
    if type(groups) is not int or not all(isinstance(one, int) for one in (outs, per, *kernel)) or not isinstance(
            channels, int) or channels != int(per) * groups:  # fmt: skip
        raise Unsupported("sizes that are not known")
    stride, dilation = triple(call["stride"], spatial), triple(call["dilation"], spatial)
    padding: Any = call["padding"]
    before: list[Expr]
    after: list[Expr]
    if padding == "valid":
        before = [0] * spatial
        after = before
    elif padding == "same":
        whole = [int(d) * (int(k) - 1) for d, k in zip(dilation, kernel)]
        before = [one // 2 for one in whole]
        after = [one - one // 2 for one in whole]
    else:
        before = triple(padding, spatial)
        after = before
    out = _out(low, sizes, kernel, stride, before, after, dilation)
    made = low.fresh(x.dtype, (*([examples] if x.rank == spatial + 2 else []), outs, *out))
    places, depth = w.product(tuple(out)), int(per)
    for one in kernel:
        depth *= int(one)
    share = int(outs) // groups
    inner = w.product(tuple(sizes))
    plain = all(one == 1 for one in (*kernel, *stride)) and not any((*before, *after))
    columns = None if plain else low.fresh(x.dtype, (depth, places))
    low.flush()
    with each(low, (examples, groups)) as (n, g):
        w.line(f"const {x.ctype} *image = p{x.n} + ({n} * {channels} + {g} * {per}) * {inner};")
        w.line(f"{x.ctype} *to = p{made.n} + ({n} * {outs} + {g} * {share}) * {places};")
        if columns is not None:
            about = [numbers(sizes, 1), numbers(kernel, 1), numbers(out, 1), numbers(stride, 1), numbers(before, 0)]
            w.line(f"d2s_cols_{kind}(p{columns.n}, image, {per}, {', '.join(about)}, {numbers(dilation, 1)});")
        if bias is not None:
            with each(low, (share, places)) as (o, i):
                w.line(f"to[{o} * {places} + {i}] = p{bias.n}[{g} * {share} + {o}];")
        source = "image" if columns is None else f"p{columns.n}"
        w.line(f"gemm_{kind}(0, 0, {share}, {places}, {depth}, p{weight.n} + {g} * {share * depth}, {depth}, {source}, "
               f"{places}, to, {places}, {'0' if bias is None else 'to'}, {places});")  # fmt: skip
    if columns is not None:
        low.release(columns)
    close(low, given, used)
    low.give(op.outputs[0], made)


def emit_transposed(low: Lowering, op: Operator) -> None:
    """``conv_transpose1d`` to ``3d``: each element of the input adds the kernel to the places around it."""
    call = arguments(op)
    given = [one for one in (call["input"], call["weight"], call.get("bias")) if one is not None]
    used = dense(low, *given)
    x, weight = used[:2]
    bias = used[2] if len(used) > 2 else None
    kind, w = floats(*used), low.w
    spatial = weight.rank - 2
    examples, channels, sizes = _batch(low, x, spatial)
    groups = call["groups"]
    per, kernel = weight.dims[1], list(weight.dims[2:])
    if type(groups) is not int or not all(isinstance(one, int) for one in (per, channels, *kernel)):
        raise Unsupported("sizes that are not known")
    stride, dilation = triple(call["stride"], spatial), triple(call["dilation"], spatial)
    padding, extra = triple(call["padding"], spatial), triple(call["output_padding"], spatial)
    out: list[Expr] = []
    for n, k, s, p, e, d in zip(sizes, kernel, stride, padding, extra, dilation):
        more = int(d) * (int(k) - 1) + int(e) + 1 - 2 * int(p)
        out.append((n - 1) * int(s) + more if isinstance(n, int) else size(low, f"({n} - 1) * {s} + {more}"))
        if isinstance(out[-1], int):
            if out[-1] <= 0:
                raise Unsupported("a result without elements")
        else:
            w.bail(f"{out[-1]} <= 0")
    outs = int(per) * groups
    made = low.fresh(x.dtype, (*([examples] if x.rank == spatial + 2 else []), outs, *out))
    inner, places, share = w.product(tuple(sizes)), w.product(tuple(out)), int(channels) // groups
    depth = int(per)
    for one in kernel:
        depth *= int(one)
    with each(low, (examples, groups)) as (n, g):
        w.line(f"{x.ctype} *to = p{made.n} + ({n} * {outs} + {g} * {per}) * {places};")
        with each(low, (per, places)) as (o, i):
            w.line(f"to[{o} * {places} + {i}] = {'0' if bias is None else f'p{bias.n}[{g} * {per} + {o}]'};")
        w.line(f"d2s_spread_{kind}(to, p{x.n} + ({n} * {channels} + {g} * {share}) * {inner}, p{weight.n} + {g} * "
               f"{share * depth}, {share}, {per}, {numbers(sizes, 1)}, {numbers(kernel, 1)}, {numbers(out, 1)}, "
               f"{numbers(stride, 1)}, {numbers(padding, 0)}, {numbers(dilation, 1)});")  # fmt: skip
    close(low, given, used)
    low.give(op.outputs[0], made)


def emit_pool(low: Lowering, op: Operator) -> None:
    """``max_pool``, ``avg_pool``, with or without the places of the largest."""
    call = arguments(op)
    short = op.name.split(".")[1]
    spatial = _spatial(short)
    given = [call.get("self", call.get("input"))]
    used = dense(low, *given)
    (x,) = used
    kind, w = floats(x), low.w
    examples, channels, sizes = _batch(low, x, spatial)
    kernel = triple(call["kernel_size"], spatial)
    stride = triple(call["stride"], spatial) if call.get("stride") else kernel
    padding = triple(call["padding"], spatial)
    dilation = triple(call.get("dilation", 1), spatial)
    out = _out(low, sizes, kernel, stride, padding, padding, dilation, bool(call["ceil_mode"]))
    lead = x.dims[: x.rank - spatial]
    made = low.fresh(x.dtype, (*lead, *out))
    planes = w.product(lead)
    common = (f"{planes}, {numbers(sizes, 1)}, {numbers(kernel, 1)}, {numbers(out, 1)}, {numbers(stride, 1)}, "
              f"{numbers(padding, 0)}")  # fmt: skip
    if "max" in short:
        where = None
        if len(op.outputs) > 1:
            where = low.fresh(dtype_of(op.outputs[1]), (*lead, *out))
        w.line(f"d2s_top_{kind}(p{made.n}, {'0' if where is None else f'p{where.n}'}, p{x.n}, {common}, "
               f"{numbers(dilation, 1)});")  # fmt: skip
        if where is not None:
            low.give(op.outputs[1], where)
    else:
        divisor = call.get("divisor_override")
        if divisor is not None and type(divisor) is not int:
            raise Unsupported("a divisor that is computed")
        w.line(f"d2s_mean_{kind}(p{made.n}, p{x.n}, {common}, {int(bool(call['count_include_pad']))}, {divisor or 0});")
    close(low, given, used)
    low.give(op.outputs[0], made)


def emit_adaptive(low: Lowering, op: Operator) -> None:
    """``adaptive_avg_pool`` and ``adaptive_max_pool``: as many places as asked for."""
    call = arguments(op)
    short = op.name.split(".")[1]
    spatial = _spatial(short)
    given = [call["self"]]
    used = dense(low, *given)
    (x,) = used
    kind, w = floats(x), low.w
    _, _, sizes = _batch(low, x, spatial)
    wanted: Any = call["output_size"]
    out = [low.size(one) for one in (wanted if isinstance(wanted, (list, tuple)) else [wanted])]
    out = out * spatial if len(out) == 1 else out
    lead = x.dims[: x.rank - spatial]
    for one in sizes:
        if isinstance(one, str):
            w.bail(f"{one} < 1")
    made = low.fresh(x.dtype, (*lead, *out))
    largest = "max" in short
    where = low.fresh(dtype_of(op.outputs[1]), (*lead, *out)) if len(op.outputs) > 1 else None
    w.line(f"d2s_adapt_{kind}(p{made.n}, {'0' if where is None else f'p{where.n}'}, p{x.n}, {w.product(lead)}, "
           f"{numbers(sizes, 1)}, {numbers(out, 1)}, {int(largest)});")  # fmt: skip
    if where is not None:
        low.give(op.outputs[1], where)
    close(low, given, used)
    low.give(op.outputs[0], made)


NAMES = {
    emit_convolution: [f"conv{n}d.{kind}" for n in (1, 2, 3) for kind in ("default", "padding")],
    emit_transposed: ["conv_transpose1d.default", "conv_transpose2d.input", "conv_transpose3d.input"],
    emit_pool: [*(f"max_pool{n}d.default" for n in (1, 2, 3)), *(f"avg_pool{n}d.default" for n in (1, 2, 3)),
                *(f"max_pool{n}d_with_indices.default" for n in (1, 2, 3))],
    emit_adaptive: [f"adaptive_{kind}_pool{n}d.default" for kind in ("avg", "max") for n in (1, 2, 3)],
}  # fmt: skip
