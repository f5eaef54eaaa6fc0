"""How a Program runs: by the interpreter, in C or as kernels, which library, and what of it runs there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from runtime.autodiff import Runner
from runtime.autodiff.halves import Executable, Halves
from runtime.calling.takeover import TAKE_OVER, Successive, SuccessiveHalves, Turn
from runtime.kernels import KernelExecutable, KernelShare
from runtime.kinds import is_a
from runtime.native import NativeExecutable, Share


@dataclass(frozen=True)
class Part:
    """How one kind of calls of a Program runs."""

    what: str
    """``"without gradients"``, or ``"with gradients"``: then the forward and the backward half count together."""
    state: str
    """``"interpreter"``, ``"kernels"``, ``"building"``, ``"built"`` (C takes over at its call), ``"compiled"`` or
    ``"failed"``."""
    reason: str
    """Why it is so, where there is something to say."""
    seconds: float
    """What the compiler took; 0.0 where the library was on disk already."""
    libraries: tuple[Path, ...]
    share: Share | None
    """How many Operators run in C; None where none does."""
    kernels: KernelShare | None = None
    """How many Operators run as kernels for a CUDA device; None where none does."""
    executables: tuple[NativeExecutable, ...] = field(default=(), repr=False, compare=False)

    def c_source(self) -> str:
        """The generated C, with the user's lines as comments; "" where there is none."""
        return "\n\n".join(text for one in self.executables if (text := one.c_source()))

    def __str__(self) -> str:
        said = f"{self.what}: {self.state}"
        if self.share is not None:
            called = f", {self.share.called} more called from it" if self.share.called else ""
            said += f", {self.share.in_c} of {self.share.all} operators in C{called}"
        if self.kernels is not None:
            count = self.kernels
            said += f", {count.operators} of {count.all} operators in {count.kernels} kernels"
            said += f", {count.recorded} recorded and replayed" if count.recorded else ""
        if self.libraries:
            said += f", compiled in {self.seconds:.2f} s" if self.seconds else ", library from disk"
        return f"{said} ({self.reason})" if self.reason else said


@dataclass(frozen=True)
class Compiled:
    """How one Program of a converted function runs; printed, it says so."""

    program: str
    backend: str
    parts: tuple[Part, ...]
    """The kinds of calls that there have been."""

    def c_source(self) -> str:
        """The generated C of all parts, with the user's lines as comments."""
        return "\n\n".join(text for part in self.parts if (text := part.c_source()))

    def __str__(self) -> str:
        return "\n".join([f"{self.program}, backend {self.backend!r}", *(f"  {part}" for part in self.parts)])


def compiled(runner: Runner, backend: str) -> Compiled:
    """How a Program runs that was made ready."""
    return Compiled(runner.program.name, backend, tuple(_parts(runner)))


def _parts(runner: Runner) -> Iterator[Part]:
    for what, found in runner.running():
        turn: Turn[Any] | None = found.turn if is_a(found, (Successive, SuccessiveHalves)) else None
        if turn is None:
            yield _part(what, _executables(found))
            continue
        second = turn.job.result if turn.state in ("built", "compiled") else None
        executables = _executables(second)
        yield _part(what, executables, turn.state, _why(turn))


def _executables(found: Any) -> list[Executable]:
    if is_a(found, Halves):
        backward = [one for stage in found.stages for one in (stage.backward, stage.whole)]
        return list(dict.fromkeys([found.forward, *backward]))
    return [] if found is None else [found]


def _why(turn: Turn[Any]) -> str:
    if turn.state == "failed":
        return str(turn.job.error)
    if turn.over:
        return "nothing in it gains from C" if turn.job.result is None else ""
    return f"after {turn.calls} calls; C takes over at call {TAKE_OVER}"


def _part_in_kernels(what: str, executables: Sequence[KernelExecutable]) -> Part:
    shares = [one.share() for one in executables]
    regions = [region for one in executables for region in one.written.compiled]
    errors = [region.kernels.error for region in regions if region.kernels.error]
    left = sum(region.given_up for region in regions)
    reason = errors[0] if errors else ""
    if left and not errors:
        reason = f"{left} of its {len(regions)} parts gave up too often and are the interpreter's"
    unrecorded = [run.reason for one in executables for run, _ in one.written.recorded if run.reason]
    if unrecorded and not reason:
        reason = f"{len(unrecorded)} runs are not recorded: {unrecorded[0]}"
    names = ("operators", "kernels", "all", "recorded")
    total = KernelShare(*(sum(getattr(one, name) for one in shares) for name in names))
    return Part(what, "failed" if errors else "kernels", reason, 0.0, (), None, total)


def _part(what: str, executables: Sequence[Executable], state: str = "", reason: str = "") -> Part:
    launching = [one for one in executables if is_a(one, KernelExecutable)]
    if any(one.written.compiled or one.written.recorded for one in launching):
        return _part_in_kernels(what, launching)
    native = [one for one in executables if is_a(one, NativeExecutable) and one.written.compiled]
    libraries = [library for one in native for library in one.libraries if library.functions]
    built = list({id(library.built): library.built for library in libraries if library.built is not None}.values())
    errors = [library.error for library in libraries if library.error]
    regions = [region for one in native for region in one.written.compiled]
    left = sum(region.given_up for region in regions)
    if not state:
        state = "failed" if errors else "compiled" if built else "building" if native else "interpreter"
        if errors:
            reason = errors[0]
        elif native and not built:
            reason = "compiled when it first runs"
    if left and not errors:
        reason = f"{left} of its {len(regions)} parts in C gave up too often and are the interpreter's"
    shares = [one.share() for one in executables if is_a(one, NativeExecutable)] if native else []
    return Part(
        what, state, reason, sum(one.seconds for one in built), tuple(one.path for one in built),
        Share(*(sum(getattr(one, name) for one in shares) for name in ("in_c", "called", "all"))) if shares else None,
        None, tuple(native),
    )


__all__ = ["Compiled", "Part", "compiled"]
