"""The executors, by the name of their backend: what makes a Program runnable."""

from __future__ import annotations

from collections.abc import Callable

from runtime import kernels, native
from runtime.executor.executable import Executable, compile_program

EXECUTORS: dict[str, Callable[..., Executable]] = {
    "interpreter": compile_program, "c": native.compile_program, "auto": compile_program,
    "cuda": kernels.compile_program,
}  # fmt: skip
"""Backend -> a function with the signature of ``compile_program``. All others are held against the interpreter."""

SUCCESSORS: dict[str, Callable[..., native.NativeExecutable]] = {"auto": native.compile_now}
"""Backend -> what takes over after some calls (``takeover``)."""


def executor(backend: str) -> Callable[..., Executable]:
    """What makes Programs runnable for a backend. Errors raised: ValueError for an unknown one, with those there are.

    >>> executor("interpreter") is compile_program
    True
    """
    if backend not in EXECUTORS:
        raise ValueError(f"there is no backend {backend!r}; available: {', '.join(map(repr, EXECUTORS))}")
    return EXECUTORS[backend]


__all__ = ["EXECUTORS", "SUCCESSORS", "executor"]
