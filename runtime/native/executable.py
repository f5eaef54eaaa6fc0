"""A Program made runnable with C: regions of it are C functions, what is between them the interpreter's Python.

Where somebody watches operators (a dispatch mode, ``torch.func``, autocast), the interpreter runs it all.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from runtime.executor import compile_program as interpreted
from runtime.executor import emitter
from runtime.executor.executable import Executable
from runtime.executor.reuse import USUAL, Memory
from runtime.ir import Program
from runtime.native import build
from runtime.native.emitter import NativeEmitter, stacks_of
from runtime.native.region import Library
from runtime.native.stack import Stack, listed
from runtime.native.watched import WatchedExecutable


@dataclass(frozen=True)
class Share:
    """How many Operators of a Program C runs, how many Python runs when C asks, and how many there are."""

    in_c: int
    called: int
    all: int


made: list[NativeExecutable] | None = None
"""All that are made, where somebody asks (tests count what runs in C)."""


class NativeExecutable(WatchedExecutable):
    """A compiled Program; made by ``compile_program``."""

    label = "dy2static C"

    def __init__(self, program: Program, functions: Mapping[str, Callable[..., Any]],
                 exceptions: Mapping[str, type[BaseException]], coverage: bool, consuming: bool,
                 kept: frozenset[int] = frozenset(), memory: Memory = USUAL, frozen: bool = False) -> None:  # fmt: skip
        self._kept = kept
        self._frozen = frozen
        self.libraries: list[Library] = []
        """The C of each variant."""
        super().__init__(program, functions, exceptions, coverage, consuming, memory)
        if made is not None:
            made.append(self)

    def _plain(self, inputs: Sequence[Any]) -> Sequence[Any]:
        if any(type(one) is Stack for one in inputs):
            given = list(map(listed, inputs))
            if self._consuming:
                inputs.clear()  # type: ignore[attr-defined]  # it is a list
            return given
        return inputs

    def _generate(self, grad: bool, ordinary: bool) -> Any:
        made = super()._generate(grad, ordinary)
        for region in self.written.compiled:
            region.hits = self._hits
        return made

    def _emitter(self, *args: Any) -> emitter.Emitter:
        made = NativeEmitter(*args)
        made.stacks = stacks_of(self.program, self._kept)
        if self._frozen:
            made.frozen = frozenset(one.var for one in self.program.params)
        self.written = made
        self.libraries.append(made.library)
        return made

    def run(self, inputs: Sequence[Any], params: Sequence[Any]) -> list[Any]:
        """As usual; where Python's recursion limit is reached on the way into C, ctypes names the limit in an error of
        its own."""
        try:
            return super().run(inputs, params)
        except ctypes.ArgumentError as error:
            if RecursionError.__name__ not in str(error):
                raise
            raise RecursionError(str(error)).with_traceback(error.__traceback__) from None

    def ready(self, grad: bool) -> None:
        """Make everything that runs for callers in one grad mode, so that no call has to wait for a compiler.

        Errors raised: BuildError.
        """
        self._variant(grad)
        for library in tuple(self.libraries):
            if library.functions:
                library.loaded()

    def share(self) -> Share:
        """What of the Program runs where."""
        written = self.written
        return Share(len(written.done_by_c), len(written.done_for_c), sum(1 for _ in self.program.block.walk()))

    def in_python(self) -> list[str]:
        """The names of the Operators that C does not run, those that it calls among them."""
        return [op.name for op in self.program.block.walk() if id(op) not in self.written.done_by_c]

    def c_source(self) -> str:
        """The generated C, for reading: with the user's lines as comments, each before the code that has it done."""
        return "\n\n".join(region.text for region in self.written.compiled)


def compile_program(
    program: Program, *, functions: Mapping[str, Callable[..., Any]] | None = None,
    exceptions: Mapping[str, type[BaseException]] | None = None, coverage: bool = False, consuming: bool = False,
    kept: Collection[int] = (), memory: Memory = USUAL, frozen: bool = False,
) -> Executable:
    """Make a Program runnable, with C where there is a compiler; the signature is the interpreter's. ``frozen``:
    whether nothing ever changes its parameters; then matrices among them are packed once.

    >>> from runtime.ir.parser import parse_program
    >>> program = parse_program('''program "f" {
    ...   input %n : int = "n"
    ...   %more : bool = scalar.lt(0, %n)
    ...   %f : bool, %m : int = while_loop(%more, %n) {
    ...     ^(%g : bool, %i : int):
    ...       yield %g
    ...   } {
    ...     ^(%h : bool, %j : int):
    ...       %k : int = scalar.sub(%j, 3)
    ...       %b : bool = scalar.lt(0, %k)
    ...       yield %b, %k
    ...   }
    ...   return %m as $0
    ... }''')
    >>> compile_program(program).run([100], [])
    [-2]
    """
    if not build.available():
        return interpreted(program, functions=functions, exceptions=exceptions, coverage=coverage, consuming=consuming,
                           memory=memory)  # fmt: skip
    stacks = frozenset(kept)
    return NativeExecutable(program, dict(functions or {}), dict(exceptions or {}), coverage, consuming, stacks, memory,
                            frozen)  # fmt: skip


def compile_now(
    program: Program, *, functions: Mapping[str, Callable[..., Any]] | None = None,
    exceptions: Mapping[str, type[BaseException]] | None = None, consuming: bool = False, kept: Collection[int] = (),
    grads: Collection[bool] = (), memory: Memory = USUAL, frozen: bool = False,
) -> NativeExecutable:
    """As ``compile_program``, and the compiler has run: for callers in the current grad mode, else in all of ``grads``.

    Errors raised: BuildError, also where there is no compiler.
    """
    if build.compiler() is None:
        raise build.BuildError(build.NO_COMPILER)
    wanted = list(grads) or [torch.is_grad_enabled()]
    with torch.set_grad_enabled(wanted[0]):
        made = NativeExecutable(program, dict(functions or {}), dict(exceptions or {}), False, consuming,
                                frozenset(kept), memory, frozen)
    for grad in wanted:
        made.ready(grad)
    return made


def c_of(program: Program, exceptions: Mapping[str, type[BaseException]]) -> NativeExecutable:
    """A Program written in C, for looking at: nothing is compiled, and there need be no compiler."""
    return NativeExecutable(program, {}, exceptions, False, False)


__all__ = ["NativeExecutable", "Share", "c_of", "compile_now", "compile_program"]
