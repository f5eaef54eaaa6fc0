"""Random generators among a call's arguments: one Program for all, which draws from a stand-in of its own.

    f(x, g)    trace      the Program draws from a generator that is nobody else's
               each call  the stand-in gets the state of ``g``; the Program runs; ``g`` gets the state of the stand-in

That is the same as drawing from ``g`` where nothing else can draw from it meanwhile, or tell the two apart: a Program
with a generator from elsewhere, with calls of code that is not converted, or with the stand-in among its results is of
no use, and the trace is made again for the very generator.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import torch

from runtime import torch_internals
from runtime.ir.operator import Operator
from runtime.kinds import is_a
from runtime.tracer.ambient.closing import CannotBeOpen

if TYPE_CHECKING:
    from runtime.tracer.recording.session import Session


class StandIn(torch.Generator):
    """A generator that nothing may be asked while a trace runs; operators may draw from it."""

    tracing = True

    def _ask(self) -> None:
        if self.tracing:
            raise CannotBeOpen("a generator among the arguments is asked for what it is")

    def __eq__(self, other: object) -> bool:
        self._ask()
        return self is other

    def __hash__(self) -> int:
        self._ask()
        return id(self)

    def __repr__(self) -> str:
        self._ask()
        return super().__repr__()

    def __reduce__(self) -> NoReturn:
        raise CannotBeOpen("a generator among the arguments is copied")

    def get_state(self) -> torch.Tensor:
        """The state. CannotBeOpen while a trace runs; so with the other methods."""
        self._ask()
        return super().get_state()

    def set_state(self, new_state: torch.Tensor) -> torch.Generator:
        """Go on from another state."""
        self._ask()
        return super().set_state(new_state)

    def manual_seed(self, seed: int) -> torch.Generator:
        """Begin anew from a seed."""
        self._ask()
        return super().manual_seed(seed)

    def initial_seed(self) -> int:
        """The seed that it began with."""
        self._ask()
        return super().initial_seed()

    def seed(self) -> int:
        """Begin anew from a seed that differs each time."""
        self._ask()
        return super().seed()


def same_generator(one: torch.Generator, other: torch.Generator) -> bool:
    """Whether two objects stand for one generator."""
    return torch_internals.generator_identity(one) == torch_internals.generator_identity(other)


def is_default(generator: torch.Generator) -> bool:
    """Whether a generator is one that operators draw from which are given none."""
    others = torch.cuda.default_generators if torch.cuda.is_initialized() else ()
    return any(same_generator(generator, one) for one in (torch.default_generator, *others))


def require_alone(session: Session, stand_ins: Sequence[StandIn], kept: Iterable[Any]) -> None:
    """Raises CannotBeOpen if a Program may draw from the caller's generator otherwise, or gives a stand-in away.

    ``kept``: objects that results and stores of the Program hold as they are.
    """
    if not stand_ins:
        return
    own = {torch_internals.generator_identity(one) for one in stand_ins}
    for op in session.program.block.walk():
        if op.name == "py_func":
            raise CannotBeOpen("code that is not converted may draw from a generator among the arguments")
        for generator in _generators(op):
            if torch_internals.generator_identity(generator) not in own and not is_default(generator):
                raise CannotBeOpen("a generator among the arguments may be one from elsewhere")
    if any(is_a(one, StandIn) for one in kept):
        raise CannotBeOpen("a generator among the arguments is a result")
    for one in stand_ins:
        one.tracing = False


def _generators(op: Operator) -> Iterator[torch.Generator]:
    todo = [*op.args, *op.kwargs.values()]
    for value in todo:
        if is_a(value, (list, tuple)):
            todo.extend(value)
        elif is_a(value, torch.Generator):
            yield value


def require_told_apart(a: Any, b: Any) -> None:
    """Raises CannotBeOpen where ``a is b`` asks which generator a stand-in is."""
    if a is not b and is_a(a, torch.Generator) and is_a(b, torch.Generator):
        if is_a(a, StandIn) or is_a(b, StandIn):
            raise CannotBeOpen("a generator among the arguments is compared with another")


class Exchange:
    """Gives stand-ins the states of a call's generators, and takes them back; one call after another."""

    def __init__(self, stand_ins: Sequence[tuple[int, StandIn]]) -> None:
        self._stand_ins = stand_ins
        self._lock = threading.RLock()

    @contextlib.contextmanager
    def of(self, opened: Sequence[Any]) -> Iterator[None]:
        """While the block runs, the Program draws from the generators among a call's open values."""
        with self._lock:
            for index, one in self._stand_ins:
                one.set_state(opened[index].get_state())
            try:
                yield
            finally:
                for index, one in self._stand_ins:
                    opened[index].set_state(one.get_state())


__all__ = ["Exchange", "StandIn", "is_default", "require_alone", "require_told_apart", "same_generator"]
