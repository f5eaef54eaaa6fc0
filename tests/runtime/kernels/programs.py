"""Programs from text, as kernels and on the interpreter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runtime.executor import compile_program as interpreted
from runtime.ir.parser import parse_program
from runtime.kernels import KernelExecutable, compile_program
from tests.runtime.native.programs import hold, randoms


def compiled(text: str, **options: Any) -> KernelExecutable:
    """A Program with kernels in it."""
    made = compile_program(parse_program(text), **options)
    assert isinstance(made, KernelExecutable)
    return made


def gave_up(made: KernelExecutable) -> int:
    """How often its regions gave up in a row."""
    return sum(region.failures for region in made.written.compiled)


def agree(text: str, *calls: Sequence[Any], rounding: float = 0.0, in_kernels: int | None = None,
          kernels: int | None = None) -> KernelExecutable:  # fmt: skip
    """Both give the same on all calls, exceptions too. in_kernels: how many Operators run as kernels (None: all);
    kernels: how many kernels those are (None: whatever)."""
    mine, reference = compiled(text), interpreted(parse_program(text))
    operators = list(mine.program.block.walk())
    assert len(mine.in_kernels()) == (len(operators) if in_kernels is None else in_kernels), mine.in_kernels()
    made = sum(len(region.kernels.kernels) for region in mine.written.compiled)
    assert kernels is None or made == kernels, mine.cuda_source()
    hold(mine, reference, calls, rounding)
    return mine


__all__ = ["agree", "compiled", "gave_up", "hold", "randoms"]
