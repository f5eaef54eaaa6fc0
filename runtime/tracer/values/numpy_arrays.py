"""What stands for NumPy's arrays and scalars while tracing: a tensor of the trace, whose memory is theirs.

Both are frozen records of one tensor, so that branches, loops and lists carry them as such. NumPy's own protocols hand
what is done to them to ``recording.numpy_calls``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy
import torch

from runtime.kinds import is_a
from runtime.ops.host_numpy import OF_UFUNCS
from runtime.tracer.ambient import state

Record = Callable[[str, tuple[Any, ...], dict[str, Any]], Any]
_record: list[Record] = []


def register(record: Record) -> None:
    """What records a call of a function of NumPy's, by its dotted name."""
    _record[:] = [record]


@dataclass(frozen=True, eq=False, repr=False)
class NumpyArray(numpy.lib.mixins.NDArrayOperatorsMixin):
    """An array."""

    tensor: torch.Tensor

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        name = ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"
        of_scalars = OF_UFUNCS.get(name)  # Python's operators come here, and not what the user calls by name
        if of_scalars is not None and not kwargs and not any(map(_is_array, inputs)):
            name = f"operator.{of_scalars.__name__}"
        return _record[0](name, inputs, kwargs)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        module = str(func.__module__).removeprefix("numpy").removeprefix(".")
        return _record[0](f"{module}.{func.__name__}" if module else func.__name__, args, kwargs)

    def _refuse(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise state.current().error(
            "a NumPy array that is only known while the Program runs is used by code that is not converted, or written",
            code="D2S213", hint="Use NumPy's functions that give another array, or tensor operations.")

    def __len__(self) -> int:
        return len(self.tensor)

    def __iter__(self) -> Iterator[Any]:
        """The items, for C code that takes them as they are: unpacking, ``list``, ``zip``."""
        return iter([_record[0]("ndarray.__getitem__", (self, index), {}) for index in range(len(self.tensor))])

    __array__ = __float__ = __int__ = __index__ = __complex__ = __bool__ = _refuse
    __round__ = __trunc__ = __floor__ = __ceil__ = _refuse
    __getitem__ = __setitem__ = __contains__ = __str__ = __repr__ = __format__ = __reduce_ex__ = _refuse
    __copy__ = __deepcopy__ = __hash__ = _refuse


class NumpyScalar(NumpyArray):
    """A scalar of NumPy's: what ``a.sum()`` gives."""

    def __round__(self, digits: int | None = None) -> Any:
        return self._refuse() if digits is None else _record[0]("operator.round", (self, digits), {})


def _is_array(value: Any) -> bool:
    return is_a(value, (NumpyArray, numpy.ndarray)) and not is_a(value, NumpyScalar)


class NumpyCopy(NumpyArray):
    """An array of which a run has a copy where eager has a view, so that it may not leave: no tensor can share memory
    with negative strides, or such that may not be written."""


@dataclass(frozen=True, eq=False)
class ArrayMethod:
    """A method of an array, not called yet."""

    array: NumpyArray
    name: str


def dtype_of(value: NumpyArray) -> numpy.dtype[Any]:
    """The dtype that NumPy has for the tensor's."""
    return numpy.dtype(str(value.tensor.dtype).removeprefix("torch."))


__all__ = ["ArrayMethod", "NumpyArray", "NumpyCopy", "NumpyScalar", "dtype_of", "register"]
