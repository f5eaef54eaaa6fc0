"""From a Program to Python with calls of C: runs of Operators that C can do become regions, the rest is Python.

    while_loop(...) { ... }      ->      t = R5(v9, v2)      one C function, loops and branches inside

``regions`` says where they begin and end, and how they are called.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from runtime.ir import ArrayType, Block, Operand, Operator, Program, TensorType, Variable
from runtime.ir.flow import Kind
from runtime.ir.operator import leaves
from runtime.ir.ports import flow_of
from runtime.native import rules
from runtime.native.lowering import RULES, Lowering, Retry
from runtime.native.region import Layouts, Library, Region, finish
from runtime.native.regions import RegionEmitter
from runtime.native.stack import listed
from runtime.native.values import Assumed, Unsupported

assert rules, "the rules fill the index"

LEAST = 6
"""Operators on tensors that make a region worth its call, where there is no loop."""

_TRIES = 40


@dataclass
class NativeEmitter(RegionEmitter[Lowering]):
    """Writes what C cannot do as the interpreter does, and calls of C for the rest."""

    library: Library = field(default_factory=Library)
    compiled: list[Region] = field(default_factory=list)
    done_by_c: dict[int, str] = field(default_factory=dict)
    """Operators that C runs."""
    done_for_c: dict[int, str] = field(default_factory=dict)
    """Operators that Python runs when C asks for it."""
    frozen: frozenset[Variable] = frozenset()
    """Parameters that nothing ever changes."""
    stacks: frozenset[Variable] = frozenset()
    """Lists that only backward halves read."""

    def before_python(self, ops: Sequence[Operator]) -> None:
        """What may be a stack becomes a list before the interpreter's code reads it."""
        self._listed(var for op in ops for var in self.live.uses(op))

    def before_region_in_python(self, given: Iterable[Variable]) -> None:
        """As for what is between regions."""
        self._listed(given)

    def may_join(self, op: Operator) -> bool:
        """Whether C may do it."""
        return _may_be_c(op)

    def is_worth(self, ops: Sequence[Operator]) -> bool:
        """Whether there is a loop, or enough to do."""
        return _is_worth(ops)

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

    def lower(self, ops: list[Operator]) -> tuple[Lowering | None, int]:
        """The C of Operators, or None and how many come before the first that cannot be C."""
        low, count = self._written_in_c(ops, {})
        return (None, 0) if low is not None and self._tainted(ops) else (low, count)

    def _written_in_c(self, ops: list[Operator], layouts: Layouts) -> tuple[Lowering | None, int]:
        assumed: dict[tuple[int, int], Assumed] = {}
        made = {out for op in ops for out in op.outputs}
        outer = frozenset(var for op in ops for var in self.live.uses(op) if var not in made)
        leaving = self._leaving(ops)
        for _ in range(_TRIES):
            low = Lowering(self.live, assumed, ops=ops, outer=outer, counted=self.coverage or {},
                           layouts=layouts, leaving=leaving, frozen=self.frozen)  # fmt: skip
            low.w.early = set()
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

    def _leaving(self, ops: Sequence[Operator]) -> frozenset[Variable]:
        """Tensors that Operators read for the last time."""
        made = {out for op in ops for out in op.outputs}
        return frozenset(var for op in ops for var in self.live.dying[id(op)] if isinstance(var.type, TensorType)
                         and var not in made and var not in self.live.pinned)  # fmt: skip

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

    def call(self, low: Lowering, ops: list[Operator]) -> None:
        """Write the call of a region."""
        results = self.results(ops)
        try:
            region = finish(low, self.fresh("r"), results, self.library, ops, self.stacks)
        except Unsupported:
            self.as_python(ops)
            return
        region.again = functools.partial(self._again, ops, results)
        self.compiled.append(region)
        self.done_by_c.update(low.in_c)
        self.done_for_c.update((key, op.name) for key, op in low.called.items())
        self.write_call(region.call, [one.var for one in region.inputs], ops, results, self._leaving(ops))

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
    kind = flow_of(op).kind
    if kind is not Kind.PLAIN and (kind is Kind.FUNCTION or op.name not in RULES):
        return False
    if kind is Kind.INLINE:
        return True
    if kind is not Kind.PLAIN:
        return all(_may_be_c(inner) for block in op.blocks for inner in block.ops)
    if op.name in ("assert", "raise"):
        return True
    return op.name in RULES or op.name.startswith(("scalar.", "array.", "grad.", "aten."))


def _is_worth(ops: Sequence[Operator]) -> bool:
    """Whether C gains more than the call costs."""
    return _has_loop(ops) or sum(op.name.startswith("aten.") for op in _all(ops)) >= LEAST


def _has_loop(ops: Sequence[Operator]) -> bool:
    return any(flow_of(op).kind is Kind.LOOP for op in _all(ops))


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
