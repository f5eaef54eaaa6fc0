"""Host operators: calls of Python's random numbers, NumPy's, and clocks, each result held against its type.

What a run draws can be kept and given again (``runtime.ops.drawn``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runtime.executor.emitter import Emitter
from runtime.ir import Operator, ScalarType
from runtime.ops.drawn import here
from runtime.ops.host import FUNCTIONS, is_listed, sets_torch

_TYPES: dict[str, type] = {"int": int, "float": float, "bool": bool, "complex": complex, "str": str}


def emit(emitter: Emitter, op: Operator) -> None:
    """``n = call(1, 6)``; a function that gives a list fills one Variable for each item."""
    args = [emitter.operand(arg) for arg in op.args]
    args += [f"**{emitter.operand(op.kwargs)}"] if op.kwargs else []
    call = f"{emitter.bind(_call(op), 'f')}({', '.join(args)})"
    if op.outputs:
        emitter.assign(op.outputs, call, unpack=is_listed(op))
    else:
        emitter.line(call)


def _call(op: Operator) -> Callable[..., Any]:
    function, listed, again = FUNCTIONS[op.name], is_listed(op), sets_torch(op)
    types = [_TYPES[one.type.kind] for one in op.outputs if isinstance(one.type, ScalarType)]

    def call(*args: Any, **kwargs: Any) -> Any:
        if here.given is not None:
            value = next(here.given)
            if again:  # PyTorch's own generators are put back to where they were, so they draw again
                FUNCTIONS["host.torch.manual_seed"](args[0] if value is None else value)
            return value
        value = function(*args, **kwargs)
        if types:
            _require(op, value if listed else [value], types)
        if here.kept is not None:
            here.kept.append(value)
        return value

    return call


def _require(op: Operator, values: list[Any], types: list[type]) -> None:
    """Errors raised: TypeError, if another kind of number came than the Program was made for."""
    if list(map(type, values)) != types:
        found = ", ".join(type(one).__name__ for one in values)
        raise TypeError(
            f"{op.name.partition('.')[2]} gave {found} this time, but {', '.join(one.__name__ for one in types)} was "
            "expected when the Program was built; convert it explicitly, for example with float(...)")


__all__ = ["emit"]
