"""What the rules of this room write with: loops over sizes, elements at indices, sizes that are computed.

    with each(low, (4, "d7_1")) as (i, j): line(f"{at(low, y, i, j)} = {at(low, x, j, i)};")
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch

from runtime.ir import Operand, Operator, TensorType, Variable
from runtime.native.lowering import Lowering
from runtime.native.pointwise import FLOATS
from runtime.native.values import CTYPES, Expr, Tensor, Unsupported
from runtime.ops import aten


@contextmanager
def each(low: Lowering, dims: Sequence[Expr]) -> Iterator[list[str]]:
    """Loops over all indices of these sizes, the last innermost; their names. Without sizes, a block of its own."""
    names = [f"j{low.w.fresh()}" for _ in dims]
    headers = [f"for (i64 {name} = 0; {name} < {dim}; {name}++)" for name, dim in zip(names, dims)]
    with ExitStack() as stack:
        for header in headers or [""]:
            stack.enter_context(low.w.block(header))
        yield names


def at(low: Lowering, t: Tensor, *index: Expr) -> str:
    """The element at indices; a dimension of size 1 gives its one element everywhere."""
    strides = low.strides(t)
    parts = [str(place) if stride == 1 else f"{place} * {stride}" for place, stride, dim in zip(index, strides, t.dims)
             if stride != 0 and dim != 1 and place != 0]  # fmt: skip
    return f"p{t.n}[{' + '.join(parts) or '0'}]"


def arguments(op: Operator) -> dict[str, Any]:
    """The arguments of an operator of ATen by name, defaults included."""
    return aten.arguments(aten.resolve(op.name), op.args, op.kwargs)


def ready(low: Lowering, *operands: Operand) -> list[Tensor]:
    """Tensors in memory, whatever their strides; nothing is pending."""
    found = [low.memory(low.tensor(one)) for one in operands]
    low.flush()
    return found


def dense(low: Lowering, *operands: Operand) -> list[Tensor]:
    """Tensors in dense row-major memory, copied where they are not. ``close`` gives up the copies."""
    found = ready(low, *operands)
    return [low.dense(one) for one in found]


def close(low: Lowering, given: Sequence[Operand], used: Sequence[Tensor]) -> None:
    """Give up copies that ``dense`` made."""
    for operand, one in zip(given, used):
        if low.value(operand) is not one:
            low.release(one)


def floats(*tensors: Tensor | None) -> str:
    """The letter of the dtype of floats that all tensors have. Errors raised: Unsupported if there is none."""
    found = {one.dtype for one in tensors if one is not None}
    if len(found) > 1 or not found.issubset(FLOATS):
        raise Unsupported("these dtypes: one of float32 and float64 is needed")
    return "f" if torch.float32 in found else "d"


def dtype_of(out: Variable) -> torch.dtype:
    """The dtype that the Program says a result has."""
    type_ = out.type
    if not isinstance(type_, TensorType) or type_.dtype not in CTYPES:
        raise Unsupported(f"a result of {getattr(type_, 'dtype', None)}")
    assert type_.dtype is not None
    return type_.dtype


def size(low: Lowering, text: str) -> str:
    """A size that is computed, in a local of its own."""
    name = low.w.local("i64", "z")
    low.w.line(f"{name} = {text};")
    return name


def known(value: Operand, what: str) -> int:
    """A whole number that stands in the Program."""
    if type(value) is not int:
        raise Unsupported(f"{what} that is computed")
    return value


def triple(values: Operand, count: int, default: int | None = None) -> list[Expr]:
    """One number for each of ``count`` dimensions: given as one for all, or one each."""
    if isinstance(values, int):
        values = [values]
    if not isinstance(values, (list, tuple)) or any(type(one) is not int for one in values):
        raise Unsupported("sizes that are computed")
    found: list[Expr] = [one for one in values if isinstance(one, int)]
    if not found and default is not None:
        found = [default]
    return found * count if len(found) == 1 else found


def numbers(values: Sequence[Expr], lead: Expr) -> str:
    """Three numbers as an array of C, filled up in front.

    >>> numbers([2, "d7_1"], 1)
    '(const i64[]){1, 2, d7_1}'
    """
    return f"(const i64[]){{{', '.join(map(str, [*[lead] * (3 - len(values)), *values]))}}}"
