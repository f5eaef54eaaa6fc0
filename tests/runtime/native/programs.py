"""Programs from text, in C and on the interpreter."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import torch

from runtime.executor import compile_program as interpreted
from runtime.ir.parser import parse_program
from runtime.native import NativeExecutable, compile_program


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
    for call in calls:
        results = []
        for executable in (mine, reference):
            try:
                results.append(executable.run(copy.deepcopy(list(call)), []))
            except Exception as error:  # what the interpreter raises is what is compared
                results.append([type(error), str(error)])
        same(*results, rounding)
    return mine


def same(got: Any, expected: Any, rounding: float) -> None:
    """Equal in type, structure, strides and value."""
    assert type(got) is type(expected), (got, expected)
    if isinstance(got, torch.Tensor):
        assert got.stride() == expected.stride() and got.storage_offset() == expected.storage_offset()
        assert got._is_view() == expected._is_view()
        torch.testing.assert_close(got, expected, rtol=rounding, atol=rounding, equal_nan=True)
    elif isinstance(got, (list, tuple)):
        assert len(got) == len(expected)
        for one, other in zip(got, expected):
            same(one, other, rounding)
    elif isinstance(got, float):
        assert got == expected or (got != got and expected != expected)
    else:
        assert got == expected
