"""Operators: what a Block does, one after another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from runtime.ir.location import Location
from runtime.ir.variable import Operand, Variable

if TYPE_CHECKING:
    from runtime.ir.block import Block

GradMode = Literal["inherit", "on", "off"]


def leaves(operand: Operand) -> Iterator[Variable]:
    """The Variables inside an operand, left to right."""
    if isinstance(operand, Variable):
        yield operand
    elif isinstance(operand, (list, tuple)):
        for item in operand:
            yield from leaves(item)
    elif isinstance(operand, dict):
        for item in operand.values():
            yield from leaves(item)
    elif isinstance(operand, slice):
        yield from leaves((operand.start, operand.stop, operand.step))


@dataclass(eq=False)
class Operator:
    """One operation: ``outputs = name(*args, **kwargs) { blocks }``.

    ``name`` is an ATen overload (``"aten.add.Tensor"``) or one of the structural names of ``runtime.ops``.
    ``grad_mode`` is the gradient mode it runs in ("inherit": the caller's); ``autocast`` is None for the caller's
    autocast state, else tuples ``(device_type, enabled, dtype)``.
    """

    name: str
    args: tuple[Operand, ...] = ()
    kwargs: dict[str, Operand] = field(default_factory=dict)
    outputs: tuple[Variable, ...] = ()
    blocks: tuple[Block, ...] = ()
    attrs: dict[str, Any] = field(default_factory=dict)
    grad_mode: GradMode = "inherit"
    autocast: tuple[tuple[str, bool, str], ...] | None = None
    location: Location | None = None

    @property
    def inputs(self) -> list[Variable]:
        """Variables read directly by the operator (not those its Blocks capture), in order, with repeats."""
        found: list[Variable] = []
        for operand in (*self.args, *self.kwargs.values()):
            if isinstance(operand, Variable):  # most are, and need no generator
                found.append(operand)
            elif isinstance(operand, (list, tuple, dict, slice)):
                found.extend(leaves(operand))
        return found
