"""Programs from text, in C and on the interpreter."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import torch

from runtime.executor import Executable
from runtime.executor import compile_program as interpreted
from runtime.ir.parser import parse_program
from runtime.native import NativeExecutable, compile_program
from tests import devices
from tests.oracle import same, tensors


def compiled(text: str, **options: Any) -> NativeExecutable:
    """A Program with C in it."""
    made = compile_program(parse_program(text), **options)
    assert isinstance(made, NativeExecutable)
    return made


def gave_up(executable: NativeExecutable) -> int:
    """How often its regions gave up in a row."""
    return sum(region.failures for region in executable.written.compiled)


def agree(text: str, *calls: Sequence[Any], rounding: float = 0.0, in_c: int | None = None) -> NativeExecutable:
    """Both give the same on all calls, exceptions too. ``in_c``: how many Operators C runs (None: all of them)."""
    mine, reference = compiled(text), interpreted(parse_program(text))
    share = mine.share()
    assert share.in_c == (share.all if in_c is None else in_c), (share, mine.in_python())
    hold(mine, reference, calls, rounding)
    return mine


def hold(mine: Executable, reference: Executable, calls: Sequence[Sequence[Any]], rounding: float) -> None:
    """Both give or raise the same, and leave the same of their arguments; tensors lie in memory alike."""
    for call in calls:
        seen = []
        for executable in (mine, reference):
            given: list[Any] = copy.deepcopy(list(call))
            result: Any
            try:
                result = executable.run(given, [])
            except Exception as error:  # what the interpreter raises is what is compared
                result = error
            seen.append((result, given, [one._is_view() for one in tensors(result)]))
        same(*seen, tolerance=rounding, strides=True)


def randoms(dtype: torch.dtype, *shapes: tuple[int, ...]) -> list[torch.Tensor]:
    """Normal numbers."""
    generator = devices.generator(sum(map(sum, shapes)))
    return [torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype) for shape in shapes]
