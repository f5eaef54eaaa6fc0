"""From a Program to its forward and backward halves.

forward:  inputs, parameters           -> results, activity flags, residuals
backward: residuals, result gradients  -> gradients of inputs and parameters
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import torch

from runtime import torch_internals
from runtime.autodiff import replay
from runtime.autodiff.activity import as_operand, is_known
from runtime.autodiff.assumed import Assumed
from runtime.autodiff.backward import Backward
from runtime.autodiff.forward import Forward, NotDifferentiable
from runtime.autodiff.memory_reads import of_memory, shown
from runtime.autodiff.overwritten import overwritten
from runtime.autodiff.residuals import reads, rebuild, substitute
from runtime.autodiff.stages import Stage, computed_from, of_one_node, passed_through
from runtime.autodiff.tape import Grad, Grads, Segment, Tape
from runtime.autodiff.view_results import ViewResult, ancestors, chains, unwritten_arguments
from runtime.ir import ArrayType, Block, Input, Operand, Operator, Program, TensorType, Variable
from runtime.ir.tree import Leaf
from runtime.passes.dead_code import does_more, remove_dead
from runtime.passes.manager import require_order
from runtime.tracer.memory.conditions import known
from runtime.tracer.recording.session import Session


@dataclass
class Derivative:
    """The halves of a Program, for one choice of which arguments need gradients."""

    forward: Program
    stages: list[Stage]
    """The autograd nodes, in the order in which they are computed; mostly one."""
    results: int
    """The first yields of ``forward`` are the Program's own."""
    flags: dict[int, int]
    """Result position -> position of the flag among the forward yields that says whether it needs a gradient."""
    differentiable: list[int]
    """Positions of the results that have a gradient."""
    views: dict[int, ViewResult] = field(default_factory=dict)
    """Those of them that are views, in the order in which they are taken."""
    same: dict[int, list[int]] = field(default_factory=dict)
    """Result of a branch or loop -> results of earlier stages which it is, on some paths."""
    unsure: frozenset[int] = frozenset()
    """Positions of the arguments whose gradient is None on some paths, or where some results have none."""
    assumed: Assumed | None = None
    """What it assumes of the sizes of arguments, if it holds for some only."""

    def programs(self) -> list[Program]:
        """All that runs without autograd: the forward half, and each stage's backward halves."""
        backward = [half for stage in self.stages for half in (stage.backward, stage.whole) if half is not None]
        return [self.forward, *backward]

    @property
    def kept(self) -> frozenset[int]:
        """Positions of the forward yields that nothing but backward halves read."""
        read = {leaf for stage in self.stages for leaf in stage.leaves}.union(self.flags.values())
        read.update(one for view in self.views.values() for one in (view.base, *view.others))
        kept = {place for stage in self.stages for place in stage.residuals}
        return frozenset(place for place in kept - read if place >= self.results)

    @property
    def backward(self) -> Program:
        """The backward half of a Program that is one node."""
        (stage,) = self.stages
        return stage.backward

    @property
    def needs(self) -> list[int]:
        """Positions of the arguments (inputs, then parameters) whose gradients ``backward`` yields, in order."""
        (stage,) = self.stages
        return stage.needs


@dataclass(eq=False)
class _Recorded:
    """A stage while it is made: its backward Block, and what the Block's arguments and yields stand for."""

    block: Block
    given: list[Variable]
    grads: list[Variable]
    needs: list[int]
    read: list[Variable]
    unsure: set[int]


