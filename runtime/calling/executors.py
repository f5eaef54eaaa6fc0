"""The executors, by the name of their backend: what makes a Program runnable, and what depends on which one it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from runtime import kernels, native
from runtime.executor.executable import Executable, compile_program
from runtime.executor.limited import compile_limited


@dataclass(frozen=True)
class Executor:
    """What runs Programs under one backend's name; all others are held against the interpreter.

    compile: Makes a Program runnable; has the signature of ``compile_program``. successor: What takes over after some
    calls (``takeover``). limited: Makes one runnable that keeps to ``limits``. exact: Whether it calls eager's
    operators one by one: it has eager's bits, and a call costs it about what it costs eager. packs: Whether it, or what
    takes over, can pack parameters that nothing changes (``frozen``).
    """

    compile: Callable[..., Executable]
    successor: Callable[..., native.NativeExecutable] | None = None
    limited: Callable[..., Executable] | None = None
    exact: bool = False
    packs: bool = False


EXECUTORS = {
    "interpreter": Executor(compile_program, limited=compile_limited, exact=True),
    "c": Executor(native.compile_program, packs=True),
    "auto": Executor(compile_program, successor=native.compile_now, packs=True),
    "cuda": Executor(kernels.compile_program),
}


def executor(backend: str) -> Executor:
    """What runs the Programs of a backend. Errors raised: ValueError for an unknown one, with those there are.

    >>> executor("interpreter").exact, executor("c").exact
    (True, False)
    """
    if backend not in EXECUTORS:
        raise ValueError(f"there is no backend {backend!r}; available: {', '.join(map(repr, EXECUTORS))}")
    return EXECUTORS[backend]


__all__ = ["EXECUTORS", "Executor", "executor"]
