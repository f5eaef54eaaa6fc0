"""A Program made runnable with kernels: runs of its Operators are kernels, what is between them the interpreter's.

Where there is no CUDA device this is the reference executor.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from runtime.executor import compile_program as interpreted
from runtime.executor import emitter
from runtime.executor.executable import Executable
from runtime.executor.reuse import USUAL, Memory
from runtime.ir import Program
from runtime.kernels import launch
from runtime.kernels.emitter import KernelEmitter
from runtime.native.watched import WatchedExecutable


@dataclass(frozen=True)
class KernelShare:
    """How many Operators of a Program run as how many kernels, how many there are, and how many are parts of runs that
    are recorded and replayed (kernels are parts of them, too)."""

    operators: int
    kernels: int
    all: int
    recorded: int = 0


made: list[KernelExecutable] | None = None
"""All that are made, where somebody asks (tests count what runs as kernels)."""


class KernelExecutable(WatchedExecutable):
    """A compiled Program; made by ``compile_program``."""

    label = "dy2static kernels"
    written: KernelEmitter

    def __init__(self, *args: Any, straight: bool = False) -> None:
        self._straight = straight
        super().__init__(*args)
        if made is not None and not straight:
            made.append(self)

    def _emitter(self, *args: Any) -> emitter.Emitter:
        self.written = KernelEmitter(*args)
        if self._straight:
            self.written.records = False
        else:
            self.written.compile = _straight
        return self.written

    def cuda_source(self) -> str:
        """The generated CUDA, for reading."""
        return "\n\n".join(region.kernels.text() for region in self.written.compiled)

    def share(self) -> KernelShare:
        """What of the Program runs where."""
        kernels = sum(len(region.kernels.kernels) for region in self.written.compiled)
        recorded = sum(count for _, count in self.written.recorded)
        return KernelShare(len(self.written.in_kernels), kernels, sum(1 for _ in self.program.block.walk()), recorded)

    def in_kernels(self) -> list[str]:
        """The names of the Operators that run as kernels."""
        return list(self.written.in_kernels.values())


def _straight(program: Program) -> Executable:
    """A Program that is part of a recording: nothing in it is recorded by itself."""
    return KernelExecutable(program, {}, {}, False, False, USUAL, straight=True)


def compile_program(
    program: Program, *, functions: Mapping[str, Callable[..., Any]] | None = None,
    exceptions: Mapping[str, type[BaseException]] | None = None, coverage: bool = False, consuming: bool = False,
    kept: Collection[int] = (), memory: Memory = USUAL,
) -> Executable:
    """Make a Program runnable, with kernels where there is a CUDA device; the signature is the interpreter's.

    >>> from runtime.ir.parser import parse_program
    >>> import torch
    >>> program = parse_program('''program "f" {
    ...   input %x : f32[2] = "x"
    ...   %y : f32[2] = aten.add.Tensor(%x, %x)
    ...   return %y as $0
    ... }''')
    >>> compile_program(program).run([torch.ones(2)], [])
    [tensor([2., 2.])]
    """
    if not launch.machine.is_there():
        return interpreted(program, functions=functions, exceptions=exceptions, coverage=coverage, consuming=consuming,
                           kept=kept, memory=memory)  # fmt: skip
    return KernelExecutable(program, dict(functions or {}), dict(exceptions or {}), coverage, consuming, memory)


__all__ = ["KernelExecutable", "KernelShare", "compile_program"]
