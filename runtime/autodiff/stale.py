"""Where backward needs something that was overwritten, as a condition of the Program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from runtime.autodiff.versions import Case
from runtime.ir import Operand, Variable
from runtime.tracer.memory.conditions import PathCondition, any_of

if TYPE_CHECKING:
    from runtime.autodiff.backward import Backward


def condition(backward: Backward, cases: Sequence[Case]) -> Operand:
    """Whether one of some cases is there: a boolean, or a Variable for one."""
    alone: list[PathCondition] = []
    found: list[Operand] = []
    for case in cases:
        parts = dict.fromkeys(_known(backward, part() if callable(part) else part) for part in case)
        if any(part.never for part in parts):
            continue
        if all(part.always for part in parts):
            return True
        flags = [part for part in parts if part.maybe]
        if len(flags) == 1:
            alone += flags
        else:
            found.append(both(backward, [part.operand(backward.session) for part in flags]))
    if alone:
        found.insert(0, any_of(alone).operand(backward.session))
    if not found:
        return False
    result, *others = found
    for other in others:
        (result,) = backward.session.emit("scalar.or_", [result, other])
    return result


def both(backward: Backward, flags: Sequence[Operand]) -> Operand:
    """Whether all of some flags are true."""
    result, *others = flags
    for other in others:
        (result,) = backward.session.emit("scalar.and_", [result, other])
    return result


def _known(backward: Backward, when: PathCondition) -> PathCondition:
    """The same in Variables that backward has."""
    return when.replaced(lambda flag: backward.known.get(flag, flag) if isinstance(flag, Variable) else flag)


__all__ = ["both", "condition"]
