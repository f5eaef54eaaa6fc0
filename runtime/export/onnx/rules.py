"""The index of what has a form in ONNX: for each construct and operator a rule.

It is asked for every Operator of a Program before one of them is written.
"""

from __future__ import annotations

from runtime.export.onnx import branches, composites, failures, lists, loops, operators, scalars, writes
from runtime.export.onnx.translator import Rule, Translator
from runtime.export.onnx.writer import Refused
from runtime.ir import Operator, Program
from runtime.ops import aten
from runtime.torch_internals.onnx_converters import OnnxConverters


def _seen(t: Translator, op: Operator) -> None:
    """What is there for gradients gives what it is given."""
    t.give(op.outputs[0], t.value(op.args[0]))


CONSTRUCTS: dict[str, Rule] = {
    "cond": branches.emit_cond,
    "switch": branches.emit_switch,
    "while_loop": loops.emit_while,
    "scan": loops.emit_scan,
    "update": writes.emit,
    "assert": failures.emit_assert,
    "raise": failures.emit_raise,
    "grad.named": _seen,
    "grad.leaf": _seen,
}
"""By the operator's name. The others, and why they have no form, are rows of ``runtime.export.capability``."""

_FAMILIES: dict[str, Rule] = {"scalar": scalars.emit, "array": lists.emit, "aten": operators.of_operator}


def rule_of(op: Operator) -> Rule:
    """The rule for an Operator. Errors raised: Refused where there is none."""
    found = CONSTRUCTS.get(op.name)
    if found is not None:
        return found
    rule = _FAMILIES.get(op.name.partition(".")[0])
    if rule is None:
        raise Refused("ONNX has no operators of this library", op)
    return rule


def require_all(program: Program, converters: OnnxConverters) -> None:
    """Ask for every Operator of a Program. Errors raised: Refused for the first without a form."""
    for op in program.block.walk():
        rule_of(op)
        if op.name.startswith("aten.") and not _has_form(op, converters):
            raise Refused("PyTorch has no ONNX form of it", op)


def _has_form(op: Operator, converters: OnnxConverters) -> bool:
    op = operators.renamed(op)
    overload = aten.resolve(op.name)
    packet = op.name.rpartition(".")[0]
    if {op.name, packet} & {*operators.OWN, *composites.COMPOSITES} or aten.writes(overload, op.args, op.kwargs):
        return True
    return any(converters.find(getattr(overload.overloadpacket, name)) is not None
               for name in overload.overloadpacket.overloads())  # fmt: skip


__all__ = ["CONSTRUCTS", "require_all", "rule_of"]
