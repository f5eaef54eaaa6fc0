"""Gradients of slices: zeros with the gradient in the slice's place.

    aten.select_backward.default(%g, [8, 3], 0, %i)      ->      memset(p9, ...); p9 + i * 3 gets g

Where a loop adds such gradients up, the slice is added to the total in its place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from runtime.ir import Operator
from runtime.native.lowering import Lowering, Part
from runtime.native.nest import Nest
from runtime.native.values import Expr, Tensor, Unsupported
from runtime.native.views import axis, narrow, select


def _give(low: Lowering, op: Operator, of: Callable[[Tensor], Tensor]) -> None:
    """Zeros with the gradient in a part; not made where all that happens is that they are added to a total."""
    g = low.memory(low.tensor(op.args[0]))
    dims = low.sizes(op.args[1])
    low.flush()
    if is_only_added(low, op):
        low.parts[op.outputs[0]] = Part(low.same(g), dims, of)
        return
    made = low.fresh(g.dtype, dims)
    zero(low, made)
    put(low, made, Part(g, dims, of), add=False)
    low.give(op.outputs[0], made)


def is_only_added(low: Lowering, op: Operator) -> bool:
    """Whether nothing happens to what an Operator gives but that it is added to a total."""
    (out,) = op.outputs
    readers = [other for other in (low.around[-1] if low.around else ()) if out in other.inputs or any(
        out in block.captures() for block in other.blocks)]  # fmt: skip
    return len(readers) == 1 and readers[0].name == "grad.accumulate" and readers[0].args[0] is not out and (
        out in low.live.dying[id(readers[0])] and out not in low.live.pinned)  # fmt: skip


def zero(low: Lowering, t: Tensor) -> None:
    """Set dense memory to zero."""
    low.w.line(f"d2s_zero(p{t.n}, ({low.w.product(t.dims)}) * sizeof({t.ctype}));")


def put(low: Lowering, whole: Tensor, part: Part, *, add: bool) -> None:
    """Write a part of some memory, or add to it."""
    if part.rows:
        add_rows(low, whole, part)
        return
    to, g = part.of(whole), part.grad
    if to.rank != g.rank:
        raise Unsupported("another rank")
    for own, other in zip(to.dims, g.dims):
        if own != other:
            low.w.bail(f"{own} != {other}")
    if add:
        nest = Nest(to.dims, to.order)
        nest.store(low, to, f"{nest.load(low, to)} + {nest.load(low, g)}")
        nest.write(low)
    else:
        low.copy(to, g)
    low.release(to)


def row_number(low: Lowering, numbers: Sequence[Tensor], counts: Sequence[Expr], negative: bool) -> None:
    """The ``k`` of the row that has the ``i``-th of each of these numbers, one a dimension; one that is out of range
    ends the attempt. ``negative``: from the end, too."""
    for place, (one, count) in enumerate(zip(numbers, counts, strict=True)):
        k = f"k{place}" if place else "k"
        low.w.line(f"i64 {k} = p{one.n}[i];")
        if negative:
            low.w.line(f"{k} += {k} < 0 ? {count} : 0;")
        low.w.bail(f"{k} < 0 || {k} >= {count}")
        if place:
            low.w.line(f"k = k * {count} + {k};")


def add_rows(low: Lowering, whole: Tensor, part: Part) -> None:
    """Add rows where their numbers say, one after another."""
    numbers, g = part.rows, part.grad
    width = low.w.product(part.dims[len(numbers) :])
    with low.w.block(f"for (i64 i = 0; i < {low.w.product(numbers[0].dims)}; i++)"):
        if part.padding is not None:
            low.w.line(f"if (p{numbers[0].n}[i] == {part.padding}) continue;")
        row_number(low, numbers, part.dims[: len(numbers)], part.padding is None)
        low.w.line("#pragma GCC ivdep")
        low.w.line(f"for (i64 j = 0; j < {width}; j++) p{whole.n}[k * {width} + j] += p{g.n}[i * {width} + j];")


def emit_select(low: Lowering, op: Operator) -> None:
    """The gradient of ``select``."""
    index = low.integer(op.args[3])
    _give(low, op, lambda whole: select(low, whole, axis(whole, op.args[2]), index))


def emit_slice(low: Lowering, op: Operator) -> None:
    """The gradient of ``slice`` with fixed ends and step 1."""
    dims, place = op.args[1], op.args[2]
    start, end, step = op.args[3:6]
    if not isinstance(dims, (list, tuple)) or type(place) is not int or not -len(dims) <= place < len(dims):
        raise Unsupported("sizes that are no list")
    size = dims[place]
    if step != 1 or type(start) is not int or type(end) is not int or type(size) is not int:
        raise Unsupported("ends that are not known")
    first, last = (min(max(one + size if one < 0 else one, 0), size) for one in (start, end))
    length: Expr = max(last - first, 0)
    _give(low, op, lambda whole: narrow(low, whole, axis(whole, place), first, length))
