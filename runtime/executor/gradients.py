"""``gradients``: torch's autograd, over the graph that the Operators before it have left."""

from __future__ import annotations

from functools import partial

from runtime.executor.emitter import Emitter
from runtime.ir import Operator
from runtime.ops.gradients import gradients


def emit(emitter: Emitter, op: Operator) -> None:
    """``g, = f([loss], [w], None)``."""
    args = ", ".join(emitter.operand(arg) for arg in op.args)
    options = {key: value for key, value in op.attrs.items() if key != "caught"}
    emitter.assign(op.outputs, f"{emitter.bind(partial(gradients, **options), 'f')}({args})", unpack=True)
