"""A loop as one launch: the device itself goes on until the test no longer holds.

    (c1, c2, ) = C5(g7, v1, v2)      the first calls: g7(v1, v2), a loop of Python's; then one launch, and one read

What the loop carries lies in fixed memory, numbers too (``form``). One recording puts the first values there,
another is a WHILE node: ``step`` computes the next values, copies them there, and says whether to go on. Then all
numbers are read at once. A launch ends after ``form.MOST_ITERATIONS``, so that the host can be interrupted;
the next one goes on from that memory.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from runtime import torch_internals
from runtime.executor.executable import Executable
from runtime.ir import Operand, Operator, Program, TensorType, Variable
from runtime.kernels import launch
from runtime.kernels.device.form import COUNTED, Form
from runtime.kernels.device.writer import DTYPES, NotOnDevice
from runtime.kernels.recording import Arguments, Function, GaveUp, NotNow, lies_apart

MOST_BYTES = 64 << 20
"""What a loop may carry: each iteration copies it."""

_TYPES = {"int": int, "float": float, "bool": bool}


@dataclass(eq=False)
class LoopRecording:
    """What was recorded of a loop. begin: puts first values into ``state``; go: launches; report: how many iterations
    there were, whether something failed, whether the loop goes on, and the numbers of ``state``."""

    loop: DeviceLoop
    call: Arguments
    begin: Callable[[], None]
    go: Callable[[], None]
    report: torch.Tensor
    state: list[torch.Tensor]
    read: list[int]
    """The places in ``state`` of tensors that are read after the loop."""
    written: tuple[torch.Tensor, ...]
    """What else the launch writes, so that nobody else has that memory."""

    def __post_init__(self) -> None:
        self.turn, self.kept = self.call.turn, self.call.kept

    def moved(self, tensors: Sequence[torch.Tensor]) -> list[int]:
        """The arguments that do not lie where the recording reads them."""
        return [place for place, where in self.kept if tensors[place].data_ptr() != where]

    def replay(self, given: Sequence[Any], tensors: Sequence[torch.Tensor]) -> tuple[Any, ...]:
        """The results for arguments. Errors raised: GaveUp."""
        if self.call.statics:
            torch_internals.copy_all(self.call.statics, [tensors[place] for place in self.call.copied])
        self.begin()
        sources = [self.state[place] for place in self.read]
        count, going, told = 0, 1, [0]
        while going:
            self.go()
            fresh = [torch.empty_strided(one.shape, one.stride(), dtype=one.dtype, device=one.device)
                     for one in sources]  # fmt: skip
            _copy(fresh, sources)
            told = self.report.tolist()
            count += told[0]
            going = told[2]
            if told[1]:
                raise GaveUp
        last = dict(zip((self.loop.form.carried[place] for place in self.read), fresh))
        kinds = self.loop.form.kinds
        places = (*self.loop.form.carried[self.loop.form.tensors :], *self.loop.form.changed)
        numbers = [_number(kind, word) for kind, word in zip(kinds, told[3:])]
        return self.loop.results_of(count, given, last, list(zip(places, numbers)))


def _number(kind: str, word: int) -> Any:
    """Python's number of its 64 bits."""
    return struct.unpack("<d", struct.pack("<q", word))[0] if kind == "float" else _TYPES[kind](word)


