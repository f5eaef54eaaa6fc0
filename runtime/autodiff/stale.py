"""Where backward needs something that was overwritten, as a condition of the Program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from runtime.autodiff.activity import any_of
from runtime.autodiff.tape import Activity
from runtime.autodiff.versions import Case, join
from runtime.ir import Operand

if TYPE_CHECKING:
    from runtime.autodiff.backward import Backward


def condition(backward: Backward, cases: Sequence[Case]) -> Operand:
    """Whether one of some cases is there: a boolean, or a Variable for one."""
    alone: list[Activity] = []
    found: list[Operand] = []
    for case in cases:
        parts = dict.fromkeys(_known(backward, part() if callable(part) else part) for part in case)
        parts.pop(True, None)
        if not parts:
            return True
        if False in parts:
            continue
        if len(parts) == 1:
            alone += parts
        else:
            found.append(both(backward, [any_of(backward.session, part) for part in parts]))
    if alone:
        found.insert(0, any_of(backward.session, join(alone)))
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


def _known(backward: Backward, when: Activity) -> Activity:
    """The same in Variables that backward has."""
    if not isinstance(when, frozenset):
        return when
    found = [backward.known.get(flag, flag) for flag in when]
    return join([frozenset({one}) if not isinstance(one, bool) else one for one in found])


__all__ = ["both", "condition"]
