"""Axes: which dimensions of which values are the same channel, and which may not change (union-find).

    %y = aten.relu(%x)        axis 1 of %x and axis 1 of %y are one group
    return %y                 the group is *fixed*: a caller gets it
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from runtime.ir import Dim, Location, Operator, Variable


class Axis(NamedTuple):
    """A dimension of a Variable, or of a tensor at a place of the artefact."""

    owner: Variable | int
    dim: int


@dataclass(frozen=True)
class Fixed:
    """Why a group may not change, and the Operator that says so."""

    reason: str
    op: Operator | None = None

    @property
    def location(self) -> Location | None:
        """Where that is in the user's source."""
        return None if self.op is None else self.op.location

    def __str__(self) -> str:
        where = "" if self.location is None else f" at {self.location.file}:{self.location.line}"
        text = "" if self.location is None or not self.location.text else f" ({self.location.text.strip()})"
        return f"{self.reason}{where}{text}"


@dataclass(eq=False)
class Group:
    """Axes that are the same channel. ``fixed``: why they may not change; ``makers``: the axes of weights that make the
    channels."""

    size: Dim
    members: list[Axis]
    fixed: Fixed | None = None
    makers: list[Axis] = field(default_factory=list)


class Axes:
    """All groups of a model."""

    def __init__(self) -> None:
        self._groups: dict[Axis, Group] = {}

    def group(self, axis: Axis, size: Dim) -> Group:
        """The group of an axis, which has a group of its own at first."""
        found = self._groups.get(axis)
        if found is None:
            found = self._groups[axis] = Group(size, [axis], None if isinstance(size, int) else Fixed("an open size"))
        return found

    def join(self, a: Axis, a_size: Dim, b: Axis, b_size: Dim, op: Operator | None) -> None:
        """Two axes are the same channel; if they are not known to be equally large, neither may change."""
        one, other = self.group(a, a_size), self.group(b, b_size)
        if one is other:
            return
        if a_size != b_size:
            for group in (one, other):
                group.fixed = group.fixed or Fixed("sizes that are not known to be equal", op)
            return
        if len(one.members) < len(other.members):
            one, other = other, one
        for axis in other.members:
            self._groups[axis] = one
        one.members += other.members
        one.makers += other.makers
        one.fixed = one.fixed or other.fixed

    def fix(self, axis: Axis, size: Dim, reason: Fixed) -> None:
        """The group of an axis may not change."""
        group = self.group(axis, size)
        group.fixed = group.fixed or reason

    def groups(self) -> list[Group]:
        """Every group once, in the order in which its first axis was met."""
        return list({id(one): one for one in self._groups.values()}.values())


__all__ = ["Axes", "Axis", "Fixed", "Group"]
