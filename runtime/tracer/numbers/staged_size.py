"""``torch.Size`` in a trace: its sizes may be known only while the Program runs, or meet such sizes later."""

from __future__ import annotations

import operator
from typing import Any

import torch

from runtime.kinds import is_a
from runtime.tracer.ambient import state
from runtime.tracer.ambient.theirs import acts_for_user
from runtime.tracer.numbers.scalars import Staged


def _is_size(value: Any) -> bool:
    return is_a(value, int) or (is_a(value, Staged) and value.kind in ("int", "bool"))


def _in_words(value: Any) -> Any:
    """What torch is to name in a message in place of a tuple."""
    if not is_a(value, tuple):
        return value
    plain = {"int": 0, "bool": False, "float": 0.0, "str": ""}
    return tuple(plain[one.kind] if is_a(one, Staged) else one for one in value)


def in_eager(value: Any) -> Any:
    """An argument as code that is not converted expects it: such code may ask for the class, or keep the value."""
    if type(value) is tuple:
        parts = tuple(map(in_eager, value))
        return value if all(map(operator.is_, parts, value)) else parts
    if type(value) is StagedSize and all(type(size) is int for size in value):
        return torch.Size(value)
    return value


class StagedSize(tuple[Any, ...]):
    """A ``torch.Size`` that may hold staged sizes. Sums and slices are sizes as well, as those of ``torch.Size``."""

    __slots__ = ()

    def numel(self) -> Any:
        """The product of the sizes."""
        result: Any = 1
        for size in self:
            result = result * size
        return result

    def __eq__(self, other: object) -> Any:
        if not is_a(other, tuple) or len(other) != len(self):
            return False
        flag: Any = True
        for mine, theirs in zip(self, other):
            same = mine == theirs
            if is_a(same, Staged):
                flag = same if flag is True else state.current().scalar("and_", flag, same)
            elif not same:
                return False
        return flag

    def __ne__(self, other: object) -> Any:
        same = self == other
        return state.current().scalar("not_", same) if is_a(same, Staged) else not same

    __hash__ = tuple.__hash__

    def __repr__(self) -> str:
        return f"torch.Size({list(self)})"

    @acts_for_user
    def __add__(self, other: Any) -> Any:
        if is_a(other, tuple) and all(map(_is_size, other)):
            return StagedSize((*self, *other))
        torch.Size((0,) * len(self)) + _in_words(other)  # raises, but for a tuple in some versions of torch
        return (*self, *other)

    @acts_for_user
    def __radd__(self, other: Any) -> Any:
        if not is_a(other, tuple):
            return NotImplemented
        if all(map(_is_size, other)):
            return StagedSize((*other, *self))
        _in_words(other) + torch.Size(())
        return (*other, *self)

    @acts_for_user
    def __mul__(self, times: Any) -> Any:
        return StagedSize(tuple(self) * times)

    __rmul__ = __mul__

    @acts_for_user
    def __getitem__(self, key: Any) -> Any:
        picked = super().__getitem__(key)
        return StagedSize(picked) if is_a(key, slice) else picked
