"""Indexing a tensor with staged numbers: each part of the key becomes the view operator that it means.

    x[n]            aten.select.int(x, 0, n)
    x[:n, 1]        aten.slice.Tensor(x, 0, None, n), aten.select.int(..., 1, 1)
    x[n, idx]       the same, then aten.index.Tensor(..., [idx])

A list is a tensor of its numbers, or of its bools a mask; a list that holds tensors, slices, None or lists means what a
tuple of these does, as ``torch/csrc/autograd/python_variable_indexing.cpp`` decides.
"""

from __future__ import annotations

import contextlib
import operator
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy
import torch

from dy2static.operators.calls import growing, numpy_arrays
from dy2static.operators.calls.call import call
from dy2static.operators.calls.sequences import StagedRange, StagedSize
from dy2static.operators.calls.torch_values import to_torch
from dy2static.operators.shared.staging import Session, Staged, any_staged, structure
from runtime import torch_internals
from runtime.ir import TensorType
from runtime.ir.types import said
from runtime.ir.views import HOLE
from runtime.kinds import is_a
from runtime.ops.scalar import kind_of_dtype
from runtime.tracer.ambient.theirs import theirs
from runtime.tracer.memory.storage_table import RecordedStep, TensorInfo
from runtime.tracer.recording import nonwritable_views, scalar_masks
from runtime.tracer.values import array
from runtime.tracer.values.numpy_arrays import NumpyArray


def is_staged(session: Session, tensor: torch.Tensor, key: Any) -> bool:
    """Whether the key holds staged numbers, or integer tensors without dimensions, which count as numbers."""
    return any_staged([key]) or any(_is_number(session, part) for part in (key if is_a(key, tuple) else (key,)))


def _is_number(session: Session, part: Any) -> bool:
    if not is_a(part, torch.Tensor):
        return False
    fake = session.fake(part)
    return fake.dim() == 0 and not (
        fake.dtype.is_floating_point or fake.dtype.is_complex or fake.dtype in scalar_masks.MASKS)


def settled(session: Session, tensor: torch.Tensor, key: Any) -> Any:
    """The key without lists that hold what only the run knows: these are tuples or tensors, as torch takes them."""
    if _is_list(key) and not growing.is_growing(key) and _means_tuple(key):
        if not _holds_values(session, key):
            return key
        theirs(operator.getitem, torch.zeros(1), [None])  # warns that such lists will be something else one day
        key = numpy_arrays.as_key(session, tensor, tuple(key))
    if is_a(key, tuple) and not growing.is_growing(key):
        parts = [_without_values(session, tensor, part) for part in key]
        return key if all(map(operator.is_, parts, key)) else tuple(parts)
    return _without_values(session, tensor, key)


_SEQUENCES = (list, deque, range, StagedRange)
_FEW = 32
"""Lists of fewer items may mean tuples."""


def _is_list(part: Any) -> bool:
    return is_a(part, _SEQUENCES)


def _means_tuple(key: Any) -> bool:
    """Whether torch takes a list as a tuple of indices."""
    if is_a(key, (range, StagedRange)) or len(key) >= _FEW:
        return False
    inside = (torch.Tensor, slice, str, bytes, tuple, numpy.ndarray, NumpyArray, *_SEQUENCES)
    return any(item is None or item is Ellipsis or is_a(item, inside) for item in key)


def _holds_values(session: Session, part: Any) -> bool:
    """Whether something in a list is only known while the Program runs."""
    if is_a(part, (torch.Tensor, StagedRange)) or growing.is_growing(part):
        return True
    if is_a(part, (list, deque, tuple)):
        return any(_holds_values(session, item) for item in part)
    return any_staged([part])


def _without_values(session: Session, tensor: torch.Tensor, part: Any) -> Any:
    """A part of a key: the tensor that a list of numbers means, if only the run knows these."""
    is_list = _is_list(part) or is_a(part, tuple) and not is_a(part, (StagedSize, torch.Size))
    return _as_index(session, tensor, part) if is_list and _holds_values(session, part) else part


