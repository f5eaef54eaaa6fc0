"""Tensors of an artefact: what is stored of each, so that ties, shared memory and memory layout survive.

Each distinct tensor is stored once. Tensors that are different views of one memory are stored as that memory (a flat
base) and their places in it; so a write to one is seen through the other after loading, as before.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from runtime.errors import StorageError
from runtime.ir.constants import TORCH_CONSTANTS
from runtime.storage.document import Node, text_of
from runtime.storage.operands import read_device
from runtime.storage.table import DTYPES, Raw, copy_of

_KINDS = (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer)


@dataclass
class _Span:
    """Elements ``low`` to ``high`` of one storage, and the tensors that lie there."""

    low: int
    high: int
    members: list[int]


def check_storable(tensor: torch.Tensor, name: str) -> None:
    """Errors raised: StorageError naming the tensor if it cannot be stored exactly."""
    problem = ""
    if type(tensor) not in _KINDS:
        problem = f"of type {type(tensor).__module__}.{type(tensor).__qualname__}"
    elif tensor.layout is not torch.strided:
        problem = f"sparse (its layout is {tensor.layout})"
    elif tensor.is_quantized:
        problem = "quantized"
    elif tensor.device.type == "meta":
        problem = "on the device 'meta', so it has no values"
    if problem:
        raise StorageError(
            f"the tensor {name!r} is {problem} and cannot be saved",
            hint="An artefact holds plain dense tensors; convert it before saving.",
            code="D2S502",
        )


def pack(names: Sequence[str], tensors: Sequence[torch.Tensor]) -> tuple[list[dict[str, Any]], dict[str, torch.Tensor]]:
    """What describes each tensor, and the table to write: its key -> the tensor whose values it holds.

    Errors raised: StorageError for a tensor that is not plain and dense, or shares memory with one of another dtype.
    """
    for name, tensor in zip(names, tensors):
        check_storable(tensor, name)
    table: dict[str, torch.Tensor] = {}
    entries: list[dict[str, Any]] = [{} for _ in tensors]
    for span in _spans(tensors):
        first = tensors[span.members[0]]
        shared = len(span.members) > 1
        key = _free_key("shared memory" if shared else names[span.members[0]], table)
        table[key] = first
        if shared:
            table[key] = first.detach().as_strided((span.high - span.low,), (1,), span.low)
        for index in span.members:
            tensor = tensors[index]
            if tensor.dtype != first.dtype:
                raise StorageError(
                    f"{names[span.members[0]]!r} and {names[index]!r} share memory but not their dtype",
                    hint="That cannot be saved: give one of them memory of its own with .clone().",
                    code="D2S502",
                )
            entries[index] = _entry(key, tensor, int(tensor.storage_offset()) - span.low if shared else None)
    return entries, table


def _entry(key: str, tensor: torch.Tensor, offset: int | None) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "key": text_of(key),
        "dtype": str(tensor.dtype).removeprefix("torch."),
        "shape": list(tensor.shape),
        "device": str(tensor.device),
        "grad": tensor.requires_grad,
    }
    if offset is not None:
        entry |= {"stride": list(tensor.stride()), "offset": offset}
    elif not tensor.is_contiguous() and _dense(tuple(tensor.shape), tensor.stride()):
        entry["stride"] = list(tensor.stride())
    return entry


def _spans(tensors: Sequence[torch.Tensor]) -> list[_Span]:
    """Tensors by the memory they lie in; overlapping ones together."""
    by_storage: dict[tuple[str, int], list[tuple[int, int, int]]] = {}
    spans: list[_Span] = []
    for index, tensor in enumerate(tensors):
        low = int(tensor.storage_offset())
        high = low + 1 + sum((size - 1) * step for size, step in zip(tensor.shape, tensor.stride()))
        if tensor.numel() == 0:
            spans.append(_Span(low, low, [index]))
            continue
        place = (str(tensor.device), tensor.untyped_storage().data_ptr())
        size = tensor.element_size()
        by_storage.setdefault(place, []).append((low * size, high * size, index))
    for extents in by_storage.values():
        merged: list[_Span] = []
        for low, high, index in sorted(extents):
            if merged and low < merged[-1].high:
                merged[-1].high = max(merged[-1].high, high)
                merged[-1].members.append(index)
            else:
                merged.append(_Span(low, high, [index]))
        for span in merged:
            size = tensors[span.members[0]].element_size()
            spans.append(_Span(span.low // size, span.high // size, span.members))
    return sorted(spans, key=lambda span: min(span.members))


def _dense(shape: tuple[int, ...], stride: tuple[int, ...]) -> bool:
    """Whether the elements fill their memory without gaps or overlaps."""
    expected = 1
    for step, size in sorted((step, size) for step, size in zip(stride, shape) if size != 1):
        if step != expected:
            return False
        expected *= size
    return True


def _free_key(name: str, taken: Mapping[str, object]) -> str:
    if not name.isprintable() or name == "__metadata__":
        name = "tensor"
    key, number = name, 1
    while key in taken:
        key, number = f"{name}.{number}", number + 1
    return key


def unpack(
    nodes: Sequence[Node], table: Mapping[str, Raw], device: torch.device | None
) -> list[list[torch.Tensor]]:
    """The tensors that ``pack`` described, list by list, on ``device`` or where they were.

    Errors raised: StorageError if the table does not hold them, or their device is not there.
    """
    shared: dict[str, torch.Tensor] = {}
    with torch.inference_mode(False):
        return [[_tensor(item, table, device, shared) for item in node.items()] for node in nodes]


def _tensor(
    node: Node, table: Mapping[str, Raw], device: torch.device | None, shared: dict[str, torch.Tensor]
) -> torch.Tensor:
    fields = node.record("key", "dtype", "shape", "device", "grad", optional=("stride", "offset"))
    key = fields["key"].text()
    if key not in table:
        fields["key"].fail(f"the table holds no tensor {key!r}")
    dtype = TORCH_CONSTANTS.get("torch." + fields["dtype"].text())
    if not isinstance(dtype, torch.dtype):
        fields["dtype"].fail(f"this version of torch has no dtype {fields['dtype'].text()!r}")
    grad = fields["grad"].flag()
    if grad and not (dtype.is_floating_point or dtype.is_complex):
        fields["grad"].fail(f"a tensor of {dtype} has no gradient")
    place = device or read_device(fields["device"])
    shape = tuple(size.integer(0) for size in fields["shape"].items())
    stride = None
    if "stride" in fields:
        stride = tuple(step.integer(0) for step in fields["stride"].items(len(shape)))
    if "offset" in fields:
        if key not in shared:
            count = len(table[key].data) // dtype.itemsize
            shared[key] = _moved(_values(fields["key"], table[key], dtype, (count,), None), place, node)
        tensor = _view(fields["offset"], shared[key], dtype, shape, stride)
    else:
        if stride is not None and not _dense(shape, stride):
            fields["stride"].fail("these are not the strides of a dense tensor")
        tensor = _moved(_values(fields["key"], table[key], dtype, shape, stride), place, node)
    return tensor.requires_grad_(grad)


def _values(
    node: Node, raw: Raw, dtype: torch.dtype, shape: tuple[int, ...], stride: tuple[int, ...] | None
) -> torch.Tensor:
    plain = DTYPES.get(raw.dtype) is dtype
    if not plain and (raw.dtype != "U8" or dtype in DTYPES.values()):
        node.fail(f"the table holds a tensor of {raw.dtype}, not {dtype}")
    if (plain and raw.shape != shape) or len(raw.data) != math.prod(shape) * dtype.itemsize:
        node.fail(f"the table holds a tensor of shape {list(raw.shape)}, which is not {list(shape)} of {dtype}")
    return copy_of(raw, dtype, shape, stride)


def _view(
    node: Node, base: torch.Tensor, dtype: torch.dtype, shape: tuple[int, ...], stride: tuple[int, ...] | None
) -> torch.Tensor:
    offset = node.integer(0)
    if stride is None:
        node.fail("a tensor in shared memory needs its strides")
    last = offset + sum((size - 1) * step for size, step in zip(shape, stride))
    if base.dtype is not dtype or last >= base.numel() or 0 in shape:
        node.fail("the tensor lies outside the memory it is said to share, or is of another dtype")
    return base.as_strided(shape, stride, offset)


def _moved(tensor: torch.Tensor, device: torch.device, node: Node) -> torch.Tensor:
    if device.type == "cpu":
        return tensor
    try:
        return tensor.to(device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).partition("\n")[0]
        raise StorageError(
            f"{node.path}: the tensor was saved on device '{device}', which cannot be used here: {reason}",
            hint='Load it elsewhere: load(path, device="cpu").',
            code="D2S513",
        ) from None
