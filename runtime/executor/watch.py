"""A dispatch mode around a limited run: each operator is computed without values first, on the device ``meta``.

    x + y, of 10 GB    ->    StorageError, before there is memory for it
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from runtime.executor.limits import OBJECT, Meter
from runtime.torch_internals import TorchDispatchMode


class Watch(TorchDispatchMode):
    """Looks at each operator before it runs."""

    def __init__(self, meter: Meter) -> None:
        super().__init__()
        self.meter = meter

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = str(func)
        for tensor in tensors_in([*args, *kwargs.values()]):
            size = tensor.numel() * tensor.element_size()
            if tensor.layout is torch.strided and size > tensor.untyped_storage().nbytes():
                self.meter.require_alone(size, f"the tensor of shape {list(tensor.shape)} that {name} would go through")
        self.meter.require(_expected(func, args, kwargs), f"the result of {name}")
        result = func(*args, **kwargs)
        for tensor in tensors_in([result]):
            self.meter.made(tensor)
        self.meter.require(0, f"after {name}")
        return result


def tensors_in(values: Sequence[Any]) -> list[torch.Tensor]:
    """The tensors among values, and in lists and tuples of them."""
    found: list[torch.Tensor] = []
    for value in values:
        if isinstance(value, torch.Tensor):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            found += tensors_in(value)
    return found


_COUNTED: dict[str, Callable[..., int]] = {
    "aten::repeat_interleave": lambda repeats, *rest, **more: int(repeats.sum()) * 8,
    "aten::bincount": lambda tensor, weights=None, minlength=0: max(
        int(tensor.max()) + 1 if tensor.numel() else 0, minlength) * 8,
    "aten::unbind": lambda tensor, dim=0: tensor.size(dim) * 10 * OBJECT,
    "aten::split": lambda tensor, size, dim=0: tensor.size(dim) // max(int(size), 1) * 10 * OBJECT
    if type(size) is int else 0,
}  # fmt: skip
"""Operators whose results are known from values alone, or are many: how many bytes they ask for."""


_seen: dict[Any, int] = {}
"""By operator and what its operands look like: the bytes of its results."""
_MOST_SEEN = 10_000


def _expected(func: Any, args: Any, kwargs: Any) -> int:
    """The bytes of an operator's results; 0 where they are memory that is there already, or follow from the operands.

    Operators that cannot run without values give no more than their operands hold (``nonzero``, ``unique``).
    """
    schema = func._schema
    counted = _COUNTED.get(schema.name)
    if counted is not None and (schema.name != "aten::repeat_interleave" or schema.overload_name == "Tensor"):
        return counted(*args, **kwargs)
    if all(one.alias_info is not None for one in schema.returns):
        return 0
    key = (func, _look(args), _look(list(kwargs.items())))
    try:
        found = _seen.get(key)
    except TypeError:  # something that has no hash
        return _computed(func, args, kwargs)
    if found is None:
        if len(_seen) > _MOST_SEEN:
            _seen.clear()
        found = _seen[key] = _computed(func, args, kwargs)
    return found


def _look(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.shape, value.stride() if value.layout is torch.strided else None, value.dtype
    if isinstance(value, (list, tuple)):
        return tuple(map(_look, value))
    return type(value), value


def _computed(func: Any, args: Any, kwargs: Any) -> int:
    """The bytes of an operator's results, from running it on the device ``meta``, where no random number is drawn."""
    try:
        given = {name: _as_meta(value) for name, value in kwargs.items() if name != "device"}
        if "device" in kwargs or any(one.name == "device" for one in func._schema.arguments):
            given["device"] = "meta"
        results = func(*[_as_meta(value) for value in args], **given)
    except (NotImplementedError, RuntimeError, TypeError):  # if it is wrong, it is so again in a moment, for the user
        return 0
    return sum(one.numel() * one.element_size() for one in tensors_in([results]) if one.layout is torch.strided)


def _as_meta(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        if value.layout is not torch.strided:
            raise NotImplementedError
        return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta")
    if type(value) in (list, tuple):
        return type(value)(map(_as_meta, value))
    return None if isinstance(value, torch.Generator) else value


__all__ = ["Watch", "tensors_in"]