@dataclass(eq=False)
class DeviceLoop:
    """What records a ``while_loop``. given: where its function's arguments have the Variables that it reads; results:
    which of its outputs the function's results are, None for the flag of an owner; owned: the places of first values
    that nobody else has."""

    form: Form
    op: Operator
    compile: Callable[[Program], Executable]
    given: Mapping[Variable, int]
    results: Sequence[int | None]
    owned: frozenset[int]

    @functools.cached_property
    def programs(self) -> tuple[Executable, Executable]:
        """The loop's two Programs, made runnable."""
        return self.compile(self.form.first), self.compile(self.form.step)

    def start(self, place: int, given: Sequence[Any]) -> Any:
        """The first value of what is carried."""
        return self.of(self.op.args[place], given)

    def of(self, operand: Operand, given: Sequence[Any]) -> Any:
        """What an operand is among a call's arguments."""
        if isinstance(operand, Variable):
            return given[self.given[operand]]
        return operand if type(operand) in (bool, int, float) else None

    def results_of(self, count: int, given: Sequence[Any], last: Mapping[int, torch.Tensor],
                   told: Sequence[tuple[int, Any]]) -> tuple[Any, ...]:  # fmt: skip
        """What the function gives, from what the device left, and told of numbers and of what is as it was."""
        ends = len(told) - len(self.form.changed)
        numbers = dict(told[:ends])
        first = {place for place, changed in told[ends:] if not changed} | self.form.kept
        found: dict[Any, Any] = {}
        made: list[Any] = []
        for place in self.results:
            if place is None:
                made.append(False)
            elif count == 0 or place in first:
                made.append(self.start(place, given))
            elif place in numbers:
                made.append(numbers[place])
            else:
                made.append(found.setdefault(self.form.yields.get(place, place), last[place]))
        return tuple(made)

    def __call__(self, function: Function, call: Arguments, size: int) -> LoopRecording | None:
        """Record it. Errors raised: NotNow, NotOnDevice, and whatever CUDA raises."""
        form = self.form
        starts = [self.start(place, call.given) for place in form.carried]
        self._check()
        captured = [self.of(var, call.given) for var in form.captured]
        if any(type(one) is int and abs(one) >= COUNTED for one in (*captured, *starts)):
            return None
        given = [one for one in (*captured, *starts) if isinstance(one, torch.Tensor)]
        if form.selects and not all(one.is_contiguous() for one in given):
            raise NotOnDevice("rows of what is not contiguous: views have strides of their own")
        state = [self._memory(place, start, call.device) for place, start in zip(form.carried, starts)]
        state += [_zero(torch.bool, call.device) for _ in form.changed]
        starts += [False] * len(form.changed)
        if size + sum(one.numel() * one.element_size() for one in state) > MOST_BYTES:
            return None
        count, failed, going = (_zero(dtype, call.device) for dtype in (torch.int64, torch.bool, torch.bool))
        report = torch.zeros(3 + len(form.kinds), dtype=torch.int64, device=call.device)
        first, step = self.programs
        firsts = [(own, start) for own, start in zip(state, starts) if isinstance(start, torch.Tensor)]
        constants = [(own, start) for own, start in zip(state, starts) if not isinstance(start, torch.Tensor)]

        def begin() -> tuple[()]:
            _copy([own for own, _ in firsts], [start for _, start in firsts])
            for own, start in constants:
                own.fill_(0 if start is None else start)
            return ()

        def test() -> launch.Carried:
            flag, *found = first.run([*captured, *state], [])
            count.zero_()
            return _apart(flag, memory), [going, failed][: len(found)], [_apart(one, memory) for one in found]

        def once() -> launch.Carried:
            found = [_apart(one, memory) for one in step.run([*captured, *state, count], [])]
            for place, dim in reversed(list(form.rows.items())):
                index, row = found[-2:]
                del found[-2:]
                state[form.carried.index(place)].index_copy_(dim, index, row)
            flag = found.pop(len(whole) + 1)
            return flag, [*whole, count, going, failed][: len(found)], found

        def end() -> None:
            numbers = state[form.tensors :]
            words = [one.view(torch.int64) if one.dtype is torch.float64 else one for one in (count, failed, going,
                                                                                             *numbers)]  # fmt: skip
            report.copy_(torch.stack([one.to(torch.int64) for one in words]))

        memory = {one.untyped_storage()._cdata for one in (*state, count)}
        rows = {form.carried.index(place) for place in form.rows}
        whole = [own for number, own in enumerate(state) if number not in rows]
        begin()
        if not bool(test()[0]):
            raise NotNow
        self._hold(whole, step.run([*captured, *state, count], []))
        plays, _ = launch.machine.record(begin, [], call.device)
        goes = launch.machine.record_loop(test, once, end, call.device)
        alive = {place for place in self.results if place is not None}
        read = [place for place in range(form.tensors) if form.carried[place] in alive]
        return LoopRecording(self, call, plays, goes, report, state, read, (count, failed, going))

    def _check(self) -> None:
        """Errors raised: NotOnDevice where somebody could see that results are memory of their own."""
        seen: dict[Any, Any] = {}
        alive = {place for place in self.results if place is not None}
        for place in self.form.carried:
            if place not in alive or place not in self.form.sources:
                continue
            for kind, what, *_ in self.form.sources[place]:
                if kind == "carried" and what == place and (place in self.owned or place in self.form.changed):
                    continue
                if kind != "made":
                    raise NotOnDevice("a result that may be what the loop was given, or a part of something")
                if seen.setdefault(what, self.form.yields.get(place)) is not self.form.yields.get(place):
                    raise NotOnDevice("results that may be one tensor")

    def _memory(self, place: int, start: Any, device: torch.device) -> torch.Tensor:
        """Memory for what is carried."""
        of = self.op.blocks[0].args[place].type
        if not isinstance(of, TensorType):
            kind = of.kind  # type: ignore[union-attr]
            if start is not None and type(start) is not _TYPES[kind]:
                raise NotOnDevice(f"a number that is no {kind}")
            return _zero(DTYPES[kind], device)
        if start is None:
            if of.shape is None or of.dtype is None or not all(isinstance(size, int) for size in of.shape):
                raise NotOnDevice("it begins without a value whose sizes are known")
            return torch.zeros([int(size) for size in of.shape], dtype=of.dtype, device=device)
        if not isinstance(start, torch.Tensor) or not lies_apart(start.shape, start.stride()):
            raise NotOnDevice("it begins with a tensor whose elements share memory")
        return torch.empty_strided(start.shape, start.stride(), dtype=start.dtype, device=start.device)

    def _hold(self, state: Sequence[torch.Tensor], found: Sequence[torch.Tensor]) -> None:
        """Errors raised: NotOnDevice if an iteration gives what is not like what it was given."""
        for one, new in zip(state, found):
            if type(new) is not torch.Tensor or new.requires_grad or new.is_conj() or new.is_neg():
                raise NotOnDevice("it carries more than numbers")
            if (one.shape, one.dtype, one.device) != (new.shape, new.dtype, new.device) or one.stride() != new.stride():
                raise NotOnDevice("sizes or strides change from iteration to iteration")


def _zero(dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    return torch.zeros((), dtype=dtype, device=device)


def _apart(one: torch.Tensor, memory: set[int]) -> torch.Tensor:
    """A tensor, or a copy where it is memory that is written next."""
    return one.clone() if one.untyped_storage()._cdata in memory else one


def _copy(to: Sequence[torch.Tensor], given: Sequence[torch.Tensor]) -> None:
    """Write tensors into others, those of one type in one launch."""
    kinds: dict[torch.dtype, tuple[list[torch.Tensor], list[torch.Tensor]]] = {}
    for one, other in zip(to, given):
        pair = kinds.setdefault(one.dtype, ([], []))
        pair[0].append(one)
        pair[1].append(other)
    for pair in kinds.values():
        torch_internals.copy_all(*pair)


__all__ = ["DeviceLoop", "LoopRecording"]
