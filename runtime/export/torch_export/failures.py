"""``raise`` and ``assert``: the end of the run, with a text that says what eager's exception says.

    raise("gave up after ", %n) {exception: "ValueError"}    ->    RuntimeError: ValueError: gave up after {}
"""

from __future__ import annotations

from runtime.export.shared import message_of
from runtime.export.torch_export.translator import Translator, aten
from runtime.export.torch_export.values import number
from runtime.ir import Operator


def emit_raise(t: Translator, op: Operator) -> None:
    """``raise``."""
    t.fail_if(number(True, "bool"), message_of(t, op))


def emit_assert(t: Translator, op: Operator) -> None:
    """``assert``."""
    holds = t.flag(op.args[0])
    fails = not holds if isinstance(holds, bool) else aten.logical_not.default(holds)
    t.fail_if(fails, message_of(t, op))


__all__ = ["emit_assert", "emit_raise"]
