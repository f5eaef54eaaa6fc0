"""The index of what exported C does by itself: the rules of native C, before or after them those of this room.

What is in neither is refused, before anything is written.
"""

from __future__ import annotations

from typing import NoReturn

from runtime.export.c import (
    arithmetic,
    indexing,
    normalising,
    ordering,
    products,
    quantised,
    recurrent,
    shaping,
    spatial,
)
from runtime.export.c.failures import Failures
from runtime.ir import Operator
from runtime.native import rules, update
from runtime.native.lowering import FAMILIES, RULES, Lowering, Rule
from runtime.native.values import Unsupported

assert rules, "the rules fill the index"

OWN: dict[str, Rule] = {
    f"aten.{name}": rule
    for room in (arithmetic, indexing, normalising, ordering, products, quantised, recurrent, shaping, spatial)
    for rule, names in room.NAMES.items()
    for name in names
} | {"update": shaping.emit_update, "write": shaping.first_of(update.write, shaping.emit_write)}


class Refused(Exception):
    """An Operator that exported C cannot do, and why."""

    def __init__(self, op: Operator, reason: str) -> None:
        super().__init__(reason)
        self.op, self.reason = op, reason


def refuse(low: Lowering, op: Operator) -> NoReturn:
    """Errors raised: Refused. It is the rule for what no other rule takes."""
    try:
        raise
    except Unsupported as error:
        reason = "" if op.name.endswith(f".{error}") else str(error)
    except RuntimeError:  # nothing was tried
        reason = ""
    raise Refused(op, reason)


def rules_of(failures: Failures) -> dict[str, Rule]:
    """How Operators become C in one function."""
    texts = dict.fromkeys(("scalar.str", "scalar.repr", "scalar.format", "scalar.add"), failures.rule_of_text)
    return RULES | OWN | texts | {
        "raise": failures.rule_of_raise, "assert": failures.rule_of_assert, "call": refuse,
    }  # fmt: skip


def operators() -> list[str]:
    """The names of ATen's operators that exported C has a rule for, overloads left out; each may refuse an argument.

    >>> "softmax" in operators() and "conv2d" in operators()
    True
    """
    names = {name.split(".")[1] for name in (*RULES, *OWN) if name.startswith("aten.")}
    return sorted(name for name in names if "backward" not in name)


__all__ = ["FAMILIES", "Refused", "operators", "rules_of"]
