"""``torch.Size`` with sizes that are only known while the Program runs."""

from __future__ import annotations

from typing import Any

from runtime.tracer import state
from runtime.tracer.scalars import Staged


class StagedSize(tuple[Any, ...]):
    """A ``torch.Size`` in which some sizes are staged."""

    def numel(self) -> Any:
        """The product of the sizes."""
        result: Any = 1
        for size in self:
            result = result * size
        return result

    def __eq__(self, other: object) -> Any:
        if not isinstance(other, tuple) or len(other) != len(self):
            return False
        session = state.current()
        flag: Any = True
        for mine, theirs in zip(self, other):
            same = mine == theirs
            if isinstance(same, Staged):
                flag = same if flag is True else session.scalar("and_", flag, same)
            elif not same:
                return False
        return flag

    def __ne__(self, other: object) -> Any:
        same = self == other
        return state.current().scalar("not_", same) if isinstance(same, Staged) else not same

    __hash__ = tuple.__hash__

    def __getitem__(self, key: Any) -> Any:
        picked = super().__getitem__(key)
        return StagedSize(picked) if isinstance(key, slice) else picked
