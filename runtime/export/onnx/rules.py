"""The index of what has a form in ONNX: for each construct and operator a rule, or why there is none.

It is asked for every Operator of a Program before one of them is written.
"""

from __future__ import annotations

from dataclasses import dataclass

from runtime.export.onnx import branches, composites, failures, lists, loops, operators, scalars, writes
from runtime.export.onnx.translator import Rule, Translator
from runtime.export.onnx.writer import Refused
from runtime.ir import Operator, Program
from runtime.ops import aten
from runtime.torch_internals.onnx_converters import OnnxConverters


@dataclass(frozen=True)
class Capability:
    """What becomes of a kind of Operator: the rule and the ONNX operators it uses; or no rule, and why."""

    form: str
    rule: Rule | None = None


def _seen(t: Translator, op: Operator) -> None:
    """What is there for gradients gives what it is given."""
    t.give(op.outputs[0], t.value(op.args[0]))


CONSTRUCTS: dict[str, Capability] = {
    "cond": Capability("`If`", branches.emit_cond),
    "switch": Capability("a chain of `If`", branches.emit_switch),
    "while_loop": Capability("`Loop`", loops.emit_while),
    "scan": Capability("`Loop` with scan outputs", loops.emit_scan),
    "update": Capability("the functional operator; `ScatterElements` for views", writes.emit),
    "custom_grad": Capability("its forward half", loops.emit_inline),
    "assert": Capability("a node that fails", failures.emit_assert),
    "raise": Capability("a node that fails", failures.emit_raise),
    "grad.named": Capability("what it is given", _seen),
    "grad.leaf": Capability("what it is given", _seen),
    "print": Capability("a model prints nothing"),
    "warn": Capability("a model warns of nothing"),
    "log": Capability("a model logs nothing"),
    "py_func": Capability("a Python function"),
    "gradients": Capability("gradients inside of what is exported"),
}
"""By the operator's name: the constructs, and what they are in ONNX."""

_FAMILIES: dict[str, Rule] = {"scalar": scalars.emit, "array": lists.emit, "aten": operators.of_operator}


def rule_of(op: Operator) -> Rule:
    """The rule for an Operator. Errors raised: Refused where there is none."""
    found = CONSTRUCTS.get(op.name)
    if found is not None:
        if found.rule is None:
            raise Refused(found.form, op)
        return found.rule
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


__all__ = ["CONSTRUCTS", "Capability", "require_all", "rule_of"]
