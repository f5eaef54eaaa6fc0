"""A dictionary keyed by tensors, which are compared by identity and not kept alive."""

from __future__ import annotations

import weakref
from typing import Generic, TypeVar

import torch

from runtime.kinds import is_a

Value = TypeVar("Value")


class _Key(weakref.ref[torch.Tensor]):
    """A tensor that is a key, and its identity, which outlives it."""

    __slots__ = ("identity",)
    identity: int


class TensorDict(Generic[Value]):
    """A dictionary keyed by the identity of tensors, which does not keep them alive.

    PyTorch's own takes the tensor out of its weak reference at each comparison of keys, which was a tenth of a trace.
    Here the identity is the key: an entry goes when its tensor does, before another can have the identity.
    """

    def __init__(self) -> None:
        self._entries: dict[int, tuple[_Key, Value]] = {}
        entries = self._entries

        def forget(key: weakref.ref[torch.Tensor]) -> None:
            assert is_a(key, _Key)
            found = entries.get(key.identity)
            if found is not None and found[0] is key:
                del entries[key.identity]

        self._forget = forget

    def __setitem__(self, tensor: torch.Tensor, value: Value) -> None:
        found = self._entries.get(id(tensor))
        if found is None:
            key = _Key(tensor, self._forget)
            key.identity = id(tensor)
        else:
            key = found[0]
        self._entries[id(tensor)] = (key, value)

    def __contains__(self, tensor: torch.Tensor) -> bool:
        return id(tensor) in self._entries

    def __getitem__(self, tensor: torch.Tensor) -> Value:
        return self._entries[id(tensor)][1]

    def get(self, tensor: torch.Tensor, default: Value | None = None) -> Value | None:
        found = self._entries.get(id(tensor))
        return default if found is None else found[1]

    def pop(self, tensor: torch.Tensor) -> None:
        """Drop the entry of a tensor, if there is one."""
        self._entries.pop(id(tensor), None)

    def values(self) -> list[Value]:
        """Those of all tensors that are alive."""
        return [value for _, value in self._entries.copy().values()]

    def items(self) -> list[tuple[torch.Tensor, Value]]:
        """The tensors that are alive, with their values."""
        alive = [(key(), value) for key, value in self._entries.copy().values()]
        return [(tensor, value) for tensor, value in alive if tensor is not None]

    def copy(self) -> TensorDict[Value]:
        """Another dictionary with the same entries."""
        found: TensorDict[Value] = TensorDict()
        found.update(self)
        return found

    def update(self, other: TensorDict[Value]) -> None:
        """Add the entries of another one."""
        for key, value in other._entries.copy().values():
            tensor = key()
            if tensor is not None:
                self[tensor] = value

    def clear(self) -> None:
        """Drop all entries."""
        self._entries.clear()


__all__ = ["TensorDict"]
