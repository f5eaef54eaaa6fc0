"""What a user says about a tensor argument: its shape, with unknown sizes, its dtype and its name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy
import torch
from torch.nn.utils.rnn import PackedSequence

from runtime.ir.constants import TORCH_CONSTANTS


class InputSpec:
    """A tensor argument: ``shape`` (None or -1 for a size that may change), ``dtype`` and ``name``.

    ``stop_gradient=True``: no gradient flows to the argument. Equal specs hash equally.

    >>> InputSpec([None, 3], "float32", "x")
    InputSpec(shape=(None, 3), dtype=torch.float32, name='x')
    >>> InputSpec([-1, 3]) == InputSpec((None, 3), torch.float32)
    True

    Errors raised: TypeError or ValueError for a shape, dtype or name that is none.
    """

    __slots__ = ("dtype", "name", "shape", "stop_gradient")

    def __init__(
        self, shape: Sequence[int | None], dtype: str | torch.dtype = "float32", name: str | None = None,
        stop_gradient: bool = False,
    ) -> None:
        self.shape = _shape(shape)
        self.dtype = to_dtype(dtype)
        if name is not None and not isinstance(name, str):
            raise TypeError(f"the name of an InputSpec is a string or None, not {name!r}")
        if not isinstance(stop_gradient, bool):
            raise TypeError(f"stop_gradient is True or False, not {stop_gradient!r}")
        self.name = name
        self.stop_gradient = stop_gradient

    @classmethod
    def from_tensor(cls, tensor: torch.Tensor, name: str | None = None) -> InputSpec:
        """The spec of a tensor: all its sizes fixed.

        >>> InputSpec.from_tensor(torch.zeros(2, 3, dtype=torch.int64))
        InputSpec(shape=(2, 3), dtype=torch.int64)
        """
        if not isinstance(tensor, torch.Tensor):
            raise TypeError(f"InputSpec.from_tensor() takes a tensor, not {type(tensor).__name__}")
        return cls(tuple(tensor.shape), tensor.dtype, name)

    @classmethod
    def from_numpy(cls, array: Any, name: str | None = None) -> InputSpec:
        """The spec of a NumPy array: all its sizes fixed.

        >>> InputSpec.from_numpy(numpy.zeros((2, 3), "float64"), "x")
        InputSpec(shape=(2, 3), dtype=torch.float64, name='x')
        """
        if not isinstance(array, numpy.ndarray):
            raise TypeError(f"InputSpec.from_numpy() takes a NumPy array, not {type(array).__name__}")
        return cls(array.shape, str(array.dtype), name)

    @classmethod
    def packed(
        cls, features: Sequence[int | None], dtype: str | torch.dtype = "float32", *, enforce_sorted: bool = False
    ) -> PackedSequence:
        """The specs of a ``PackedSequence``: any number of sequences of any lengths, of vectors of a shape.

        ``enforce_sorted``: it was packed so, and has no indices.

        >>> InputSpec.packed([3]).data
        InputSpec(shape=(None, 3), dtype=torch.float32)
        """
        rows = cls([None, *_shape(features)], dtype)
        counts = [cls([None], "int64") for _ in range(3)]
        parts: tuple[Any, ...] = (rows, counts[0], *([None, None] if enforce_sorted else counts[1:]))
        return tuple.__new__(PackedSequence, parts)  # PyTorch's asks the parts what only tensors are asked

    def batch(self, batch_size: int | None) -> InputSpec:
        """Put a batch dimension in front, in place; returns the spec itself.

        >>> InputSpec([3]).batch(None)
        InputSpec(shape=(None, 3), dtype=torch.float32)
        """
        if isinstance(batch_size, (list, tuple)):
            if len(batch_size) != 1:
                raise ValueError(f"a batch is one dimension, not {batch_size!r}")
            batch_size = batch_size[0]
        self.shape = (*_shape([batch_size]), *self.shape)
        return self

    def unbatch(self) -> InputSpec:
        """Take the first dimension away, in place; returns the spec itself. ValueError if there is none."""
        if not self.shape:
            raise ValueError("an InputSpec without dimensions has no batch dimension")
        self.shape = self.shape[1:]
        return self

    @property
    def dynamic(self) -> frozenset[int]:
        """The dimensions whose size may change."""
        return frozenset(dim for dim, size in enumerate(self.shape) if size is None)

    def _key(self) -> tuple[Any, ...]:
        return (self.shape, self.dtype, self.name, self.stop_gradient)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, InputSpec) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        parts = [f"shape={self.shape}", f"dtype={self.dtype}"]
        parts += [f"name={self.name!r}"] if self.name is not None else []
        parts += ["stop_gradient=True"] if self.stop_gradient else []
        return f"InputSpec({', '.join(parts)})"


def to_dtype(dtype: Any) -> torch.dtype:
    """A dtype from torch's, or from its name in torch or NumPy.

    >>> to_dtype("float32"), to_dtype("torch.int64"), to_dtype("bool")
    (torch.float32, torch.int64, torch.bool)

    Errors raised: TypeError for anything else.
    """
    if isinstance(dtype, torch.dtype):
        return dtype
    if isinstance(dtype, str):
        found = TORCH_CONSTANTS.get(dtype if dtype.startswith("torch.") else f"torch.{dtype}")
        if isinstance(found, torch.dtype):
            return found
    elif isinstance(dtype, (numpy.dtype, type)):
        try:
            return to_dtype(str(numpy.dtype(dtype)))
        except TypeError:
            pass
    raise TypeError(f"{dtype!r} is no dtype; use torch's, or a name such as 'float32'")


def _shape(shape: Any) -> tuple[int | None, ...]:
    if not isinstance(shape, (list, tuple)):
        raise TypeError(f"the shape of an InputSpec is a list or tuple of sizes, not {shape!r}")
    sizes: list[int | None] = []
    for size in shape:
        if size is None or (type(size) is int and size == -1):
            sizes.append(None)
        elif isinstance(size, (int, numpy.integer)) and not isinstance(size, bool):
            if size < 0:
                raise ValueError(f"a size is not negative (None or -1: it may change), but the shape is {shape!r}")
            sizes.append(int(size))
        else:
            raise TypeError(f"a size is an int, None or -1, but the shape is {shape!r}")
    return tuple(sizes)


__all__ = ["InputSpec", "to_dtype"]