def plain(session: Session, key: Any) -> Any:
    """The key as torch takes it."""
    if is_a(key, tuple):
        return tuple(plain(session, part) for part in key)
    return tuple(key) if is_a(key, StagedSize) else key


def read(session: Session, tensor: torch.Tensor, key: Any) -> torch.Tensor:
    """``tensor[key]``."""
    view, indices = _views(session, tensor, key)
    if not indices:
        return view if view is not tensor else tensor[...]
    return torch.ops.aten.index.Tensor(view, indices)


@contextmanager
def in_words_of_subscripts(session: Session, tensor: torch.Tensor, key: Any) -> Iterator[None]:
    """``tensor[key]`` is read or written in here, by a key without staged numbers: which of its ints is out of range is
    said as of a subscript."""
    parts = key if is_a(key, tuple) else (key,)
    places = [place for place, part in enumerate(parts) if is_a(part, int) and not is_a(part, bool)]
    block, before = session.scope.block, len(session.scope.block.ops)
    yield
    if places and any(type(size) is not int for size in session.fake(tensor).shape):
        made = [op for op in block.ops[before:] if op.name == "aten.select.int" and "subscript" not in op.attrs]
        for op, place in zip(made, places):
            op.attrs["subscript"] = place


def write(session: Session, tensor: torch.Tensor, key: Any, value: Any) -> None:
    """``tensor[key] = value``."""
    view, indices = _views(session, tensor, key)
    if indices:
        if not is_a(value, torch.Tensor):
            value = torch.scalar_tensor(value, dtype=tensor.dtype, device=tensor.device)
        torch.ops.aten.index_put_.default(view, indices, value)
    elif is_a(value, torch.Tensor):
        view.copy_(_of_rank(value, view.dim()))
    else:
        view.fill_(value)


def is_expanded(session: Session, tensor: torch.Tensor, key: Any, value: Any) -> bool:
    """Whether ``tensor[key] = value`` needs ``write_expanded``: before PyTorch 2.13, the assignment itself asks whether
    the sizes are equal, and these are not known."""
    if not torch_internals.before(2, 13) or not is_a(value, torch.Tensor):
        return False
    parts = key if is_a(key, tuple) else (key,)
    if not all(type(part) in (int, slice, type(None), type(Ellipsis)) for part in parts):
        return False
    return torch_internals.is_unknown([session.fake(tensor), session.fake(value)])


def write_expanded(session: Session, tensor: torch.Tensor, key: Any, value: torch.Tensor) -> None:
    """``tensor[key] = value`` in the steps that newer versions take, for a key of ints, slices and Nones."""
    view, _ = _views(session, tensor, key)
    value = _of_rank(value, view.dim())
    view.copy_(value.expand(session.fake(view).shape))


def _of_rank(value: torch.Tensor, rank: int) -> torch.Tensor:
    """Without the leading dimensions of size 1 that an assignment passes over."""
    while value.dim() > rank and value.shape[0] == 1:
        value = value[0]
    return value


