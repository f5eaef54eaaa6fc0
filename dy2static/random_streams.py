"""Where random numbers go on from: kept before a run that may have to be done again, and put back then."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Iterable
from typing import Any

import numpy
import torch

from runtime import torch_internals
from runtime.ir import Program
from runtime.kinds import is_a
from runtime.ops import host
from runtime.ops.registry import definition

PutBack = Callable[[], Any]


class Streams:
    """All random streams that a run of a Program may draw from, or set, but for those that it makes itself."""

    def __init__(self, program: Program) -> None:
        drawing = [op for op in program.block.walk() if definition(op.name).random or op.name.startswith(host.FAMILY)]
        own = {id(one): one for op in drawing if (one := op.kwargs.get("generator")) is not None}
        self._own = [one for one in own.values() if (is_a(one, torch.Generator) or host.is_generator(one))
                     and not is_a(one, (host.Made, host.MadeTorch))]  # fmt: skip
        shared = {host.stream(op) for op in drawing}
        self._keepers: list[Callable[[], PutBack]] = [_KEEPERS[name] for name in _KEEPERS if name in shared]

    def keep(self, generators: Iterable[torch.Generator] = ()) -> PutBack:
        """Note where the streams are, and those of ``generators``; the call of what it gives puts them back there."""
        found = [keep() for keep in self._keepers]
        found += [_of_own(one) for one in (*self._own, *generators)]

        def put_back() -> None:
            for one in found:
                one()

        return put_back


def _of_torch() -> PutBack:
    states = torch_internals.rng_state()
    return lambda: torch_internals.set_rng_state(states)


def _of_python() -> PutBack:
    state = random.getstate()
    return lambda: random.setstate(state)


def _of_numpy() -> PutBack:
    state = numpy.random.get_state()  # the one that all share
    return lambda: numpy.random.set_state(state)


def _of_own(generator: Any) -> PutBack:
    """Of a ``random.Random``, or a generator of PyTorch's or NumPy's."""
    if is_a(generator, random.Random):
        if is_a(generator, random.SystemRandom):
            return lambda: None
        state: Any = generator.getstate()
        return lambda: generator.setstate(state)
    if is_a(generator, torch.Generator):
        state = generator.get_state()
        return functools.partial(generator.set_state, state)
    if is_a(generator, numpy.random.RandomState):
        state = generator.get_state()
        return lambda: generator.set_state(state)
    bits = generator.bit_generator
    state = bits.state
    return lambda: setattr(bits, "state", state)


_KEEPERS: dict[str, Callable[[], PutBack]] = {"torch": _of_torch, "random": _of_python, "numpy": _of_numpy}

__all__ = ["PutBack", "Streams"]
