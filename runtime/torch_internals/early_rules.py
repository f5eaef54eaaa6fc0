"""Shape rules as PyTorch 2.13 has them, for operators whose rule in older versions asks what is not known.

The rules of other operators come by here, too: those that write into a tensor copy, those that split one slice.
"""

from __future__ import annotations

import sys
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor

from runtime.kinds import is_a
from runtime.torch_internals.versions import before


def by_early_rule(func: Any, args: Any, kwargs: Any) -> Any:
    """The result of an operator on fake tensors that has a rule here, None if torch's rule holds.

    Raises:
        RuntimeError: What the operator does not take, and torch's rule does.
    """
    if not before(2, 13) or kwargs:
        return None
    if func is torch.ops.aten.copy_.default:
        return _copied(*args)
    if func is torch.ops.aten.slice.Tensor:
        return _sliced(*args)
    if func is torch.ops.aten.embedding.default and args[1].dtype not in (torch.int64, torch.int32):
        raise RuntimeError(f"embedding takes indices of type int64 or int32, not {args[1].dtype}")
    return None


def mended(func: Any, result: Any) -> Any:
    """What torch's rule gives, with dtypes as the operator gives them: ``unique`` counts and places in int64."""
    if func._schema.name not in _UNIQUE or not before(2, 13):
        return result
    values, *numbers = result
    return (values, *(one.new_empty(one.shape, dtype=torch.int64) for one in numbers))


_UNIQUE = frozenset({"aten::_unique2", "aten::unique_dim", "aten::unique_consecutive"})


def _copied(written: Any, source: Any, non_blocking: bool = False) -> Any:
    """``copy_``: torch asks whether each size is 1, also where both are the same."""
    if not all(type(one) is FakeTensor and one.layout is torch.strided for one in (written, source)):
        return None
    missing = written.dim() - source.dim()
    if missing < 0 or written.constant is not None or not _any_symbols((*written.shape, *source.shape)):
        return None
    for size, given in zip(written.shape[missing:], source.shape):
        _check_fits(size, given)
    return written


def _check_fits(size: Any, given: Any) -> None:
    """A 1 fits any size; two sizes that are not known to be equal have to be when the Program runs."""
    from torch.fx.experimental.symbolic_shapes import statically_known_true

    if not statically_known_true(given == 1) and not statically_known_true(size == given):
        torch._check(size == given, lambda: f"a size of {given} does not fit one of {size}")


def _sliced(tensor: Any, dim: int = 0, start: Any = None, end: Any = None, step: Any = 1) -> Any:
    """``slice``: torch gives a size of its own where the bounds are known and only their order is not."""
    if type(tensor) is not FakeTensor or tensor.layout is not torch.strided or tensor.is_quantized:
        return None
    rank = tensor.dim()
    if not -rank <= dim < rank or type(step) is not int or step < 1:
        return None
    size = tensor.shape[dim]
    if not _any_symbols((size, start, end)):
        return None
    first = 0 if start is None else _place(size, start)
    last = size if end is None or (type(end) is int and end == sys.maxsize) else _place(size, end)
    if first is None or last is None:
        return None
    sizes, strides = list(tensor.shape), list(tensor.stride())
    offset = tensor.storage_offset() + first * strides[dim]
    sizes[dim] = (_length(first, last) + step - 1) // step
    strides[dim] = strides[dim] * step
    return tensor.as_strided(sizes, strides, offset)


def _place(size: Any, index: Any) -> Any:
    """Where a bound of a slice is, from the start; None if not even its sign is known."""
    from torch.fx.experimental.symbolic_shapes import guard_or_false, sym_and

    if guard_or_false(sym_and(index >= 0, index <= size)):
        return index
    if guard_or_false(sym_and(index < 0, index >= -size)):
        return index + size
    if guard_or_false(index < -size):
        return 0
    if guard_or_false(index > size):
        return size
    if guard_or_false(index >= 0):
        return torch.sym_min(index, size)
    return torch.sym_max(index + size, 0) if guard_or_false(index < 0) else None


def _length(first: Any, last: Any) -> Any:
    from torch.fx.experimental.symbolic_shapes import guard_or_false

    if guard_or_false(last >= first):
        return last - first
    return 0 if guard_or_false(first >= last) else torch.sym_max(last - first, 0)


def _any_symbols(numbers: Any) -> bool:
    return any(is_a(one, torch.SymInt) for one in numbers)
