"""``raise`` and ``assert``: the end of the run, with a text that says what eager's exception says.

    raise("gave up after ", %n) {exception: "ValueError"}    ->    RuntimeError: ValueError: gave up after {}
"""

from __future__ import annotations

from runtime.export.torch_export.translator import Translator, aten
from runtime.export.torch_export.values import Nothing, number
from runtime.ir import Operand, Operator, Variable


def _said(t: Translator, op: Operator, parts: list[Operand]) -> str:
    name = str(op.attrs["exception"]).rpartition(".")[2]
    text = "".join(_shown(t, part) for part in parts)
    return (f"{name}: {text}" if text else name)[:300]


def _shown(t: Translator, part: Operand) -> str:
    """A text as it is, and what only the run knows as ``{}``."""
    if not isinstance(part, Variable):
        return str(part)
    found = t.nothing(part)
    return str(found.constant) if found is not None and isinstance(found.constant, str) else "{}"


def text_of(t: Translator, op: Operator) -> Nothing:
    """What an Operator that makes text stands for: nobody but exceptions can say it."""
    short = op.name.removeprefix("scalar.")
    parts = list(op.args) if short == "add" else list(op.args[:1])
    return Nothing("text as a value of the run", "".join(_shown(t, part) for part in parts))


def emit_raise(t: Translator, op: Operator) -> None:
    """``raise``."""
    t.fail_if(number(True, "bool"), _said(t, op, list(op.args)))


def emit_assert(t: Translator, op: Operator) -> None:
    """``assert``."""
    flag, *parts = op.args
    message = op.attrs.get("message")
    holds = t.flag(flag)
    fails = not holds if isinstance(holds, bool) else aten.logical_not.default(holds)
    t.fail_if(fails, _said(t, op, [message, *parts] if message is not None else list(parts)))


__all__ = ["emit_assert", "emit_raise", "text_of"]
