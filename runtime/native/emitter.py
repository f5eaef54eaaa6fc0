"""From a Program to Python with calls of C: runs of Operators that C can do become regions, the rest is Python.

    v9 = f3(v1)                      what C does not do, and has effects: as the interpreter writes it
    t = R5(v9, v2)                   a region, loops and branches inside
    if t is None: (v7,) = g6(v9, v2)       where it gave up: the same Operators, as the interpreter writes them
    else: (v7,) = t
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from runtime.executor.emitter import Emitter
from runtime.ir import ArrayType, Block, Operand, Operator, Program, TensorType, Variable
from runtime.ir.definition import definition_of
from runtime.ir.flow import Kind
from runtime.ir.operator import leaves
from runtime.native import rules
from runtime.native.lowering import RULES, Lowering, Retry
from runtime.native.region import Layouts, Library, Region, finish
from runtime.native.stack import listed
from runtime.native.values import Assumed, Unsupported

assert rules, "the rules fill the index"

LEAST = 6
"""Operators on tensors that make a region worth its call, where there is no loop."""

_TRIES = 40


@dataclass
class NativeEmitter(Emitter):
    """Writes what C cannot do as the interpreter does, and calls of C for the rest."""

    library: Library = field(default_factory=Library)
    compiled: list[Region] = field(default_factory=list)
    done_by_c: dict[int, str] = field(default_factory=dict)
    """Operators that C runs."""
    done_for_c: dict[int, str] = field(default_factory=dict)
    """Operators that Python runs when C asks for it."""
    stacks: frozenset[Variable] = frozenset()
    """Lists that only backward halves read."""
    _python: int = 0

    def regions(self, ops: Sequence[Operator]) -> None:
        """Write consecutive Operators: regions, and what is between them."""
        if self._python:
            super().regions(ops)
            return
        between: list[Operator] = []
        for region, part in self._parts(ops):
            if region is None:
                between += part
                continue
            self._as_python(between)
            between = []
            self._call(region, part)
        self._as_python(between)

    def _as_python(self, ops: Sequence[Operator]) -> None:
        """Write Operators as the interpreter does; what may be a stack becomes a list before."""
        self._listed(var for op in ops for var in self.live.uses(op))
        super().regions(ops)

    def _listed(self, variables: Iterable[Variable]) -> None:
        given = set(self.program.block.args)
        for var in dict.fromkeys(variables):
            if isinstance(var.type, ArrayType) and var in given:
                name = self.name(var)
                self.line(f"{name} = {self.bind(listed, 'f')}({name})")

    def enter(self, block: Block) -> None:
        """As for the interpreter; a list that is given and yielded is a list from the start."""
        super().enter(block)
        if block is self.program.block:
            self._listed(leaves(block.yields))

    def _parts(self, ops: Sequence[Operator]) -> Iterator[tuple[Lowering | None, list[Operator]]]:
        """Runs of Operators, each with its C, or None."""
        start = 0
        while start < len(ops):
            end = start
            while end < len(ops) and _may_be_c(ops[end]):
                end += 1
            if end == start:
                yield None, [ops[start]]
                start += 1
                continue
            run = list(ops[start:end])
            if not _is_worth(run):
                yield None, run
                start = end
                continue
            lowered, count = self._lower(run)
            if lowered is None and count and _is_worth(run[:count]):
                lowered, again = self._lower(run[:count])
                count = again if lowered is None else count
            taken = run[: max(count, 1)]
            yield lowered, taken
            start += len(taken)

    def _lower(self, ops: list[Operator]) -> tuple[Lowering | None, int]:
        """The C of Operators, or None and how many come before the first that cannot be C."""
        low, count = self._written_in_c(ops, {})
        return (None, 0) if low is not None and self._tainted(ops) else (low, count)

    def _written_in_c(self, ops: list[Operator], layouts: Layouts) -> tuple[Lowering | None, int]:
        assumed: dict[tuple[int, int], Assumed] = {}
        made = {out for op in ops for out in op.outputs}
        outer = frozenset(var for op in ops for var in self.live.uses(op) if var not in made)
        for _ in range(_TRIES):
            low = Lowering(self.live, assumed, ops=ops, outer=outer, counted=self.coverage or {},
                           layouts=layouts)  # fmt: skip
            for index, op in enumerate(ops):
                try:
                    low.operator(op)
                    if id(op) in low.called:  # outside of loops Python does it as well
                        return None, index
                except Retry:
                    break
                except Unsupported:
                    return None, index
            else:
                return low, len(ops)
        return None, 0

    def _tainted(self, ops: Sequence[Operator]) -> bool:
        """Whether a result would have a history, as what is computed of ``grad.leaf`` has where gradients are on."""
        if not any(op.name == "grad.leaf" for op in _all(ops)):
            return False
        root = self.open[-1].modes.root.grad
        tainted: set[Variable] = set()
        before = -1
        while len(tainted) != before:
            before = len(tainted)
            _spread(ops, tainted, root)
        return any(out in tainted for op in ops for out in op.outputs)

    def _call(self, low: Lowering, ops: list[Operator]) -> None:
        """Write the call of a region."""
        dead = {var for op in ops for var in (*self.live.dying[id(op)], *self.live.unread[id(op)])}
        results = [var for op in ops for var in op.outputs if var not in dead]
        try:
            region = finish(low, self.fresh("r"), results, self.library, ops, self.stacks)
        except Unsupported:
            self._as_python(ops)
            return
        region.again = functools.partial(self._again, ops, results)
        self.compiled.append(region)
        self.done_by_c.update(low.in_c)
        self.done_for_c.update((key, op.name) for key, op in low.called.items())
        given = ", ".join(self.name(one.var) for one in region.inputs)
        call = f"{self.bind(region.call, 'R')}({given})"
        self._python += 1
        outline = self.outline(ops)
        self._python -= 1
        found = self.fresh("t")
        self.line(f"{found} = {call}")
        with self.indented(f"if {found} is None:"):
            self._listed(one.var for one in region.inputs)
            self.line(outline.text)
        with self.indented("else:"):
            self.line("pass")
            names = [self.name(var) for var in results]
            if names:
                self.line(f"({''.join(name + ', ' for name in names)}) = {found}")
            for var in results:
                if self.flag(var) in self.flagged:
                    self.line(f"{self.flag(var)} = False")
        self.line(f"del {found}")
        self.drop(outline.dying)


    def _again(self, ops: list[Operator], results: list[Variable], layouts: Layouts) -> Region | None:
        """A region once more, for arguments that lie otherwise in memory; None if C cannot do it then."""
        low, _ = self._written_in_c(ops, layouts)
        try:
            return None if low is None else finish(low, "r", results, Library(), ops, self.stacks)
        except Unsupported:
            return None


def stacks_of(program: Program, kept: frozenset[int]) -> frozenset[Variable]:
    """The lists of tensors that a Program gives to backward halves and to nobody else."""
    yields = program.block.yields
    found = {one for place, one in enumerate(yields) if place in kept and isinstance(one, Variable)
             and isinstance(one.type, ArrayType) and isinstance(one.type.element, TensorType)}  # fmt: skip
    found.difference_update(leaves([one for place, one in enumerate(yields) if place not in kept]))
    for op in program.block.walk():
        found.difference_update(op.inputs)
        for block in op.blocks:
            found.difference_update(leaves(block.yields))
    return frozenset(found.difference(program.block.args))


def _may_be_c(op: Operator) -> bool:
    """Whether an Operator can be part of a region at all; what it computes shows when it is written."""
    if any(enabled for _, enabled, _ in op.autocast or ()) or op.attrs.get("settings"):
        return False
    if op.name == "update":
        return True
    if definition_of(op.name).flow.kind in (Kind.BRANCH, Kind.LOOP):
        return all(_may_be_c(inner) for block in op.blocks for inner in block.ops)
    if op.blocks:
        return False
    if op.name in ("assert", "raise"):
        return True
    return op.name in RULES or op.name.startswith(("scalar.", "array.", "grad.", "aten."))


def _is_worth(ops: Sequence[Operator]) -> bool:
    """Whether C gains more than the call costs."""
    return _has_loop(ops) or sum(op.name.startswith("aten.") for op in _all(ops)) >= LEAST


def _has_loop(ops: Sequence[Operator]) -> bool:
    return any(op.name in ("while_loop", "scan") for op in _all(ops))


def _all(ops: Sequence[Operator]) -> Iterator[Operator]:
    for op in ops:
        yield op
        for block in op.blocks:
            yield from block.walk()


def _spread(ops: Sequence[Operator], tainted: set[Variable], root: str) -> None:
    """Add what has a history because something that it is computed of has."""
    for op in ops:
        mode = root if op.grad_mode == "inherit" else op.grad_mode
        read: list[Operand] = [*op.inputs]
        for block in op.blocks:
            for args in (block.args,):
                if any(var in tainted for var in op.inputs):
                    tainted.update(args)
            _spread(block.ops, tainted, root)
            read += list(leaves(block.yields))
            if any(var in tainted for var in leaves(block.yields)):
                tainted.update(block.args)
        if op.name == "grad.leaf" or (
            op.name != "aten.detach.default" and (op.blocks or mode != "off") and any(var in tainted for var in read)
        ):
            tainted.update(op.outputs)


__all__ = ["LEAST", "NativeEmitter"]
