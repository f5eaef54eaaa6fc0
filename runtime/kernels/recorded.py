"""A run of Operators that is recorded once and then replayed: one launch in place of one for each kernel.

    t = C5(g7, v1, v2)        the first calls: g7(v1, v2); then its kernels are recorded (a CUDA graph), and a call
                              copies its arguments to where the recording reads, replays it, and copies the results

A recording reads and writes fixed memory. Arguments that lie at the same place each time, as parameters do, are read
there. What else is given is copied; results are copied too, since the next replay overwrites them. So runs with large
results are not recorded: what they wait for is the device, and nothing is gained.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from runtime import torch_internals
from runtime.kernels import launch, recording
from runtime.kernels.recording import (
    PLAIN,
    Arguments,
    Function,
    GaveUp,
    NotNow,
    Replayed,
    bytes_of,
    lies_apart,
    record,
)

WARM = 2
"""Calls of a kind before the one that is recorded."""
MOST_KINDS = 8
"""Recordings of a run: other sizes, other numbers."""
MOST_SEEN = 64
"""Kinds of calls, from which on it is not looked for more."""
MISSES, SKIPPED = 16, 63
"""After so many calls in a row of kinds that cannot be recorded, so many calls are not looked at."""
MOST_GIVEN_UP = 8
"""How often a replay may give up."""
MOST_AGAIN = 4
"""How often a recording is made again because an argument that lay in one place has moved."""

_turns: dict[Any, threading.Lock] = {}
"""A stream's."""


@dataclass(frozen=True)
class _Quick:
    """One quick test for calls that a recording serves; others may be served by it as well."""

    recording: Replayed
    test: Callable[..., bool]
    modes: tuple[Any, ...]
    stream: int
    device: torch.device
    others: list[Any]
    count: int
    """Arguments."""

    @staticmethod
    def of(recording: Replayed, given: Sequence[Any], tensors: Sequence[torch.Tensor]) -> _Quick | None:
        test = torch_internals.tensor_test([(one, None) for one in tensors])
        stream = launch.machine.stream(tensors[0].device)
        if test is None or stream is None:
            return None
        return _Quick(recording, test, _modes(), stream, tensors[0].device, _others(given), len(given))

    def holds(self, given: Sequence[Any], tensors: Sequence[torch.Tensor]) -> bool:
        if len(given) != self.count or len(tensors) + len(self.others) != self.count:
            return False
        if self.others and _others(given) != self.others:
            return False
        return self.test(*tensors) and _modes() == self.modes and launch.machine.stream(self.device) == self.stream


def _modes() -> tuple[Any, ...]:
    return torch.is_grad_enabled(), torch.is_inference_mode_enabled(), *torch_internals.cuda_settings()


def _others(given: Sequence[Any]) -> list[Any]:
    """What is given besides tensors, and in which places, so that equal ones are the same: -0.0 is not 0.0, nor True
    1."""
    return [(place, one.hex() if type(one) is float else (type(one), one))
            for place, one in enumerate(given) if not isinstance(one, torch.Tensor)]  # fmt: skip


