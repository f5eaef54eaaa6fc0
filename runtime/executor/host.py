"""Host operators: calls of Python's random numbers, NumPy's, and clocks, each result held against its type.

What a run draws can be kept and given again (``runtime.ops.drawn``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy
import torch

from runtime.errors import ProgramError
from runtime.executor.emitter import Emitter
from runtime.ir import Operator, ScalarType, TensorType
from runtime.ops import host_numpy
from runtime.ops.drawn import here
from runtime.ops.host import FUNCTIONS, is_listed, seeds_own, sets_torch

_TYPES: dict[str, type] = {"int": int, "float": float, "bool": bool, "complex": complex, "str": str}


def emit(emitter: Emitter, op: Operator) -> None:
    """``n = call(1, 6)``; a function that gives a list fills one Variable for each item."""
    if op.name.startswith(host_numpy.FAMILY):
        _emit_numpy(emitter, op)
        return
    args = [emitter.operand(arg) for arg in op.args]
    args += [f"**{emitter.operand(op.kwargs)}"] if op.kwargs else []
    call = f"{emitter.bind(_call(op), 'f')}({', '.join(args)})"
    if op.outputs:
        emitter.assign(op.outputs, call, unpack=is_listed(op))
    else:
        emitter.line(call)


def _call(op: Operator) -> Callable[..., Any]:
    function, listed, again = FUNCTIONS[op.name], is_listed(op), sets_torch(op)
    own = seeds_own(op)
    types = [_TYPES[one.type.kind] for one in op.outputs if isinstance(one.type, ScalarType)]
    gives, shapes = op.attrs.get("gives"), _shapes(op)

    def call(*args: Any, **kwargs: Any) -> Any:
        if here.given is not None:
            value = next(here.given)
            if own:
                function(*args, **kwargs)
            if again:  # PyTorch's own generators are put back to where they were, so they draw again
                FUNCTIONS["host.torch.manual_seed"](args[0] if value is None else value)
            return host_numpy.to_tensor(value.copy()) if gives else value
        value = function(*args, **kwargs)
        if gives:
            if here.kept is not None:
                here.kept.append(value.copy())
            return _held(op, [value], [gives], shapes)[0]
        if types:
            _require(op, value if listed else [value], types)
        if here.kept is not None:
            here.kept.append(value)
        return value

    return call


def _emit_numpy(emitter: Emitter, op: Operator) -> None:
    """``a, b = call({"array": x})``: tensors in the memory of what NumPy gives."""
    args = [emitter.operand(arg) for arg in op.args]
    args += [f"**{emitter.operand(op.kwargs)}"] if op.kwargs else []
    emitter.assign(op.outputs, f"{emitter.bind(_numpys(op), 'f')}({', '.join(args)})", unpack=True)


def _numpys(op: Operator) -> Callable[..., Any]:
    function, many = host_numpy.function_of(op.name.removeprefix(host_numpy.FAMILY)), op.attrs.get("many", False)
    gives, shapes, errors = list(op.attrs["gives"]), _shapes(op), op.attrs.get("errors")

    def call(*args: Any, **kwargs: Any) -> list[torch.Tensor]:
        given = [host_numpy.given(one) for one in args]
        named = {key: host_numpy.given(one) for key, one in kwargs.items()}
        if errors is None:
            made = function(*given, **named)
        else:
            with numpy.errstate(**dict(zip(host_numpy.USUAL_ERRORS, errors))):
                made = function(*given, **named)
        return _held(op, list(made) if many else [made], gives, shapes)

    return call


def _shapes(op: Operator) -> list[Any]:
    return [(one.type.dtype, one.type.shape) for one in op.outputs if isinstance(one.type, TensorType)]


def _held(op: Operator, values: list[Any], gives: list[str], shapes: list[Any]) -> list[torch.Tensor]:
    """What NumPy gives as tensors. Errors raised: ProgramError, it is not what the Program was made for."""
    kinds = list(map(host_numpy.kind_of, values))
    tensors = [host_numpy.to_tensor(one) for one in values] if kinds == gives else []
    if not tensors or not all(_looks_like(one, *like) for one, like in zip(tensors, shapes)):
        raise ProgramError(
            f"{op.name.removeprefix('host.')} gives other arrays for these values than for those that it was tried "
            "with while tracing", location=op.location, code="D2S213",
            hint="Do it outside the converted function, or in a function marked not_to_static.")
    return tensors


def _looks_like(tensor: torch.Tensor, dtype: torch.dtype, shape: Any) -> bool:
    """Whether a result is what the Program was made for; a size that has a name is any."""
    return tensor.dtype == dtype and tensor.dim() == len(shape) and all(
        type(wanted) is str or size == wanted for size, wanted in zip(tensor.shape, shape))


def _require(op: Operator, values: list[Any], types: list[type]) -> None:
    """Errors raised: TypeError, if another kind of number came than the Program was made for."""
    if list(map(type, values)) != types:
        found = ", ".join(type(one).__name__ for one in values)
        raise TypeError(
            f"{op.name.partition('.')[2]} gave {found} this time, but {', '.join(one.__name__ for one in types)} was "
            "expected when the Program was built; convert it explicitly, for example with float(...)")


__all__ = ["emit"]
