"""What a call's arguments and surroundings are, as a hashable key: equal keys may share a Program.

1, True and 1.0 never collide, nor do 0.0 and -0.0, -1 and -2, a list and a tuple. Sizes are not part of the key:
each Program says which of them it fixes.
"""

from __future__ import annotations

import array
import collections
import functools
import struct
import types
from collections.abc import Callable, Sequence
from typing import Any

import numpy
import torch

from runtime import torch_internals
from runtime.ir.template import Again, TensorSlot
from runtime.kinds import is_a
from runtime.tracer.ambient.objects import kind_of_items, own_items
from runtime.tracer.memory.storage_table import storage_key
from runtime.tracer.values.arguments import Arguments, Container, Open

Key = Any
"""A hashable value; it keeps alive every object that it compares by identity."""


class Same:
    """An object compared by identity and kept alive."""

    __slots__ = ("object",)

    def __init__(self, object: Any) -> None:
        self.object = object

    def __eq__(self, other: object) -> bool:
        return is_a(other, Same) and self.object is other.object

    def __hash__(self) -> int:
        return id(self.object)


def value_key(value: Any) -> Key:
    """The key of anything among the arguments: plain values by type and value, containers by content, others by
    identity.

    >>> len({value_key(v) for v in (1, True, 1.0, -1, -2, 0.0, -0.0, 1j, "1", b"1", None, (1,), [1], (True,))})
    14
    >>> value_key(float("nan")) == value_key(float("nan"))
    True
    """
    handler = _HANDLERS.get(type(value))
    if handler is not None:
        return handler(value)
    if is_a(value, numpy.generic):
        return ("numpy", type(value), value.dtype, value.tobytes())
    if is_a(value, tuple):  # torch.Size, a named tuple without tensors
        return (type(value), tuple(map(value_key, own_items(value))))
    if is_a(value, dict):  # of a user's class: its methods may give other items
        pairs = kind_of_items(type(value)).items(value)
        return (type(value), Same(value), tuple((value_key(key), value_key(item)) for key, item in pairs))
    if is_a(value, (list, set)):
        return (type(value), Same(value), tuple(map(value_key, own_items(value))))
    if is_a(value, collections.deque):
        return (type(value), Same(value), value.maxlen, tuple(map(value_key, own_items(value))))
    if is_a(value, (bytearray, array.array, memoryview)):
        return (type(value), Same(value), bytes(value))
    if is_a(value, _VIEWS):
        return (type(value), tuple(value_key(item) for item in value))
    if is_a(value, types.MappingProxyType):
        return (type(value), _dict(dict(value)))
    return (type(value), Same(value))  # Python lets most objects be given another class


_VIEWS: tuple[Any, ...] = (type({}.keys()), type({}.values()), type({}.items()))


def _by_value(value: Any) -> Key:
    return (type(value), value)


def _float(value: float) -> Key:
    return (float, struct.pack("d", value) if value == value else "nan")


def _items(value: Any) -> Key:
    return (type(value), tuple(value_key(item) for item in value))


def _slice(value: slice | range) -> Key:
    return (type(value), value_key(value.start), value_key(value.stop), value_key(value.step))


def _method(value: types.MethodType) -> Key:
    return (types.MethodType, value_key(value.__self__), Same(value.__func__))


def _partial(value: functools.partial[Any]) -> Key:
    return (functools.partial, value_key(value.func), value_key(value.args), value_key(dict(value.keywords)))


def _array(value: numpy.ndarray[Any, Any]) -> Key:
    if value.dtype.hasobject:
        return Same(value)
    return (numpy.ndarray, value.dtype, value.shape, value.strides, value.flags.writeable, value.tobytes())


def _dict(value: dict[Any, Any]) -> Key:
    return (dict, tuple((value_key(key), value_key(item)) for key, item in value.items()))


def _container(value: Container) -> Key:
    keys = None if value.keys is None else tuple(value_key(key) for key in value.keys)
    extra: Key = None
    if keys is not None and value.kind is not dict:
        fields = set(value.keys or ())
        own = getattr(value.original, "__dict__", {})
        extra = tuple((name, value_key(item)) for name, item in own.items() if name not in fields)
        factory = getattr(value.original, "default_factory", None)
        extra = (*extra, Same(factory)) if factory is not None else extra
    return (value.kind, keys, tuple(value_key(item) for item in value.items), extra)


_HANDLERS: dict[type, Callable[[Any], Key]] = {
    **dict.fromkeys((bool, int, str, bytes, type(None), torch.dtype, torch.device, torch.layout, torch.memory_format,
                     type(Ellipsis), type(NotImplemented), TensorSlot, Again, Open), _by_value),
    float: _float,
    complex: lambda value: (complex, _float(value.real), _float(value.imag)),
    tuple: _items, list: _items, set: _items, frozenset: _items, torch.Size: _items,
    dict: _dict, slice: _slice, range: _slice, types.MethodType: _method, functools.partial: _partial,
    numpy.ndarray: _array, Container: _container,
}  # fmt: skip


def arguments_key(arguments: Arguments) -> Key:
    """Structure and plain values of the arguments, and of every tensor all but its sizes and strides."""
    shape: Key = arguments.only_tensors
    if shape is None:
        shape = (tuple(arguments.template), tuple([value_key(value) for value in arguments.template.values()]))
    tensors = arguments.tensors
    return (shape, tuple([tensor_key(tensor) for tensor in tensors]), sharing(tensors) if len(tensors) > 1 else ())


def tensor_key(tensor: torch.Tensor) -> Key:
    """What a Program fixes of a tensor whatever its sizes are."""
    return (
        type(tensor), tensor.dtype, tensor.device, tensor.layout, tensor.dim(), tensor.requires_grad,
        tensor.is_inference(), tensor.is_conj(), tensor.is_neg(), torch_internals.sparse_key(tensor),
    )


def sharing(tensors: Sequence[torch.Tensor]) -> Key:
    """Which tensors share memory, and how: empty when none do."""
    groups: dict[Any, list[int]] = {}
    for index, tensor in enumerate(tensors):
        if tensor.layout is torch.strided:
            groups.setdefault(storage_key(tensor), []).append(index)
    shared = []
    for members in groups.values():
        if len(members) > 1:
            start = min(tensors[index].storage_offset() for index in members)
            shared.append(tuple(
                (index, tensors[index].storage_offset() - start, tuple(tensors[index].shape), tensors[index].stride())
                for index in members
            ))
    return tuple(shared)


def surroundings_key() -> Key:
    """PyTorch's global state as far as a Program depends on it."""
    return (
        torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch_internals.autocast_key(),
        torch.get_default_dtype(), torch_internals.default_device(), torch.are_deterministic_algorithms_enabled(),
    )


__all__ = ["Key", "Same", "arguments_key", "sharing", "surroundings_key", "tensor_key", "value_key"]