def _views(session: Session, tensor: torch.Tensor, key: Any) -> tuple[torch.Tensor, list[torch.Tensor | None]]:
    """The view that the ints, slices and Nones of a key select, and the tensors that index its dimensions."""
    parts = list(key) if is_a(key, tuple) else [key]
    parts = [part.item() if is_a(part, numpy.integer) or _is_number(session, part) else part for part in parts]
    used = sum(_dims_of(part) for part in parts)
    rank = session.fake(tensor).dim()
    if used > rank:
        raise IndexError(f"too many indices for tensor of dimension {rank}")
    if not any(part is Ellipsis for part in parts):
        parts.append(Ellipsis)
    indices: list[torch.Tensor | None] = []
    dim = 0
    for place, part in enumerate(parts):
        if part is Ellipsis:
            dim += rank - used
        elif part is None:
            tensor = tensor.unsqueeze(dim)
            dim += 1
        elif _is_bool(part) or scalar_masks.is_one(part):
            tensor = tensor.unsqueeze(dim)
            indices.extend([None] * (dim - len(indices)))
            indices.append(_as_mask(session, tensor, part).to(torch.bool).reshape(1))
            dim += 1
        elif is_a(part, (int, Staged)):
            tensor = select(session, tensor, dim, part, place)
        elif is_a(part, slice):
            tensor = slice_(session, tensor, dim, part)
            dim += 1
        else:
            index = part if is_a(part, torch.Tensor) else _as_index(session, tensor, part)  # numbers all known
            indices.extend([None] * (dim - len(indices)))
            indices.append(index)
            dim += index.dim() if index.dtype in scalar_masks.MASKS else 1
    return tensor, indices


def _is_bool(part: Any) -> bool:
    return is_a(part, bool) or is_a(part, Staged) and part.kind == "bool"


def _as_mask(session: Session, tensor: torch.Tensor, part: Any) -> torch.Tensor:
    """A bool as a tensor without dimensions."""
    if is_a(part, torch.Tensor):
        return part
    return torch.scalar_tensor(to_torch(session, part), dtype=torch.bool, device=tensor.device)


def _dims_of(part: Any) -> int:
    if part is None or part is Ellipsis or _is_bool(part):
        return 0
    if is_a(part, torch.Tensor) and part.dtype in scalar_masks.MASKS:
        return part.dim()
    return 1


def _as_index(session: Session, tensor: torch.Tensor, part: Any) -> torch.Tensor:
    """A list of numbers, or of lists of them, as index; one of bools as a mask.

    Raises:
        TraceError: D2S253, nobody knows before the run how many bools there are, or what the items are.
    """
    if is_a(part, numpy.ndarray):
        part = part.tolist()
    if not is_a(part, (tuple, *_SEQUENCES)):
        theirs(operator.getitem, torch.zeros(1), part)  # raises, as torch words it
        raise TypeError(f"a tensor cannot be indexed with {type(part).__name__}")
    _require_numbers(session, part)
    kinds = set(_kinds(session, part))
    if growing.is_growing(part) and not kinds <= {"int", "float"}:
        raise growing.refusal(session, "the index of a tensor, made")
    dtype = torch.bool if kinds == {"bool"} else torch.int64
    index = call(torch.tensor, list(part) if is_a(part, deque) and not growing.is_growing(part) else part,
                 dtype=dtype, device=tensor.device)  # fmt: skip
    assert is_a(index, torch.Tensor)
    return index


def _require_numbers(session: Session, part: Any) -> None:
    """Errors raised: TypeError, ValueError, RuntimeError: something in a list is no number; in PyTorch's words."""

    def known(value: Any) -> Any:
        if is_a(value, torch.Tensor):
            fake = session.fake(value)
            return torch.zeros([size if type(size) is int else 1 for size in fake.shape], dtype=fake.dtype)
        if _is_open(value):
            return [0]
        if is_a(value, (list, deque, tuple)):
            if any(map(_is_open, value)) and not all(is_a(one, (tuple, *_SEQUENCES)) for one in value):
                raise growing.refusal(session, "the index of a tensor, made of numbers and")
            return list(map(known, value))
        return value.python_type(0) if is_a(value, Staged) else value

    with torch_internals.no_modes(), contextlib.suppress(IndexError):  # of other sizes
        theirs(operator.getitem, torch.zeros(1), (known(part),))


def _is_open(part: Any) -> bool:
    return is_a(part, StagedRange) or growing.is_growing(part)


