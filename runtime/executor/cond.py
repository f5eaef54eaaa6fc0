"""``cond``: a Python ``if``. The flag may be a bool or a tensor of one element, as in eager Python."""

from __future__ import annotations

from runtime.executor.emitter import Emitter
from runtime.ir import Operator


def emit(emitter: Emitter, op: Operator) -> None:
    """``if flag: ...; y = a`` / ``else: ...; y = b``."""
    unread = emitter.live.unread[id(op)]
    flag = emitter.operand(op.args[0])
    for header, block in zip((f"if {flag}:", "else:"), op.blocks):
        with emitter.indented(header):
            emitter.line("pass")
            emitter.enter(block)
            emitter.operators(block)
            emitter.read_yields(block, op.outputs, unread)
