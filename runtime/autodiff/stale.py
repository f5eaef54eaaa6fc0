"""Where backward needs something that was overwritten, as a condition of the Program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from runtime.autodiff.versions import Overwrite
from runtime.ir import Variable
from runtime.tracer.memory.conditions import PathCondition, all_of, any_of

if TYPE_CHECKING:
    from runtime.autodiff.backward import Backward


def condition(backward: Backward, cases: Sequence[Overwrite]) -> PathCondition:
    """When one of some cases is there."""
    return any_of(all_of(_known(backward, part() if callable(part) else part) for part in case) for case in cases)


def _known(backward: Backward, when: PathCondition) -> PathCondition:
    """The same in Variables that backward has."""
    return when.replaced(lambda flag: backward.known.get(flag, flag) if isinstance(flag, Variable) else flag)


__all__ = ["condition"]
