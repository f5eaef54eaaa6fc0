"""Scalar operators: Python numbers and strings, computed while the Program runs, with Python's exact semantics.

``FUNCTIONS`` maps each name to the Python callable that *is* its meaning; ``result_kind`` tells the type of a result
before it is computed.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch

from runtime.errors import TraceError
from runtime.ir.definition import About, Fail, OpDefinition
from runtime.ir.inference import type_of
from runtime.ir.operator import Operator
from runtime.ir.types import ScalarKind, ScalarType, TensorType, Type
from runtime.ops import exact
from runtime.ops.arity import check_plain

MATH = (
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "ceil", "comb", "copysign", "cos", "cosh", "degrees",
    "erf", "erfc", "exp", "expm1", "fabs", "factorial", "floor", "fmod", "gamma", "gcd", "hypot", "isclose",
    "isfinite", "isinf", "isnan", "isqrt", "lcm", "ldexp", "lgamma", "log", "log10", "log1p", "log2", "nextafter",
    "perm", "pow", "radians", "remainder", "sin", "sinh", "sqrt", "tan", "tanh", "trunc", "ulp",
)  # fmt: skip
"""The functions of ``math`` over numbers that give one number; each is ``scalar.math.<name>``."""
MATH_PAIRS = ("frexp", "modf")
"""Those that give two; each of these is a scalar operator of its own, ``scalar.math.<name>.0`` and ``.1``."""

TEXT_METHODS = (
    "capitalize", "casefold", "center", "count", "endswith", "expandtabs", "find", "index", "isalnum", "isalpha",
    "isascii", "isdecimal", "isdigit", "isidentifier", "islower", "isnumeric", "isprintable", "isspace", "istitle",
    "isupper", "ljust", "lower", "lstrip", "removeprefix", "removesuffix", "replace", "rfind", "rindex", "rjust",
    "rstrip", "startswith", "strip", "swapcase", "title", "upper", "zfill",
)  # fmt: skip
"""The methods of ``str`` that give one text, number or bool; each is ``scalar.str.<name>``."""

_PYTHON_TYPES: dict[ScalarKind, type] = {"int": int, "float": float, "bool": bool, "complex": complex, "str": str}


def _part_of(function: Callable[[Any], Any], at: int) -> Callable[[Any], Any]:
    """One of the numbers that a function gives."""
    return lambda value: function(value)[at]


def select(flag: Any, a: Any, b: Any) -> Any:
    """``a if flag else b``, both computed already."""
    return a if flag else b


def expect(value: Any, kind: ScalarKind) -> Any:
    """The value itself, if its type is the one the Program was built for.

    Errors raised: TypeError if it is another, as in ``(-8.0) ** 0.5``, which is complex where other floats give floats.
    """
    if type(value) is not _PYTHON_TYPES[kind]:
        raise TypeError(
            f"this value is {type(value).__name__} ({value!r}) for these inputs, but {kind} was expected when the "
            f"Program was built; convert it explicitly, for example with {kind}(...)"
        )
    return value


def _is_none(value: Any) -> bool:
    return value is None


def _format(value: Any, spec: str = "") -> str:
    return format(value, spec)


def _minimum(*values: Any) -> Any:
    return min(values)


def _maximum(*values: Any) -> Any:
    return max(values)


def _item(tensor: torch.Tensor) -> Any:
    return tensor.item()


NOT_ONE = "only one element tensors can be converted to Python scalars"
NO_INDEX = "only integer tensors of a single element can be converted to an index"


def _number(tensor: torch.Tensor) -> Any:
    """The item of a tensor where Python converts it to a number."""
    if tensor.numel() != 1:
        raise ValueError(NOT_ONE)
    return tensor.item()


def _index(tensor: torch.Tensor) -> Any:
    """The item of a tensor of integers where Python needs an index."""
    if tensor.numel() != 1:
        raise TypeError(NO_INDEX)
    return tensor.item()


def _size(tensor: torch.Tensor, dim: int) -> int:
    return tensor.size(dim)


def _bit_length(value: int) -> int:
    return int.bit_length(value)


def _character(text: str, index: int) -> str:
    return text[index]


def _slice(text: str, start: Any, stop: Any, step: Any) -> str:
    return text[start:stop:step]


def _is_integer(value: float) -> bool:
    return float.is_integer(value)


# name -> (function, fewest arguments, most arguments or None)
_TABLE: dict[str, tuple[Callable[..., Any], int, int | None]] = {
    "add": (operator.add, 2, 2), "sub": (operator.sub, 2, 2), "mul": (operator.mul, 2, 2),
    "truediv": (operator.truediv, 2, 2), "floordiv": (operator.floordiv, 2, 2), "mod": (operator.mod, 2, 2),
    "pow": (pow, 2, 3), "neg": (operator.neg, 1, 1), "pos": (operator.pos, 1, 1), "abs": (abs, 1, 1),
    "invert": (operator.invert, 1, 1), "lshift": (operator.lshift, 2, 2), "rshift": (operator.rshift, 2, 2),
    "and_": (operator.and_, 2, 2), "or_": (operator.or_, 2, 2), "xor": (operator.xor, 2, 2),
    "lt": (operator.lt, 2, 2), "le": (operator.le, 2, 2), "gt": (operator.gt, 2, 2), "ge": (operator.ge, 2, 2),
    "eq": (operator.eq, 2, 2), "ne": (operator.ne, 2, 2), "not_": (operator.not_, 1, 1),
    "bool": (bool, 1, 1), "int": (int, 1, 2), "float": (float, 1, 1), "complex": (complex, 1, 2),
    "str": (str, 1, 1), "repr": (repr, 1, 1), "ascii": (ascii, 1, 1), "format": (_format, 1, 2), "round": (round, 1, 2),
    "min": (_minimum, 1, None), "max": (_maximum, 1, None), "is_none": (_is_none, 1, 1), "select": (select, 3, 3),
    "expect": (expect, 2, 2), "bit_length": (_bit_length, 1, 1), "is_integer": (_is_integer, 1, 1),
    "item": (_item, 1, 1), "number": (_number, 1, 1), "index": (_index, 1, 1),
    "truth": (bool, 1, 1), "size": (_size, 2, 2), "numel": (torch.Tensor.numel, 1, 1),
    "dim": (torch.Tensor.dim, 1, 1),
    "bin": (bin, 1, 1), "oct": (oct, 1, 1), "hex": (hex, 1, 1), "chr": (chr, 1, 1), "ord": (ord, 1, 1),
    "str.len": (len, 1, 1), "str.getitem": (_character, 2, 2), "str.slice": (_slice, 4, 4),
    "str.contains": (operator.contains, 2, 2),
    **{f"str.{name}": (getattr(str, name), 1, 4) for name in TEXT_METHODS},
    **{f"exact.{name}": (function, 0, None) for name, function in exact.FUNCTIONS.items()},
    **{f"math.{name}": (getattr(math, name), 1, None) for name in MATH},
    **{f"math.{name}.{at}": (_part_of(getattr(math, name), at), 1, None) for name in MATH_PAIRS for at in (0, 1)},
}  # fmt: skip

FUNCTIONS: dict[str, Callable[..., Any]] = {f"scalar.{name}": row[0] for name, row in _TABLE.items()}
"""``"scalar.add" -> operator.add``: what each operator computes."""


# --- the types of results

_SAMPLES: dict[str, Any] = {"bool": True, "int": 1, "float": 1.5, "complex": 1 + 1j, "str": "1", "none": None}
_BY_NAME: dict[str, ScalarKind] = {
    "bool": "bool", "int": "int", "float": "float", "complex": "complex", "truth": "bool", "size": "int",
    "numel": "int", "dim": "int", "is_none": "bool", "str.getitem": "str", "str.index": "int", "str.rindex": "int",
    "str.slice": "str", "chr": "str",
}  # fmt: skip
_ONE_OF = ("select", "min", "max")


def kind_of_dtype(dtype: torch.dtype) -> ScalarKind:
    """The kind of Python number that ``tensor.item()`` gives for this dtype."""
    if dtype is torch.bool:
        return "bool"
    if dtype.is_complex:
        return "complex"
    return "float" if dtype.is_floating_point else "int"


def result_kind(name: str, kinds: Sequence[str], values: Sequence[Any] = ()) -> ScalarKind:
    """The kind of the result of a scalar operator whose operands are of these kinds (``"none"`` for None).

    ``values`` are the operands where they are known: Python constants count, anything else is unknown. Where the kind
    depends on values that are not known, the usual kind is given and ``is_certain`` says False: the result must then
    pass through ``scalar.expect``. Python decides: the operator is tried on a value of each kind.

    Errors raised: what Python raises for such operands (TypeError); TraceError where no kind is the usual one.

    >>> result_kind("scalar.truediv", ["int", "int"]), result_kind("scalar.add", ["bool", "bool"])
    ('float', 'int')
    """
    short = name.removeprefix("scalar.")
    if short in ("truth", "size", "numel", "dim", "is_none"):
        return _BY_NAME[short]
    if short == "expect":
        return _kind_named(values[1])
    if short in _ONE_OF:
        return _common(short, kinds[1:] if short == "select" else kinds)
    if short == "mod" and kinds[0] == "str":
        return "str"
    if short == "pow" and len(kinds) == 2 and _known(values, 1) is not None and kinds[0] in ("int", "bool"):
        if kinds[1] == "int" and values[1] < 0:
            return "float"
    samples = [_SAMPLES[kind] for kind in kinds]
    if short == "invert" and kinds[0] == "bool":
        samples[0] = 1
    if short == "int" and list(kinds[1:]) in (["int"], ["bool"]):
        samples[1] = 10
    try:
        result = FUNCTIONS[name](*samples)
    except (ValueError, ArithmeticError, LookupError):  # of right types, the sample's values are not: acos(1.5)
        return _BY_NAME.get(short, "float")
    except TypeError as error:  # the user's: Python says the same of such values
        raise TypeError(*error.args) from None
    return _kind_named(type(result).__name__)


def is_certain(name: str, kinds: Sequence[str], values: Sequence[Any] = ()) -> bool:
    """Whether ``result_kind`` holds for all values: only powers depend on more than the operands' kinds.

    >>> is_certain("scalar.pow", ["int", "int"]), is_certain("scalar.pow", ["int", "int"], [None, 2])
    (False, True)
    """
    if name != "scalar.pow" or len(kinds) != 2 or "complex" in kinds:
        return True
    base, exponent = _known(values, 0), _known(values, 1)
    if "float" not in kinds:  # int ** negative int is a float
        return kinds[1] == "bool" or exponent is not None
    if kinds[1] != "float":  # a whole power of a float is a float
        return True
    return (exponent is not None and float(exponent).is_integer()) or (base is not None and base >= 0)


def _known(values: Sequence[Any], index: int) -> Any:
    value = values[index] if index < len(values) else None
    return value if type(value) in (bool, int, float) else None


def _common(short: str, kinds: Sequence[str]) -> ScalarKind:
    if len(set(kinds)) != 1:
        raise TraceError(
            f"the type of this {short} depends on which value it picks: {', '.join(kinds)}",
            hint="Convert the values to one type first, for example with float(...).",
            code="D2S272",
        )
    return _kind_named(kinds[0])


def _kind_named(name: str) -> ScalarKind:
    for kind in _PYTHON_TYPES:
        if kind == name:
            return kind
    raise TraceError(
        f"a value of type {name} cannot be computed while the Program runs",
        hint="Keep to numbers, truth values and strings.",
        code="D2S273",
    )


_TEXTS = ("str", "repr", "ascii", "format")
_ITEMS = ("item", "number", "index")


def infer(op: Operator) -> list[Type | None]:
    """The type of a scalar Operator's result; None where it depends on values, or on a tensor's unknown dtype.

    Raises:
        TypeError: What Python raises for such operands.
    """
    short = op.name.removeprefix("scalar.")
    if short in _TEXTS:
        return [ScalarType("str")]
    if short.startswith("exact."):
        return [ScalarType("float")]
    types = [type_of(arg) for arg in op.args]
    if short in _ITEMS:
        known = isinstance(types[0], TensorType) and types[0].dtype is not None
        return [ScalarType(kind_of_dtype(types[0].dtype)) if known else None]  # type: ignore[union-attr, arg-type]
    kinds = [one.kind if isinstance(one, ScalarType) else "none" if arg is None else "" for one, arg in
             zip(types, op.args)]  # fmt: skip
    if short in _BY_NAME and not op.name.startswith("scalar.math."):
        return [ScalarType(_BY_NAME[short])]
    kinds = kinds[1:] if short == "select" else kinds
    if "" in kinds or op.kwargs:
        return [None]
    if short in _ONE_OF and len(set(kinds)) != 1:
        return [None]
    given = ["bool", *kinds] if short == "select" else kinds
    return [ScalarType(result_kind(op.name, given, op.args)) if is_certain(op.name, given, op.args) else None]


def _verify(op: Operator, fail: Fail) -> None:
    _, least, most = _TABLE[op.name.removeprefix("scalar.")]
    check_plain(op, fail, least, most, outputs=1)
    if op.kwargs and op.name != "scalar.math.isclose":
        fail("arity", f"{op.name} takes no keyword arguments")
    if not isinstance(op.outputs[0].type, ScalarType):
        fail("type", f"the result of {op.name} is a Python number or string, so its Variable must have a scalar type")


DEFINITIONS: Sequence[OpDefinition] = [
    OpDefinition(name, f"Python's {name.removeprefix('scalar.')}", verify=_verify, evaluate=function,
                 infer=infer, neutral=True, passes_gradient=False, about=About.NUMBERS, only_reads=True)
    for name, function in FUNCTIONS.items()
]
"""The index of all rules: every scalar operator is checked by ``_verify`` and computed by its row in ``FUNCTIONS``."""
