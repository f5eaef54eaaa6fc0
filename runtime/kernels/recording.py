"""What was recorded of a function, and how its replays give the function's results.

A recording reads and writes fixed memory. Arguments that lie at the same place each time, as parameters do, are read
there. What else is given is copied; results are copied too, since the next replay overwrites them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch

from runtime import torch_internals
from runtime.kernels import launch

MOST_BYTES = 8 << 20
"""What a call may have to copy."""
NO_TENSOR, SAME = -1, -2
PLAIN = frozenset({torch.Tensor, torch.nn.Parameter, torch.nn.Buffer})
Function = Callable[..., tuple[Any, ...]]


class GaveUp(Exception):  # no error: the Operators themselves give the results
    """A replay cannot give the results of this call."""


class NotNow(Exception):  # no error: the Operators themselves give the results
    """A call cannot be recorded; the next one of its kind may be."""


class Replayed(Protocol):
    """What was recorded."""

    turn: threading.Lock
    kept: tuple[tuple[int, int], ...]

    def moved(self, tensors: Sequence[torch.Tensor]) -> list[int]:
        """The arguments that do not lie where the recording reads them."""

    def replay(self, given: Sequence[Any], tensors: Sequence[torch.Tensor]) -> tuple[Any, ...]:
        """The results for arguments. Errors raised: GaveUp."""


@dataclass(frozen=True)
class Arguments:
    """A call as a recording sees it. given: with ``statics`` in the place of tensors that are copied to them before
    each replay, and of which ``copied`` has the places among the tensors."""

    given: list[Any]
    copied: tuple[int, ...]
    statics: list[torch.Tensor]
    kept: tuple[tuple[int, int], ...]
    device: torch.device
    turn: threading.Lock



@dataclass(eq=False)
class Recording:
    """What was recorded. kept: places of arguments that are read where they lie, and where that is; copied: places of
    those that are copied to ``statics``; sources: the recording's memory that results are copied from."""

    play: Callable[[], None]
    turn: threading.Lock
    """Who has it records or replays: recordings of a stream share memory, so one's results are copied before another is
    replayed."""
    kept: tuple[tuple[int, int], ...]
    copied: tuple[int, ...]
    statics: list[torch.Tensor]
    sources: list[torch.Tensor]
    results: tuple[tuple[int, Any], ...]
    """Of each result which of the sources it is in, and its sizes, strides and offset there, None if it is that whole;
    or ``NO_TENSOR`` and the value, or ``SAME`` and which result it is, too."""

    def moved(self, tensors: Sequence[torch.Tensor]) -> list[int]:
        """The arguments that do not lie where the recording reads them."""
        return [place for place, where in self.kept if tensors[place].data_ptr() != where]

    def replay(self, given: Sequence[Any], tensors: Sequence[torch.Tensor]) -> tuple[Any, ...]:
        """The results for arguments."""
        if self.statics:
            torch_internals.copy_all(self.statics, [tensors[place] for place in self.copied])
        self.play()
        fresh = [torch.empty_strided(one.shape, one.stride(), dtype=one.dtype, device=one.device)
                 for one in self.sources]  # fmt: skip
        if fresh:
            torch_internals.copy_all(fresh, self.sources)
        found: list[Any] = []
        for place, how in self.results:
            if place == NO_TENSOR:
                found.append(how)
            elif place == SAME:
                found.append(found[how])
            else:
                found.append(fresh[place] if how is None else fresh[place].as_strided(*how))
        return tuple(found)


def record(function: Function, call: Arguments, size: int) -> Recording | None:
    """The function recorded; None where its results may be anything but new memory, or are large."""
    play, results = launch.machine.record(function, call.given, call.device)
    outer = {one.untyped_storage()._cdata for one in call.given if isinstance(one, torch.Tensor)}
    sources: list[torch.Tensor] = []
    places: dict[int, int] = {}
    described: list[tuple[int, Any]] = []
    met: dict[int, int] = {}
    for index, one in enumerate(results):
        if not isinstance(one, torch.Tensor):
            if one is not None and type(one) is not bool:
                return None
            described.append((NO_TENSOR, one))
            continue
        if met.setdefault(id(one), index) != index:
            described.append((SAME, met[id(one)]))
            continue
        storage = one.untyped_storage()
        if type(one) not in PLAIN or one.requires_grad or storage._cdata in outer or not launch.machine.takes(one):
            return None
        whole = storage.nbytes() == one.numel() * one.element_size()
        alone = sum(isinstance(other, torch.Tensor) and other.untyped_storage()._cdata == storage._cdata
                    for other in {id(other): other for other in results}.values()) == 1  # fmt: skip
        if whole and alone and lies_apart(one.shape, one.stride()):
            described.append((len(sources), None))
            sources.append(one)
            continue
        if storage.nbytes() % one.element_size() or (
            storage._cdata in places and sources[places[storage._cdata]].dtype is not one.dtype
        ):
            return None
        if storage._cdata not in places:
            places[storage._cdata] = len(sources)
            count = storage.nbytes() // one.element_size()
            sources.append(torch.as_strided(one, (count,), (1,), 0))
        described.append((places[storage._cdata], (one.shape, one.stride(), one.storage_offset())))
    if size + sum(map(bytes_of, sources)) > MOST_BYTES:
        return None
    return Recording(play, call.turn, call.kept, call.copied, call.statics, sources, tuple(described))


def bytes_of(tensor: torch.Tensor) -> int:
    return tensor.numel() * tensor.element_size()


def lies_apart(sizes: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether no two elements lie in one place, as far as sizes and strides tell at once.

    >>> lies_apart((2, 3), (3, 1)), lies_apart((2, 3), (1, 2)), lies_apart((2, 3), (0, 1)), lies_apart((3, 3), (2, 1))
    (True, True, False, False)
    """
    reach = 0
    for stride, size in sorted((stride, size) for size, stride in zip(sizes, strides) if size > 1):
        if stride <= reach:
            return False
        reach += stride * (size - 1)
    return True


__all__ = ["MOST_BYTES", "PLAIN", "Arguments", "Function", "GaveUp", "NotNow", "Recording", "Replayed", "bytes_of",
           "lies_apart", "record"]  # fmt: skip