def derive(
    program: Program,
    arguments: Sequence[torch.Tensor],
    needs: Sequence[bool],
    skip: Sequence[int] = (),
    casting: tuple[tuple[str, bool, str], ...] = (),
) -> Derivative:
    """Differentiate a Program.

    Args:
        program: Any Program; it is not changed.
        arguments: Tensors with the metadata of its inputs and parameters, in order.
        needs: For each argument, whether its gradient is wanted.
        skip: Results through which no gradient flows (rebuilt elsewhere).
        casting: The autocast state that backward is called under; that of the forward half is the one in force.

    Raises:
        NotDifferentiable: An Operator's gradient cannot be written as a Program (yet).
    """
    if of_memory(program):
        raise NotDifferentiable("as_strided of what a branch or loop may give")
    if shown(program, skip):
        raise NotDifferentiable("a result that may be a view on a path")
    ancestral = ancestors(program, skip)
    skip = [position for position in skip if position not in ancestral]
    with replay.replaying(f"{program.name}.forward") as (session, forward):
        args = [replay.argument(session, forward, old, real) for old, real in zip(program.block.args, arguments)]
        forward.activity.update((old, known(bool(need))) for old, need in zip(program.block.args, needs))
        forward.cuts = computed_from(program, skip)
        forward.written = frozenset(
            write.target.type for write in program.writes if isinstance(write.target.type, TensorType)
        )
        tape = forward.block(program.block)
        if forward.versions.chances.any():
            raise NotDifferentiable("a write of which only the run knows whether backward needs what it overwrote")
        if any(forward.is_active(var) for var in overwritten(program)):
            raise NotDifferentiable("a result that was written where autograd did not see it")
        if any(forward.is_active(var) for var in _held_by_exceptions(program)):
            raise NotDifferentiable("a tensor with a history that an exception holds")
        yields: list[Operand] = [
            forward.result(o) for o in program.block.yields
        ]
        results = len(yields)
        differentiable = [
            index
            for index, o in enumerate(program.block.yields)
            if index not in skip and isinstance(o, Variable) and forward.is_active(o) and forward.can_carry(o)
        ]
        root = session.scope
        backward = Backward(session, forward)
        stages: list[list[tuple[Variable, int]]] = [[] for _ in tape.stages()]
        places: dict[Variable, int] = {}
        written = {write.index for write in program.writes}
        pairs = [(index, program.block.yields[index]) for index in differentiable]
        unwritten = unwritten_arguments(program)
        viewed = chains(
            program.block, {old for index, old in pairs if index not in written}, forward.is_active, unwritten,
            {old for index, old in pairs if index in ancestral})
        views: dict[int, ViewResult] = {}
        through = passed_through(program, {old for _, old in pairs}) if tape.cuts else {}
        passed = {var for found in through.values() for var in found}

        def place(old: Variable, value: Callable[[Operand], Operand]) -> int:
            """Where the forward half yields a value: a result, or one that it yields besides."""
            if old not in places:
                places[old] = len(yields)
                if old not in unwritten:
                    stages[forward.stage.get(old, 0)].append((old, len(yields)))
                yields.append(value(old))
            return places[old]

        for index, old in pairs:
            if old not in viewed:
                stages[forward.stage.get(old, 0)].append((old, index))
            places.setdefault(old, index)
        for old in sorted(viewed, key=[out for op in program.block.ops for out in op.outputs].index):
            chain = viewed[old]
            base = place(chain.base, forward.result)
            others = list(range(len(yields), len(yields) + len(chain.others())))
            yields += [session.operand(forward.plain(other)) for other in chain.others()]
            made_view = ViewResult(chain.program(program.name), base, others, forward.stage.get(chain.base, 0))
            for index in (index for index, one in pairs if one is old):
                views[index] = made_view
                if old not in passed:
                    yields[index] = None
        halves: list[_Recorded] = []
        wholes: list[_Recorded | None] = []
        for number, entries in reversed(list(enumerate(tape.stages()))):
            wanted = [index for index, need in enumerate(needs) if need]
            with torch_internals.casting_as(casting):
                given = [old for old, _ in stages[number]]
                half = _stage(session, backward, program, entries, number, given, wanted, casting)
                if half.read or any(grad is not None for grad in half.block.yields[: len(wanted)]):
                    _narrow(half)  # else what it gives needs a gradient, of leaves that are made inside
                whole = None
                if len(given) > 1 and _is_straight(forward, entries, given):
                    whole = _stage(session, backward, program, entries, number, given, half.needs, casting, half)
                    if set(whole.read) != set(half.read):  # where all gradients are there, it raises on the way
                        whole = None
            halves.insert(0, half)
            wholes.insert(0, whole)
            for old in half.read:
                place(old, forward.result)  # two that are one value here may be two objects, each with its gradient
        flags: dict[int, int] = {}
        for old, index in (pair for stage in stages for pair in stage):
            active = forward.activity[old]
            if not is_known(active):
                flags[index] = len(yields)
                yields.append(as_operand(session, active))
    if session.inputs.live:
        raise NotDifferentiable("a formula that reads a tensor from outside")
    block = root.block
    block.args = args
    made: list[Stage] = []
    for half, whole, outputs, (_, start) in zip(halves, wholes, stages, [(0, 0), *tape.cuts]):
        residuals: list[Variable] = []
        recorded = [one for one in (half, whole) if one is not None]
        for one in recorded:
            remove_dead(one.block, one.block.yields, does_more)
            captured = [var for var in one.block.captures() if var in root.names]
            found = rebuild(block, one.block, captured, backward.rebuilds(), session.new_name)
            residuals += [var for var in found if var not in residuals]
        kept = list(range(len(yields), len(yields) + len(residuals)))
        yields += residuals
        for one in recorded:
            one.block.args = [*residuals, *one.grads]
            _take_lists(session, one.block, residuals)
        programs = [_half(f"{program.name}.backward", one.block, None) for one in recorded]
        made.append(Stage(
            programs[0], [index for _, index in outputs], half.needs, [places[old] for old in half.read], kept, start,
            half.given, half.read, of_one_node(program, half.given), programs[1] if whole is not None else None,
        ))  # fmt: skip
    block.yields = yields
    remove_dead(block, block.yields)
    same = {
        index: [places[var] for var in through if var in places]
        for old, through in (passed_through(program, set(places)) if len(made) > 1 else {}).items()
        for _, index in (pair for outputs in stages for pair in outputs if pair[0] is old)
    }
    limited = replay.assumed(session, forward, program, args, arguments)
    first = _half(f"{program.name}.forward", block, program)
    unsure = frozenset(index for half in halves for index in half.unsure)
    derivative = Derivative(first, made, results, flags, differentiable, views, same, unsure, limited)
    for made_program in derivative.programs():
        require_order(made_program)
    return derivative


