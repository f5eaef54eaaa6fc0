"""``backend="auto"``: the interpreter runs the first calls of a Program, C the others.

    calls 1 ... 15      the interpreter; from the second on a library is made in the background
    call 16             waits for the library if it is not there yet
    calls 16 ...        C; a library that cannot be made leaves the interpreter, with one warning

C rounds differently in the last bits, so who runs a call depends on its number and on nothing else: not on the clock,
and not on whether the library was on disk. Calls without gradients are counted apart from calls with gradients, and
those by which arguments need one: what they run are different Programs. A backward half is run by the executor that
ran its forward half, whenever that was. What has no loops and few small operators is left to torch's autograd where a
gradient is asked for (``gains_with_gradients``).
"""

from __future__ import annotations

import itertools
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

import torch

from runtime.autodiff.halves import Casting, Compile, Executable, Runs
from runtime.ir import Program
from runtime.native import NativeExecutable, activations, build
from runtime.native.background import Job, queue
from runtime.native.pointwise import BINARY_NAMES, UNARY_NAMES

TAKE_OVER = 16
"""The first call that C runs."""
START = 2
"""The call at which the library is begun: a Program that is called once is not worth a compiler."""

ELEMENTWISE = frozenset({*UNARY_NAMES, *BINARY_NAMES, *activations.NAMES})
LEAST, FOR_A_PARAMETER = 25, 2
"""So many elementwise operators a straight line has, and so many more for each parameter that gets a gradient, where C
computes small tensors with their gradients faster than torch's autograd. [m: ``benchmarks/takeover.py``]"""

T = TypeVar("T")
Later = Callable[..., NativeExecutable]

_told = threading.Event()


class Turn(Generic[T]):
    """Whose turn it is: the first executor's, or the second's, which ``make`` makes in the background."""

    def __init__(self, name: str, first: T, make: Callable[[], T | None]) -> None:
        self.first = first
        self.now = first
        self.over = False
        """Whether it is decided who runs all further calls."""
        self.job = Job(make, name)
        self.calls = 0
        self._numbers = itertools.count(1)
        self._begun = False
        self._lock = threading.Lock()

    def next(self) -> T:
        """Who runs the next call.

        Errors raised: whatever making the second executor raised, where that is to be an error (``build.strict``).
        """
        self.calls = number = next(self._numbers)
        if number >= TAKE_OVER or torch.are_deterministic_algorithms_enabled():
            self._begin()
            queue.wait(self.job)
            self._decide()
        elif number >= START:
            self._begin()
        return self.now

    def _begin(self) -> None:
        with self._lock:
            if self._begun:
                return
            self._begun = True
        queue.submit(self.job)

    def _decide(self) -> None:
        with self._lock:
            if self.over:
                return
            self.over = True
            if self.job.result is not None:
                self.now = self.job.result
        error = self.job.error
        if error is None:
            return
        if build.strict:
            raise error
        if not _told.is_set():
            _told.set()
            warnings.warn(f"{self.job.name} runs on the interpreter only: {error} (StaticFunction.compiled tells this "
                          "of other Programs; it is said once)", RuntimeWarning, stacklevel=2)  # fmt: skip

    @property
    def state(self) -> str:
        """``"interpreter"``, ``"building"``, ``"built"`` (C takes over at its call), ``"compiled"`` or ``"failed"``."""
        if not self._begun:
            return "interpreter"
        if not self.job.done.is_set():
            return "building"
        if self.job.error is not None:
            return "failed"
        if self.job.result is None:
            return "interpreter"
        return "compiled" if self.over else "built"


class Successive:
    """Runs without gradients, by one executor after another."""

    def __init__(self, first: Executable, program: Program, later: Later) -> None:
        grads: set[bool] = set()

        def make() -> Executable | None:
            made = later(program, grads=sorted(grads))
            return made if made.written.compiled else None

        self._grads = grads
        """The grad modes of callers so far."""
        self.turn = Turn(program.name, first, make)

    def run(self, inputs: Sequence[Any], params: Sequence[Any]) -> list[Any]:
        """As an executor."""
        turn = self.turn
        if turn.over:
            return turn.now.run(inputs, params)
        self._grads.add(torch.is_grad_enabled())
        chosen = turn.next()
        began = time.perf_counter()
        try:
            return chosen.run(inputs, params)
        finally:
            turn.job.spent += time.perf_counter() - began


class SuccessiveHalves:
    """Runs with gradients, by one executor after another."""

    def __init__(self, first: Runs, program: Program, make: Callable[[Compile], Runs], later: Later) -> None:
        def second() -> Runs | None:
            made: list[NativeExecutable] = []

            def compile(program: Program, /, **options: Any) -> Executable:
                made.append(later(program, **options))
                return made[-1]

            runs = make(compile)
            return runs if any(one.written.compiled for one in made) else None

        self.derivative = first.derivative
        self.casting: Casting = first.casting
        self.turn = Turn(program.name, first, second)

    def apply(self, arguments: Sequence[Any], n_inputs: int) -> list[Any]:
        """As the halves that run it: each graph keeps its own, backward included."""
        turn = self.turn
        if turn.over:
            return turn.now.apply(arguments, n_inputs)
        chosen = turn.next()
        began = time.perf_counter()
        try:
            return chosen.apply(arguments, n_inputs)
        finally:
            turn.job.spent += time.perf_counter() - began


def gains_with_gradients(program: Program) -> bool:
    """Whether C gains on torch's autograd where a Program without loops is given small tensors.

    Its forward and backward halves are two calls of C with the tensors of each parameter between them, whatever they
    compute; what an operator costs autograd, C saves. Products, norms and the like are no reason: both call the same.
    """
    count = sum(op.name.startswith("aten.") and op.name.split(".")[1] in ELEMENTWISE for op in program.block.walk())
    return count >= LEAST + FOR_A_PARAMETER * sum(one.requires_grad for one in program.params)


class AfterSomeCalls:
    """The ``Takeover`` of ``backend="auto"``; ``later`` makes a Program runnable in C, compiler included."""

    def __init__(self, later: Later) -> None:
        self.later = later

    def plain(self, first: Executable, program: Program) -> Executable:
        return Successive(first, program, self.later)

    def halves(self, first: Runs, program: Program, make: Callable[[Compile], Runs]) -> Runs:
        return SuccessiveHalves(first, program, make, self.later)


__all__ = ["START", "TAKE_OVER", "AfterSomeCalls", "Successive", "SuccessiveHalves", "Turn", "gains_with_gradients"]
