"""Largest and smallest elements with their places, sorting, running sums.

    aten.topk.default(%x, 3)      ->      for each row: d2s_order_f(places, ..., row, n); the first three of them
"""

from __future__ import annotations

import torch

from runtime.export.c.elements import arguments, at, dtype_of, each, known, ready, size
from runtime.ir import Operator
from runtime.native.lowering import Lowering
from runtime.native.pointwise import FLOATS
from runtime.native.values import CTYPES, Expr, Tensor, Unsupported
from runtime.native.views import axis

_ENDS = {torch.float32: "f", torch.float64: "d", torch.int64: "i", torch.int32: "w", torch.uint8: "b", torch.bool: "b"}


def _better(x: Tensor, new: str, old: str, largest: bool) -> str:
    """Whether an element comes before the best so far; nan comes before all."""
    sign = ">" if largest else "<"
    if x.dtype not in FLOATS:
        return f"{new} {sign} {old}"
    return f"{new} {sign} {old} || ({new} != {new} && {old} == {old})"


def emit_argument(low: Lowering, op: Operator) -> None:
    """``argmax`` and ``argmin``: the place of the first best, among all elements or along a dimension."""
    call = arguments(op)
    (x,) = ready(low, call["self"])
    largest = "argmax" in op.name
    w = low.w
    if call["dim"] is None:
        total = w.product(x.dims)
        if call["keepdim"]:
            raise Unsupported("keepdim without a dimension")
        w.bail(f"!({total})")
        made = low.fresh(torch.int64, ())
        place, best = size(low, "0"), w.local(x.ctype, "v")
        number = size(low, "0")
        w.line(f"{best} = p{x.n}[0];")
        with each(low, x.dims) as places:
            element = at(low, x, *places)
            w.line(f"if ({_better(x, element, best, largest)}) {{ {best} = {element}; {place} = {number}; }}")
            w.line(f"{number}++;")
        w.line(f"p{made.n}[0] = {place};")
        low.give(op.outputs[0], made)
        return
    _along(low, op, x, known(call["dim"], "a dimension"), bool(call["keepdim"]), largest, [None, op.outputs[0]])


def emit_extreme(low: Lowering, op: Operator) -> None:
    """``max`` and ``min`` along a dimension, with places."""
    call = arguments(op)
    (x,) = ready(low, call["self"])
    largest = ".max." in op.name
    _along(low, op, x, known(call["dim"], "a dimension"), bool(call["keepdim"]), largest, list(op.outputs))


def _along(low: Lowering, op: Operator, x: Tensor, dim: int, keep: bool, largest: bool, outputs: list[object]) -> None:
    w = low.w
    if not x.rank:
        raise Unsupported("a number")
    dim = axis(x, dim)
    n = x.dims[dim]
    if isinstance(n, str):
        w.bail(f"{n} < 1")
    stay = (*x.dims[:dim], *x.dims[dim + 1 :])
    dims = (*x.dims[:dim], *([1] if keep else []), *x.dims[dim + 1 :])
    values, places = low.fresh(x.dtype, dims), low.fresh(torch.int64, dims)
    rows = Tensor(values.n, x.dtype, stay, order=tuple(range(len(stay))))
    found = Tensor(places.n, torch.int64, stay, order=tuple(range(len(stay))))
    best, place = w.local(x.ctype, "v"), size(low, "0")
    with each(low, stay) as index:
        w.line(f"{best} = {at(low, x, *index[:dim], 0, *index[dim:])}; {place} = 0;")
        with each(low, (n,)) as (j,):
            element = at(low, x, *index[:dim], j, *index[dim:])
            w.line(f"if ({_better(x, element, best, largest)}) {{ {best} = {element}; {place} = {j}; }}")
        w.line(f"{at(low, rows, *index)} = {best}; {at(low, found, *index)} = {place};")
    for out, value in zip(outputs, (values, places)):
        if out is None:
            low.release(value)
        else:
            low.give(out, value)  # type: ignore[arg-type]  # Variables


def emit_sort(low: Lowering, op: Operator) -> None:
    """``sort``, ``argsort``, ``topk``: places in order, the order of equals kept; nan is the largest."""
    call = arguments(op)
    (x,) = ready(low, call["self"])
    w = low.w
    if not x.rank or x.dtype not in _ENDS:
        raise Unsupported("a number, or this dtype")
    dim = axis(x, known(call["dim"], "a dimension"))
    n = x.dims[dim]
    short = op.name.split(".")[1]
    count: Expr = low.size(call["k"]) if short == "topk" else n
    if short == "topk" and not (isinstance(count, int) and isinstance(n, int) and 0 <= count <= n):
        w.bail(f"{count} < 0 || {count} > {n}")
    down = bool(call["largest"] if short == "topk" else call["descending"])
    dims = (*x.dims[:dim], count, *x.dims[dim + 1 :])
    values, places = low.fresh(x.dtype, dims), low.fresh(torch.int64, dims)
    row, order = low.fresh(x.dtype, (n,)), low.fresh(torch.int64, (w.arith("*", n, 2),))
    stay = (*x.dims[:dim], *x.dims[dim + 1 :])
    with each(low, stay) as index:
        with each(low, (n,)) as (j,):
            w.line(f"p{row.n}[{j}] = {at(low, x, *index[:dim], j, *index[dim:])};")
        w.line(f"d2s_order_{_ENDS[x.dtype]}(p{order.n}, p{row.n}, {n}, {int(down)});")
        with each(low, (count,)) as (j,):
            w.line(f"{at(low, places, *index[:dim], j, *index[dim:])} = p{order.n}[{j}];")
            w.line(f"{at(low, values, *index[:dim], j, *index[dim:])} = p{row.n}[p{order.n}[{j}]];")
    low.release(row)
    low.release(order)
    made = [places] if short == "argsort" else [values, places]
    for out, value in zip(op.outputs, made):
        low.give(out, value)


def emit_running(low: Lowering, op: Operator) -> None:
    """``cumsum`` and ``cumprod``: floats are added in double, as PyTorch does."""
    call = arguments(op)
    (x,) = ready(low, call["self"])
    dtype = dtype_of(op.outputs[0])
    if (x.dtype in FLOATS) != (dtype in FLOATS):
        raise Unsupported("another dtype")
    made = low.fresh(dtype, x.dims)
    product = "cumprod" in op.name
    total = low.w.local("double" if dtype in FLOATS else "uint64_t", "v")
    dim = axis(x, known(call["dim"], "a dimension")) if x.rank else 0
    stay = (*x.dims[:dim], *x.dims[dim + 1 :])
    with each(low, stay) as index:
        low.w.line(f"{total} = {int(product)};")
        with each(low, x.dims[dim : dim + 1]) as j:
            element = at(low, x, *index[:dim], *j, *index[dim:])
            cast = "" if dtype in FLOATS else "(uint64_t)"
            low.w.line(f"{total} {'*' if product else '+'}= {cast}{element};")
            low.w.line(f"{at(low, made, *index[:dim], *j, *index[dim:])} = ({CTYPES[dtype]}){total};")
    low.give(op.outputs[0], made)


NAMES = {
    emit_argument: ["argmax.default", "argmin.default"],
    emit_extreme: ["max.dim", "min.dim"],
    emit_sort: ["sort.default", "argsort.default", "topk.default"],
    emit_running: ["cumsum.default", "cumprod.default"],
}
