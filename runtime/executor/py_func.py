"""``py_func`` and ``unchanged``: a Python function that the caller of the executor provides."""

from __future__ import annotations

from runtime.errors import ProgramError
from runtime.executor.emitter import Emitter
from runtime.ir import Operator


def emit(emitter: Emitter, op: Operator) -> None:
    """``y = function(x)``; several outputs are unpacked.

    Errors raised: ProgramError if no function of that key was given.
    """
    key = op.attrs["function"]
    if key not in emitter.functions:
        raise ProgramError(
            f"this Program calls the Python function {key!r}, which is not known here",
            hint="Give it with functions={...}; a Program that was loaded from a file never brings code with it.",
            location=op.location,
        )
    args = ", ".join(emitter.operand(arg) for arg in op.args)
    emitter.assign(op.outputs, f"{emitter.bind(emitter.functions[key], 'f')}({args})", unpack=len(op.outputs) > 1)


def emit_test(emitter: Emitter, op: Operator) -> None:
    """The call of a test; nothing where the Program came without its functions: there is no Python to ask."""
    if op.attrs["function"] in emitter.functions:
        emit(emitter, op)
