"""``host.np.*``: functions of NumPy's over memory of tensors, called when the Program runs.

    %b : f32[3] = host.np.sort({"array": %a}) attrs {gives: ["array"]}

An operand ``{"array": %t}`` is the array that shares a tensor's memory, ``{"generic": %t}`` a scalar of NumPy's;
tensors that stand for themselves are given as they are. ``gives`` says what each result is: an ``array``, a
``generic``, a ``tensor``, a ``number`` of Python's (``1j + np.float64(2)``); ``many``: whether they are the items of a
tuple or list. The table is closed, and has no function that reads a file or calls another one; those that write an
array (``WRITING``) write a copy, and give it.
"""

from __future__ import annotations

import functools
import importlib
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy
import torch

from runtime import torch_internals
from runtime.ir.definition import Fail, OpDefinition
from runtime.ir.operator import Operator
from runtime.ir.types import TensorType
from runtime.ir.variable import Variable
from runtime.ops.arity import check_attrs, check_blocks

FAMILY = "host.np."
ERRORS = ("ignore", "warn", "raise", "print")
"""What NumPy may do where a floating point error is met."""
USUAL_ERRORS = {"divide": "warn", "over": "warn", "under": "ignore", "invalid": "warn"}
"""``numpy.geterr()`` as it is at first; Operators that are called under another setting have it as ``errors``."""
METHODS = (
    "__getitem__", "all", "any", "argmax", "argmin", "argsort", "astype", "clip", "conj", "conjugate", "copy",
    "cumprod", "cumsum", "diagonal", "dot", "flatten", "max", "mean", "min", "prod", "ravel", "repeat", "reshape",
    "round", "searchsorted", "squeeze", "std", "sum", "swapaxes", "take", "trace", "transpose", "var", "view",
)  # fmt: skip
"""Methods of arrays that change nothing."""
_PLAIN = (
    "all", "allclose", "amax", "amin", "angle", "any", "append", "argmax", "argmin", "argpartition", "argsort",
    "around", "array", "array_equal", "array_equiv", "array_split", "atleast_1d", "atleast_2d", "atleast_3d",
    "average", "bincount", "broadcast_to", "clip", "column_stack", "concatenate", "convolve", "copy", "corrcoef",
    "correlate", "count_nonzero", "cov", "cross", "cumprod", "cumsum", "diag", "diagonal", "diff", "digitize", "dot",
    "dsplit", "dstack", "einsum", "expand_dims", "flip", "fliplr", "flipud", "gradient", "histogram", "hsplit",
    "hstack", "imag", "inner", "interp", "isclose", "kron", "max", "mean", "median", "meshgrid", "min", "moveaxis",
    "nan_to_num", "nanargmax", "nanargmin", "nancumprod", "nancumsum", "nanmax", "nanmean", "nanmedian", "nanmin",
    "nanpercentile", "nanprod", "nanquantile", "nanstd", "nansum", "nanvar", "ndim", "outer", "pad", "partition",
    "percentile", "prod", "ptp", "quantile", "ravel", "real", "repeat", "reshape", "resize", "roll", "rollaxis",
    "rot90", "round", "searchsorted", "select", "shape", "sinc", "size", "sort", "split", "squeeze", "stack", "std",
    "sum", "swapaxes", "take", "take_along_axis", "tensordot", "tile", "trace", "transpose", "trapezoid", "tril",
    "triu", "unwrap", "vander", "var", "vdot", "vsplit", "vstack", "where", "zeros_like", "ones_like", "full_like",
    "isreal", "iscomplex", "fix", "isposinf", "isneginf",
)  # fmt: skip
_LINALG = (
    "cholesky", "cond", "det", "eigh", "eigvalsh", "inv", "matrix_norm", "matrix_power", "matrix_rank", "multi_dot",
    "norm", "pinv", "qr", "slogdet", "solve", "svd", "svdvals", "vector_norm",
)  # fmt: skip
_FFT = ("fft", "ifft", "rfft", "irfft", "fft2", "ifft2", "fftn", "ifftn", "fftshift", "ifftshift")
_CHANGING = ("putmask", "place", "fill_diagonal", "put_along_axis")
"""Functions that write the array which they are given first, and nothing where they raise."""
_UFUNC_METHODS = ("reduce", "accumulate", "outer")
PREDICATES = ("allclose", "array_equal", "array_equiv")
"""Functions that give one of Python's bools."""
OF_UFUNCS: dict[str, Callable[..., Any]] = {
    "add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "divide": operator.truediv,
    "floor_divide": operator.floordiv, "remainder": operator.mod, "power": operator.pow, "divmod": divmod,
    "left_shift": operator.lshift, "right_shift": operator.rshift, "bitwise_and": operator.and_,
    "bitwise_or": operator.or_, "bitwise_xor": operator.xor, "equal": operator.eq, "not_equal": operator.ne,
    "less": operator.lt, "less_equal": operator.le, "greater": operator.gt, "greater_equal": operator.ge,
    "negative": operator.neg, "positive": operator.pos, "invert": operator.invert, "absolute": operator.abs,
}  # fmt: skip
"""What Python's operators do with arrays, and the operators: with scalars they are other functions. These round and
warn in other ways, and what they give depends on the other operand: of a complex number of Python's and a ``float64``
Python makes one of its own, and ``None`` is equal to no scalar."""
OPERATORS: dict[str, Callable[..., Any]] = {f"operator.{one.__name__}": one for one in OF_UFUNCS.values()}
OPERATORS["operator.round"] = round


