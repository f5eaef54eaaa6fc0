"""``print``: Python's print, to the sys.stdout of the moment."""

from __future__ import annotations

from runtime.executor.emitter import Emitter
from runtime.ir import Operator


def emit(emitter: Emitter, op: Operator) -> None:
    """``print(a, b, sep=..., end=...)``."""
    args = [emitter.operand(arg) for arg in op.args]
    args += [f"{key}={emitter.operand(op.attrs[key])}" for key in ("sep", "end", "flush") if key in op.attrs]
    emitter.line(f"{emitter.bind(print, 'f')}({', '.join(args)})")
