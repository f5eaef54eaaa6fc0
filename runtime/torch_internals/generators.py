"""PyTorch's random generators: their states, and who asks for them while a trace runs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch


def rng_state() -> list[torch.Tensor]:
    """The states of the default random generators: the CPU's, then every CUDA device's."""
    others = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else []
    return [torch.default_generator.get_state(), *others]


def set_rng_state(states: list[torch.Tensor]) -> None:
    """Random numbers go on from states that ``rng_state`` gave."""
    torch.default_generator.set_state(states[0])
    if len(states) > 1:
        torch.cuda.set_rng_state_all(states[1:])


@contextlib.contextmanager
def rng_restored(saved: list[torch.Tensor] | None) -> Iterator[None]:
    """Run with an earlier random state; afterwards the present one is back."""
    if saved is None:
        yield
        return
    before = rng_state()

    set_rng_state(saved)
    try:
        yield
    finally:
        set_rng_state(before)


class _Watched:
    """The default generator, as ``torch.manual_seed`` and its like find it while a trace runs."""

    def __init__(self, generator: torch.Generator, meet: Callable[[str], None]) -> None:
        self._generator, self._meet = generator, meet

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._generator, name)
        if callable(found):
            self._meet(name)
        return found


@contextlib.contextmanager
def watched_generator(meet: Callable[[str], None]) -> Iterator[None]:
    """While the block runs: ``meet`` is told, by name, what PyTorch's functions of Python do with the default
    generator, whoever calls them and by whatever name. Operators that draw from it are C and use the generator itself.
    """
    home: Any = torch.random
    before = home.default_generator
    home.default_generator = _Watched(before, meet)
    try:
        yield
    finally:
        home.default_generator = before


def generator_identity(generator: torch.Generator) -> int:
    """What is the same of all Python objects that stand for one generator: an operator's is another than the user's."""
    return int(generator._cdata)  # type: ignore[attr-defined]


__all__ = ["generator_identity", "rng_restored", "rng_state", "set_rng_state", "watched_generator"]