def _stage(
    session: Session, backward: Backward, program: Program, tape: Tape, number: int, given: list[Variable],
    wanted: list[int], casting: tuple[tuple[str, bool, str], ...], like: _Recorded | None = None,
) -> _Recorded:
    """Record one stage's backward Block: from gradients of what it gives to those of arguments and earlier values.

    ``like``: the stage as it is recorded for gradients that may be None. It is then recorded for gradients that all
    are there, and yields the same, or reads other values where eager raises an exception on the way.
    """
    forward = backward.forward
    own = set(program.block.args)
    with session.open("backward") as scope:
        session.autocast, before = casting, session.autocast
        scope.forward = scope.parent
        grads: Grads = {}
        grad_args: list[Variable] = []
        for old in given:
            arg = session.new_variable(backward.type_like(old))
            grad_args.append(arg)
            backward.add(grads, old, backward.grad_of(old, arg, len(given) > 1 and like is None))
        backward.block(tape, grads)
        read = [old for old in grads if old not in own and forward.stage.get(old, number) < number]
        if like is not None and set(read) == set(like.read):
            read = like.read
        unsure: set[int] = set()
        for index in wanted:
            grad = grads.get(program.block.args[index])
            scope.block.yields.append(None if grad is None else backward.read(grad))
            if isinstance(grad, Grad) and grad.maybe:
                unsure.add(index)
        scope.block.yields.extend(backward.read(grads[old]) for old in read)
        session.autocast = before
    return _Recorded(scope.block, given, grad_args, wanted, read, unsure)


def _held_by_exceptions(program: Program) -> Iterator[Variable]:
    """The tensors that exceptions carry out of the Program: a node that raises gives nothing a history."""
    makers = {out: op for op in program.block.walk() for out in op.outputs}
    for op in program.block.walk():
        for var in op.inputs if op.name == "raise" else ():
            if isinstance(var.type, TensorType):
                maker = makers.get(var)
                yield maker.inputs[0] if maker is not None and maker.name == "grad.named" else var


def _is_straight(forward: Forward, tape: Tape, given: list[Variable]) -> bool:
    """Whether a stage has neither branches nor loops nor lists: it can be walked back twice."""
    return all(isinstance(entry, Segment) for entry in tape.entries) and all(
        isinstance(forward.env[old], torch.Tensor) for old in given
    )


def _narrow(half: _Recorded) -> None:
    """Leave out the arguments that a stage has no gradient for: autograd would ask it for them."""
    count = len(half.needs)
    found = [(need, grad) for need, grad in zip(half.needs, half.block.yields) if grad is not None]
    half.needs = [need for need, _ in found]
    half.block.yields[:count] = [grad for _, grad in found]


def _take_lists(session: Session, block: Block, residuals: list[Variable]) -> None:
    """Stacks of residuals belong to the backward half: they shrink while it goes."""
    mapping: dict[Variable, Variable] = {}
    takes: list[Operator] = []
    for var in residuals:
        if isinstance(var.type, ArrayType):
            taken = session.new_variable(var.type, "")
            takes.append(Operator("grad.take", (var,), {}, (taken,)))
            mapping[var] = taken
    substitute(block, mapping)
    taken_ones = set(mapping.values())
    first = (index for index, op in enumerate(block.ops) if not taken_ones.isdisjoint(reads(op)))
    place = next(first, 0)
    block.ops[place:place] = takes


def _half(name: str, block: Block, whole: Program | None) -> Program:
    half = Program(name, block, [Input(arg, arg.name) for arg in block.args])
    if whole is not None:
        half.assumes = list(whole.assumes)
    half.output = tuple(Leaf(index) for index in range(len(block.yields)))
    return half


__all__ = ["Derivative", "derive"]
