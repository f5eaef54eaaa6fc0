"""``raise`` and ``assert``: nodes that end the run, whose names say what eager's exception says.

    raise("no convergence after ", %n) {exception: "ValueError"}    ->    a node "ValueError: no convergence after {}"
"""

from __future__ import annotations

from runtime.export.onnx.translator import Translator
from runtime.export.shared import message_of
from runtime.ir import Operator


def emit_raise(t: Translator, op: Operator) -> None:
    """``raise``."""
    t.w.fail(message_of(t, op))


def emit_assert(t: Translator, op: Operator) -> None:
    """``assert``."""
    t.w.fail_if(t.w.flags("Not", t.flag(op.args[0])), message_of(t, op))


__all__ = ["emit_assert", "emit_raise"]
