"""What compression did to a model, weight by weight: ``print(report)`` shows a table."""

from __future__ import annotations

from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Weight:
    """A weight before and after: its sizes, how many elements are zero now, and the bytes that its elements take."""

    name: str
    before: tuple[int, ...]
    after: tuple[int, ...]
    zeros: int
    bytes_before: int
    bytes_after: int

    @property
    def elements(self) -> int:
        """How many elements it has now."""
        return torch.Size(self.after).numel()


@dataclass(frozen=True)
class Left:
    """Something that was left as it was: what, where in the user's source, and why."""

    what: str
    where: str
    why: str

    def __str__(self) -> str:
        return f"{self.what}{f' at {self.where}' if self.where else ''}: {self.why}"


@dataclass(frozen=True)
class Report:
    """What was done: a row for each weight, and what was left as it was."""

    weights: tuple[Weight, ...]
    left: tuple[Left, ...] = ()

    @property
    def bytes_before(self) -> int:
        """The bytes of all weights before."""
        return sum(one.bytes_before for one in self.weights)

    @property
    def bytes_after(self) -> int:
        """The bytes of all weights after."""
        return sum(one.bytes_after for one in self.weights)

    @property
    def sparsity(self) -> float:
        """The share of elements that are zero now; 0.0 where there are none."""
        elements = sum(one.elements for one in self.weights)
        return sum(one.zeros for one in self.weights) / elements if elements else 0.0

    def __str__(self) -> str:
        rows = [("weight", "before", "after", "zeros", "bytes before", "bytes after")]
        rows += [(one.name, _sizes(one.before), _sizes(one.after), f"{one.zeros:,}", f"{one.bytes_before:,}",
                  f"{one.bytes_after:,}") for one in self.weights]  # fmt: skip
        zeros = sum(one.zeros for one in self.weights)
        rows.append(("total", "", "", f"{zeros:,}", f"{self.bytes_before:,}", f"{self.bytes_after:,}"))
        widths = [max(map(len, column)) for column in zip(*rows)]
        lines = ["  ".join(cell.ljust(width) if not place else cell.rjust(width)
                           for place, (cell, width) in enumerate(zip(row, widths))) for row in rows]  # fmt: skip
        if self.left:
            lines += ["", "left as it was:", *(f"  {one}" for one in self.left)]
        return "\n".join(lines)


def _sizes(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape)) or "1"


__all__ = ["Left", "Report", "Weight"]
