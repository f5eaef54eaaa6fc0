"""From a Program to Python with calls of kernels: runs of Operators that kernels can do become regions.

    %a = add(%x, %y); %b = gelu(%a)      ->      t = R5(v1, v2)      one kernel

Longer runs, of which kernels and operators of PyTorch's are parts, are functions that are recorded (``recorded``).
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from runtime.executor.executable import Executable
from runtime.executor.ownership import Owner
from runtime.ir import Operator, Program, Variable
from runtime.kernels import launch, rules, runs
from runtime.kernels.device.form import FORMS, Form
from runtime.kernels.device.loops import DeviceLoop
from runtime.kernels.device.writer import NotOnDevice
from runtime.kernels.lowering import RULES, KernelLowering
from runtime.kernels.recorded import RecordedRun
from runtime.kernels.region import KernelRegion, Placed, finish, is_strict
from runtime.native.regions import RegionEmitter
from runtime.native.values import Unsupported
from runtime.ops import aten

assert rules, "the rules fill the index"

GAIN = 1
"""Launches that a region must save."""
RECORDS = "DY2STATIC_CUDA_GRAPHS"
"""The environment variable that is "off" where no runs are to be recorded."""
LOOPS = "DY2STATIC_CUDA_LOOPS"
"""The environment variable that is "off" where the host is to run all loops."""


@dataclass
class KernelEmitter(RegionEmitter[KernelLowering]):
    """Writes what kernels cannot do as the interpreter does, and calls of regions for the rest."""

    compiled: list[KernelRegion] = field(default_factory=list)
    in_kernels: dict[int, str] = field(default_factory=dict)
    """Operators that run as kernels."""

    recorded: list[tuple[RecordedRun, int]] = field(default_factory=list)
    """Runs that are recorded, and how many Operators each has."""
    compile: Callable[[Program], Executable] | None = None
    """What makes Programs of a device's loops runnable."""
    loops: dict[int, RecordedRun | str] = field(default_factory=dict)
    """By the identity of a ``while_loop``: what has the device run it, or why the host does."""
    records: bool = True
    """Whether runs of it are recorded by themselves."""
    _changing: frozenset[Variable] | None = None
    _recording: bool = False

    def regions(self, ops: Sequence[Operator]) -> None:
        """Write consecutive Operators: runs that are recorded, and what is between them, each with kernels in it."""
        if not self.records or self._recording or self._python or os.environ.get(RECORDS) == "off":
            super().regions(ops)
            return
        if self._changing is None:
            self._changing = runs.changing_numbers(self.program)
        for is_run, part in runs.runs(ops, self.live, self._changing, launch.machine.kind):
            if not is_run:
                self._around_loops(part)
                continue
            run = RecordedRun()
            self.recorded.append((run, len(part)))
            self._recording = True
            outline = self.outline(part, self.bind(run, "C"))
            self._recording = False
            self.line(outline.text)
            self.drop(outline.dying)

    def _around_loops(self, ops: list[Operator]) -> None:
        """Write consecutive Operators, loops that the device can run by itself as such."""
        rest: list[Operator] = []
        for op in ops:
            form = self._form(op)
            if form is None:
                rest.append(op)
                continue
            super().regions(rest)
            rest = []
            self._loop(op, form)
        super().regions(rest)

    def _form(self, op: Operator) -> Form | None:
        """A loop as the device runs it, None where the host does."""
        make = FORMS.get(op.name)
        if make is None or id(op) in self.loops or self.compile is None or self.coverage is not None:
            return None
        if os.environ.get(LOOPS) == "off":
            return None
        try:
            unread, owned = self.live.unread[id(op)], self._owned(op)
            seen = {place for place, out in enumerate(op.outputs) if out not in unread} - owned
            return make(op, launch.machine.kind, seen)
        except NotOnDevice as why:
            self.loops[id(op)] = str(why)
            return None

    def _owned(self, op: Operator) -> frozenset[int]:
        """The places of a loop's first values that nobody else has."""
        return frozenset(place for place in range(len(op.args)) if self.own.flow.get((id(op), place)) is Owner.YES)

    def _loop(self, op: Operator, form: Form) -> None:
        """Write a loop for the device; the host's is what it falls back on."""
        assert self.compile is not None
        run = self.loops[id(op)] = RecordedRun()
        reads = self.live.uses(op)
        outline = self.outline([op], self.bind(run, "C"))
        parameters, results = self.with_flags(reads), self.with_flags(outline.results)
        outputs = {self.name(out): place for place, out in enumerate(op.outputs)}
        run.make = DeviceLoop(form, op, self.compile, {var: parameters.index(self.name(var)) for var in reads},
                              [outputs.get(name) for name in results], self._owned(op))  # fmt: skip
        self.line(outline.text)
        self.drop(outline.dying)

    def may_join(self, op: Operator) -> bool:
        """Whether there is a rule, and nothing else happens where it runs."""
        if op.name not in RULES or op.blocks or aten.CHECKED in op.attrs or op.attrs.get("settings"):
            return False
        return not any(enabled for _, enabled, _ in op.autocast or ())

    def is_worth(self, ops: Sequence[Operator]) -> bool:
        """Whether kernels could save launches."""
        return len(ops) > GAIN

    def lower(self, ops: list[Operator]) -> tuple[KernelLowering | None, int]:
        """The kernels of Operators, or None and how many come before the first that cannot be part of them."""
        low, count = self._written(ops, {})
        if low is not None and len(low.kernels) + GAIN > len(ops):
            return None, 0
        return low, count

    def _written(self, ops: list[Operator], placed: Placed) -> tuple[KernelLowering | None, int]:
        made = {out for op in ops for out in op.outputs}
        outer = frozenset(var for op in ops for var in self.live.uses(op) if var not in made)
        low = KernelLowering(self.live, ops=ops, outer=outer, placed=placed)
        for index, op in enumerate(ops):
            try:
                low.operator(op)
            except Unsupported:
                return None, index
        try:
            low.flush()
            low.close()
        except Unsupported:
            return None, 0
        return low, len(ops)

    def call(self, low: KernelLowering, ops: list[Operator]) -> None:
        """Write the call of a region."""
        results = self.results(ops)
        try:
            region = finish(low, results, is_strict(ops))
        except Unsupported:
            self.as_python(ops)
            return
        region.again = functools.partial(self._again, ops, results)
        self.compiled.append(region)
        self.in_kernels.update(low.in_c)
        self.write_call(region.call, region.variables, ops, results)

    def _again(self, ops: list[Operator], results: list[Variable], placed: Placed) -> KernelRegion | None:
        """A region once more, for arguments that lie otherwise in memory; None if kernels cannot do it then."""
        low, _ = self._written(ops, placed)
        try:
            return None if low is None else finish(low, results, is_strict(ops))
        except Unsupported:
            return None


__all__ = ["GAIN", "LOOPS", "RECORDS", "KernelEmitter"]