def _writing() -> dict[str, Callable[..., Any]]:
    found = {name: getattr(numpy, name) for name in _CHANGING}
    found |= {f"{name}.at": getattr(numpy, name).at for name in _ufuncs() if getattr(numpy, name).signature is None}
    return {**found, "ndarray.__setitem__": operator.setitem}


def _ufuncs() -> list[str]:
    return sorted(name for name, value in vars(numpy).items() if type(value) is numpy.ufunc)  # dir() would import more


def _names() -> list[str]:
    ufuncs = _ufuncs()
    found = [name for name in _PLAIN if hasattr(numpy, name)] + ufuncs
    found += [f"{name}.{method}" for name in ufuncs for method in _UFUNC_METHODS
              if getattr(numpy, name).nin == 2 and getattr(numpy, name).nout == 1]  # fmt: skip
    found += [f"linalg.{name}" for name in _LINALG if hasattr(numpy.linalg, name)]
    found += [f"fft.{name}" for name in _FFT]
    return [*found, *(f"ndarray.{name}" for name in METHODS), *OPERATORS, *WRITING]


WRITING = _writing()
"""Functions that write an array: a copy of it is written here, and is what they give."""
NAMES = frozenset(_names())
"""What may be called, as dotted names in ``numpy``, and ``OPERATORS``."""


@functools.cache
def function_of(name: str) -> Callable[..., Any]:
    """The function of a name in the table. Errors raised: KeyError for another one."""
    if name not in NAMES:
        raise KeyError(name)
    if name in OPERATORS:
        return OPERATORS[name]
    if name in WRITING:
        return functools.partial(_written, WRITING[name])
    if name in PREDICATES:
        return functools.partial(_predicate, name)
    if name.startswith("ndarray."):
        return functools.partial(_method, name.removeprefix("ndarray."))
    module, _, rest = name.rpartition(".") if name.startswith(("linalg.", "fft.")) else ("", "", name)
    found: Any = importlib.import_module(f"numpy.{module}") if module else numpy
    for part in rest.split("."):
        found = getattr(found, part)
    return found


def is_ufunc(name: str) -> bool:
    """Whether a name in the table is that of a ufunc: what it gives has the shape to which its operands are broadcast.

    >>> is_ufunc("add"), is_ufunc("add.reduce")
    (True, False)
    """
    return type(function_of(name)) is numpy.ufunc


def _predicate(name: str, *args: Any, **kwargs: Any) -> numpy.bool_:
    """A bool of Python's, as Variables carry it."""
    return numpy.bool_(getattr(numpy, name)(*args, **kwargs))


def _written(function: Callable[..., Any], array: Any, *args: Any, **kwargs: Any) -> Any:
    """A copy of an array, once a function has written it."""
    if type(array) is not numpy.ndarray:
        raise TypeError(f"only an array of NumPy's is written, not {type(array).__name__}")
    copy = array.copy("K")
    function(copy, *args, **kwargs)
    return copy