def _kinds(session: Session, part: Any) -> Iterator[str]:
    """What the items are, of lists inside too."""
    if is_a(part, (range, StagedRange)):
        yield "int"
    elif growing.is_growing(part):
        item = array.content(part).item
        yield (item.kind if is_a(item, structure.Number)
               else type(item.value).__name__ if is_a(item, structure.Known) else "")
    elif is_a(part, (list, deque, tuple)):
        for item in part:
            yield from _kinds(session, item)
    elif is_a(part, torch.Tensor):
        yield kind_of_dtype(session.fake(part).dtype)
    else:
        yield part.kind if is_a(part, Staged) else type(part).__name__


def select(session: Session, tensor: torch.Tensor, dim: int, index: Any, place: int = 0) -> torch.Tensor:
    """What an int at a ``place`` of a subscript gives: a view, at a position that may be staged."""
    if not is_a(index, Staged):
        return tensor.select(dim, index)
    if index.kind != "int":
        theirs(operator.getitem, torch.zeros(1), index.python_type("1"))  # raises, as torch words it
        raise TypeError(f"a tensor cannot be indexed with {index.kind}")
    fake = session.fake(tensor)
    shape, strides = list(fake.shape), list(torch_internals.strides_of(fake))
    size = shape.pop(dim)
    strides.pop(dim)
    if type(size) is int and size == 0:
        raise IndexError(f"index out of range: dimension {dim} has size 0")
    return _view(session, tensor, "aten.select.int", (dim, session.operand(index)), shape, strides,
                 {"subscript": place})


def slice_(session: Session, tensor: torch.Tensor, dim: int, part: slice) -> torch.Tensor:
    """``tensor[..., start:stop:step]``: a view whose size may be staged."""
    if not any_staged([part]):
        if part == slice(None):
            return tensor
        return tensor[(slice(None),) * dim + (part,)]
    if is_a(part.step, Staged):
        raise session.error("the step of a tensor's slice is only known while the Program runs", code="D2S265",
                            hint="Use a fixed step.")
    step = 1 if part.step is None else part.step
    if step <= 0:
        raise ValueError("step must be greater than zero")
    fake = session.fake(tensor)
    shape: list[Any] = list(fake.shape)
    strides: list[Any] = list(torch_internals.strides_of(fake))
    known = step == 1 and (part.start is None or type(part.start) is int and part.start == 0)
    shape[dim], symbol = session.sizes.first_of(shape[dim], part.stop) if known else (session.sizes.fresh(), None)
    strides[dim] = strides[dim] * step
    bounds = (session.operand(part.start), session.operand(part.stop))
    out = _view(session, tensor, "aten.slice.Tensor", (dim, *bounds, step), shape, strides)
    if symbol is not None:
        session.sizes.bind_size(symbol, session.read(out), dim)
    return out


def _view(session: Session, tensor: torch.Tensor, name: str, rest: tuple[Any, ...], shape: list[Any],
          strides: list[Any], attrs: dict[str, Any] | None = None) -> torch.Tensor:
    """Record a view operator whose result has these sizes."""
    info, source = session.info(tensor), session.read(tensor)
    fake = session.fake(tensor)
    with torch_internals.fake_only(session.fake_mode):
        out = torch.empty_strided(shape, strides, dtype=fake.dtype, device=fake.device)
    modes = session.modes()
    step = RecordedStep(name, (HOLE, *rest), (), 0, 1, modes)
    made = TensorInfo(info.storage, (*info.steps, step), info.requires_grad, info.layout_known)
    made.grad_in_some_runs = info.grad_in_some_runs
    made.fixed = nonwritable_views.of(session, info, step, info.requires_grad)
    session.register(out, made)
    type_ = TensorType(fake.dtype, None, said(fake.device))
    (var,) = session.emit(name, (source, *rest), types=[type_], attrs=attrs, modes=modes)
    made.cached, made.cached_for = var, info.storage.value
    made.made_for = info.storage.value
    session.sizes.bind_sizes(out, var)
    var.type = session.type_of(out)
    return out
