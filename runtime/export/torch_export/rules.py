"""The index of what has a form in a graph of PyTorch's: for each construct and operator a rule."""

from __future__ import annotations

from runtime.export.torch_export import branches, failures, lists, loops, operators, scalars
from runtime.export.torch_export.translator import Rule, Translator
from runtime.export.torch_export.values import Refused
from runtime.ir import Operator
from runtime.ops.registry import STRUCTURAL


def _seen(t: Translator, op: Operator) -> None:
    """What is there for gradients gives what it is given."""
    t.give(op.outputs[0], t.value(op.args[0]))


CONSTRUCTS: dict[str, Rule] = {
    "cond": branches.emit_cond,
    "switch": branches.emit_switch,
    "while_loop": loops.emit_while,
    "scan": loops.emit_scan,
    "update": operators.emit_update,
    "assert": failures.emit_assert,
    "raise": failures.emit_raise,
    "grad.named": _seen,
    "grad.leaf": _seen,
}
"""By the operator's name. The others, and why they have no form, are rows of ``runtime.export.capability``."""

_FAMILIES: dict[str, Rule] = {"scalar": scalars.emit, "array": lists.emit}


def rule_of(op: Operator) -> Rule:
    """The rule for an Operator. Errors raised: Refused where there is none."""
    found = CONSTRUCTS.get(op.name)
    if found is not None:
        return found
    family = op.name.partition(".")[0]
    if op.name in STRUCTURAL and family not in _FAMILIES:
        raise Refused("there is no rule for it", op)
    return _FAMILIES.get(family, operators.emit)


__all__ = ["CONSTRUCTS", "rule_of"]