@dataclass(eq=False)
class RecordedRun:
    """A run of Operators; called with the function that is it, and that function's arguments.

    make: what records it another way (``device.loops``); reason: why it is not recorded any more.
    """

    make: Callable[[Function, Arguments, int], Replayed | None] | None = None
    """Of the function, its arguments, and how many bytes the statics have."""
    recordings: dict[Any, Replayed | None] = field(default_factory=dict)
    seen: dict[Any, tuple[int, tuple[int, ...]]] = field(default_factory=dict)
    """Kinds of calls that are not recorded yet: how many there were, and where the arguments of the last lay."""
    moving: set[int] = field(default_factory=set)
    """Places of arguments that were seen to move."""
    again: int = 0
    reason: str = ""
    replays: int = 0
    misses: int = 0
    """Calls in a row of kinds that cannot be recorded."""
    skip: int = 0
    """How many of the next calls are not looked at."""
    gave_up: int = 0
    last: Replayed | None = None
    """That was replayed last."""
    quick: _Quick | None = None
    """For one that was replayed twice in a row."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, function: Function, *given: Any) -> tuple[Any, ...]:
        if self.skip:  # threads may lose a count of each other's: it matters to nothing
            self.skip -= 1
            return function(*given)
        if self.reason or not self._lock.acquire(blocking=False):
            return function(*given)
        try:
            if self.quick is not None:
                tensors = [one for one in given if isinstance(one, torch.Tensor)]
                if self.quick.holds(given, tensors) and not self.quick.recording.moved(tensors):
                    return self._replay(self.quick.recording, function, given, tensors)
            kind, tensors = self._kind(given)
            if kind is None:
                return function(*given)
            found = self.recordings.get(kind)
            if found is None:
                if kind in self.recordings:
                    self.misses += 1
                    if self.misses >= MISSES:
                        self.misses, self.skip = 0, SKIPPED
                    return function(*given)
                return self._not_yet(kind, function, given, tensors)
            gone = found.moved(tensors)
            if gone:
                self.quick = None
                self.moving.update(gone)
                self.again += 1
                del self.recordings[kind]
                if self.again > MOST_AGAIN:
                    self._end("arguments lie somewhere else in each call")
                    return function(*given)
                return self._record(kind, function, given, tensors, dict(found.kept))
            if self.last is found:
                self.quick = _Quick.of(found, given, tensors)
            self.last = found
            return self._replay(found, function, given, tensors)
        finally:
            self._lock.release()

    def _replay(self, recording: Replayed, function: Function, given: Sequence[Any], tensors: Sequence[torch.Tensor]
                ) -> tuple[Any, ...]:  # fmt: skip
        """The results, of the Operators themselves where another recording of the stream is just being replayed, by
        another thread or below in this one's stack."""
        if not recording.turn.acquire(blocking=False):
            return function(*given)
        try:
            found = recording.replay(given, tensors)
            self.replays += 1
            self.misses = 0
            return found
        except GaveUp:
            self.gave_up += 1
        finally:
            recording.turn.release()
        if self.gave_up > MOST_GIVEN_UP:
            self._end("the Operators themselves had to run too often")
        return function(*given)

    def _end(self, reason: str) -> None:
        """Record no more, and let go of what is recorded."""
        self.reason = reason
        self.recordings, self.seen, self.last, self.quick = {}, {}, None, None

    def _kind(self, given: Sequence[Any]) -> tuple[Any, list[torch.Tensor]]:
        """What two calls that one recording serves have in common, None where nothing may be recorded; the tensors."""
        grad = torch.is_grad_enabled()
        found: list[Any] = [torch.is_inference_mode_enabled(), torch_internals.cuda_settings()]
        tensors: list[torch.Tensor] = []
        for one in given:
            if isinstance(one, torch.Tensor):
                if type(one) not in PLAIN or (grad and one.requires_grad) or not launch.machine.takes(one):
                    return None, tensors
                found.append((one.dtype, one.shape, one.stride()))
                tensors.append(one)
            elif one is None or type(one) in (bool, int):
                found.append((type(one), one))
            elif type(one) is float:
                found.append(one.hex())
            else:
                return None, tensors
        if not tensors or any(one.device != tensors[0].device for one in tensors):
            return None, tensors
        found += [tensors[0].device, launch.machine.stream(tensors[0].device)]
        return (None if found[-1] is None else tuple(found)), tensors

    def _not_yet(self, kind: Any, function: Function, given: Sequence[Any], tensors: Sequence[torch.Tensor]
                 ) -> tuple[Any, ...]:  # fmt: skip
        """A call of a kind that is not recorded."""
        count, lay = self.seen.get(kind, (0, ()))
        here = tuple(one.data_ptr() for one in tensors)
        if count >= WARM and len(self.recordings) < MOST_KINDS:
            del self.seen[kind]
            stay = {place: where for place, where in enumerate(here) if where == lay[place]}
            return self._record(kind, function, given, tensors, stay)
        self.seen[kind] = (count + 1, here)
        if len(self.seen) > MOST_SEEN:
            self._end("sizes or numbers are others in each call")
        return function(*given)

    def _record(self, kind: Any, function: Function, given: Sequence[Any], tensors: Sequence[torch.Tensor],
                stay: dict[int, int]) -> tuple[Any, ...]:  # fmt: skip
        """A call, after which its kind is recorded, or known to be one that is not."""
        kept = tuple((place, where) for place, where in stay.items() if place not in self.moving)
        turn = _turns.setdefault((tensors[0].device, launch.machine.stream(tensors[0].device)), threading.Lock())
        if not turn.acquire(blocking=False):
            return function(*given)
        self.recordings[kind] = made = None
        why = ""
        try:
            made = self._made(function, given, tensors, kept, turn)
        except NotNow:
            del self.recordings[kind]
        except Exception as error:  # whatever it is, the Operators are run as they are
            why = f"{type(error).__name__}: {error}".split("\n")[0]
        finally:
            turn.release()
        if made is None:
            found = function(*given)  # what raises here, too, is no fault of recording
            if why:
                self._end(why)
            return found
        self.recordings[kind] = made
        return self._replay(made, function, given, tensors)

    def _made(self, function: Function, given: Sequence[Any], tensors: Sequence[torch.Tensor],
              kept: tuple[tuple[int, int], ...], turn: threading.Lock) -> Replayed | None:  # fmt: skip
        if any(one.numel() == 0 for one in tensors):  # PyTorch warns of a graph that launches nothing
            return None
        there = {place for place, _ in kept}
        copied = tuple(place for place in range(len(tensors)) if place not in there)
        if not all(lies_apart(tensors[place].shape, tensors[place].stride()) for place in copied):
            return None
        size = sum(bytes_of(tensors[place]) for place in copied)
        if size > recording.MOST_BYTES:
            return None
        statics = [torch.empty_strided(tensors[place].shape, tensors[place].stride(), dtype=tensors[place].dtype,
                                       device=tensors[place].device) for place in copied]  # fmt: skip
        for static, place in zip(statics, copied):
            static.copy_(tensors[place].detach())
        instead = dict(zip(copied, statics))
        arguments: list[Any] = []
        number = 0
        for one in given:
            if isinstance(one, torch.Tensor):
                arguments.append(instead.get(number, one))
                number += 1
            else:
                arguments.append(one)
        call = Arguments(arguments, copied, statics, kept, tensors[0].device, turn)
        return (self.make or record)(function, call, size)


__all__ = ["RecordedRun"]