def _method(name: str, owner: Any, *args: Any, **kwargs: Any) -> Any:
    """A method of an array, or of a scalar."""
    if not isinstance(owner, (numpy.ndarray, numpy.generic)):
        raise TypeError(f"{name} is a method of NumPy's arrays, not of {type(owner).__name__}")
    return getattr(owner, name)(*args, **kwargs)


def given(value: Any) -> Any:
    """An operand's value as NumPy is given it."""
    if type(value) is dict:
        ((kind, tensor),) = value.items()
        array = tensor.detach().numpy()
        return array[()] if kind == "generic" else array
    if type(value) in (list, tuple):
        return type(value)(map(given, value))
    if type(value) is slice:
        return slice(given(value.start), given(value.stop), given(value.step))
    return value


def kind_of(value: Any) -> str | None:
    """What a result is, None for what no Variable carries."""
    if isinstance(value, torch.Tensor):
        return "tensor"
    if type(value) is numpy.ndarray:
        return "array" if _dtype(value.dtype) else None
    if type(value) in (bool, int, float, complex):
        return "number"
    return "generic" if isinstance(value, numpy.generic) and _dtype(value.dtype) else None


def _dtype(dtype: Any) -> bool:
    return dtype.kind in "bifcu" and dtype.isnative and (dtype.kind, dtype.itemsize) not in (("f", 16), ("c", 32))


def shareable(array: numpy.ndarray[Any, Any]) -> bool:
    """Whether a tensor can share an array's memory: no stride is negative or in the middle of an element, and it may
    be written."""
    size = max(array.itemsize, 1)
    return bool(array.flags.writeable) and all(stride >= 0 and not stride % size for stride in array.strides)


@functools.cache
def has_dtype(dtype: torch.dtype) -> bool:
    """Whether NumPy has a dtype of torch's: bfloat16 it has not.

    >>> has_dtype(torch.float32), has_dtype(torch.bfloat16)
    (True, False)
    """
    with torch_internals.no_modes():
        try:
            torch.empty(0, dtype=dtype, device="cpu").numpy()
        except TypeError:
            return False
        return True


def to_tensor(value: Any) -> torch.Tensor:
    """A tensor of an array or number of NumPy's, in the array's own memory where that can be.

    Raises:
        TypeError: Torch has no such dtype.
    """
    if isinstance(value, torch.Tensor):
        return value
    if not isinstance(value, numpy.ndarray):
        return torch.from_numpy(numpy.array(value))
    if not value.dtype.isnative:
        value = value.astype(value.dtype.newbyteorder("="))
    return torch.from_numpy(value if shareable(value) else numpy.array(value, order="C"))


def _tensors(op: Operator) -> tuple[Variable, ...]:
    return tuple(var for var in op.inputs if isinstance(var.type, TensorType))


_KINDS = {"array", "generic", "number", "tensor"}


def _verify(op: Operator, fail: Fail) -> None:
    check_blocks(op, fail, ())
    check_attrs(op, fail, {"gives": (list, tuple), "many": (bool,), "errors": (list, tuple)}, required=["gives"])
    if "out" in op.kwargs:
        fail("arity", f"{op.name} writes no array")
    if len(op.attrs["gives"]) != len(op.outputs) or not set(op.attrs["gives"]) <= _KINDS:
        fail("attrs", f"{op.name} says of each result what it is")
    errors = op.attrs.get("errors", list(USUAL_ERRORS.values()))
    if len(errors) != len(USUAL_ERRORS) or not set(errors) <= set(ERRORS):
        fail("attrs", f"{op.name} says what is done about each kind of floating point error")
    for output in op.outputs:
        if not isinstance(output.type, TensorType):
            fail("type", f"the results of {op.name} are carried by tensors")


DEFINITIONS: Sequence[OpDefinition] = [
    OpDefinition(FAMILY + name, f"NumPy's {name}.", verify=_verify, neutral=True, passes_gradient=False, views=_tensors)
    for name in sorted(NAMES)
]
"""The index: what a function gives may be its operands' memory."""
