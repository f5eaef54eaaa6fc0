"""Scalar operators: Python's own expressions, so that numbers mean exactly what they mean in Python."""

from __future__ import annotations

from runtime.executor.emitter import Emitter
from runtime.ir import Operator, TensorType, Variable
from runtime.ops.scalar import FUNCTIONS

_INFIX = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "lt": "<", "le": "<=", "gt": ">",
    "ge": ">=", "eq": "==", "ne": "!=", "and_": "&", "or_": "|", "xor": "^", "lshift": "<<", "rshift": ">>",
}  # fmt: skip
_PREFIX = {"neg": "-", "pos": "+", "not_": "not ", "invert": "~"}
_METHODS = {"item": "item", "size": "size", "numel": "numel", "dim": "dim"}


def emit(emitter: Emitter, op: Operator) -> None:
    """``n = a + b`` where Python has a sign for it, else a call of the function that defines the operator."""
    name = op.name.removeprefix("scalar.")
    args = [emitter.operand(arg) for arg in op.args]
    if name in _INFIX and len(args) == 2:
        value = f"{args[0]} {_INFIX[name]} {args[1]}"
    elif name in _PREFIX and len(args) == 1:
        value = f"{_PREFIX[name]}{args[0]}"
    elif name in _METHODS and isinstance(op.args[0], Variable) and isinstance(op.args[0].type, TensorType):
        value = f"{args[0]}.{_METHODS[name]}({', '.join(args[1:])})"
    else:
        args += [f"**{emitter.operand(op.kwargs)}"] if op.kwargs else []
        value = f"{emitter.bind(FUNCTIONS[op.name], 'f')}({', '.join(args)})"
    emitter.assign(op.outputs, value, unpack=False)
