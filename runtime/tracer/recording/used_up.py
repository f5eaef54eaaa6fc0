"""Graphs that a gradient has used up: what Operators kept for it is gone, unless it retained them.

A second gradient through one is an error in eager. It is an error of the trace where it is certain, and raised in the
run where some paths ask twice (``control/joined_used_up`` says on which paths a gradient was asked for).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any

import torch

from runtime import torch_internals
from runtime.ir import Location, Operator, Variable
from runtime.ir.flow import Kind
from runtime.ir.ports import flow_of
from runtime.kinds import is_a
from runtime.tracer.memory.conditions import ALWAYS, NEVER, PathCondition, any_of, known
from runtime.tracer.memory.deferred import joined
from runtime.tracer.memory.graph import Steps, UsedUp
from runtime.tracer.memory.storage_table import TensorInfo
from runtime.tracer.recording.gradient_paths import FORMULA, Paths, reached
from runtime.tracer.recording.gradient_sources import Taken
from runtime.tracer.recording.histories import on_stand_ins
from runtime.tracer.recording.raising import raise_where, stage_raise
from runtime.tracer.recording.session import Scope, Session

Leaves = Collection[tuple[torch.Tensor, TensorInfo]]
"""Where graphs begin."""


def use(
    session: Session, roots: list[Variable], stops: Collection[Variable], paths: Paths, goals: set[Variable],
    retain_graph: bool,
) -> None:
    """A gradient of ``roots`` was asked for: what Operators kept for it is gone unless the graph is retained.

    ``stops``: where it ends; ``paths``: where it goes, and ``goals``: to what of it.

    Raises:
        TraceError: D2S213, an earlier one has used that up, or may have.
    """
    leading = paths.leading(goals)
    mine = paths.run(leading)
    again = NEVER
    for used in session.graph.used_up:
        when, sure = _meets(session, roots, stops, used, lambda paths: paths.run(leading))
        if when.always or not (sure or when is NEVER):
            raise _second(session, used.where)
        again |= when
    raise_where(session, again, RuntimeError(SECOND))
    loop = _innermost_loop(session)
    inside = {op for scope in loop for op in scope.block.walk()}
    if loop and not retain_graph and any(
        op.attrs.get("of", op) not in inside and op not in paths.earlier and not _keeps_nothing(session, op)
        for op in mine
    ):  # each iteration does; another attempt at the loop may find that it carries what this one knows
        loop[-1].refused = loop[-1].refused or _second(session, session.location())
    if not retain_graph:
        scopes = list(session.scope.chain())

        def on(taken: Taken) -> Steps:
            there = reached(session, roots, stops, taken, scopes=scopes)
            return _steps(there, there.run(there.leading(goals)))

        session.graph.used_up += (UsedUp(frozenset(mine), session.location(), ALWAYS, {}, on, frozenset(paths.met),
                                         _steps(paths, mine), frozenset(paths.sure)),)  # fmt: skip


def _second(session: Session, where: Location | None) -> BaseException:
    at = "" if where is None else f" in line {where.line}"
    return session.error(
        f"a gradient is asked for a second time through what the first one{at} has used up: eager raises 'Trying to "
        "backward through the graph a second time'",
        hint="Use retain_graph=True the first time.", code="D2S213")


SECOND = (
    "Trying to backward through the graph a second time (or directly access saved tensors after they have already been "
    "freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify "
    "retain_graph=True if you need to backward through the graph a second time or if you need to access saved tensors "
    "after calling backward."
)


def met_when(session: Session, tensor: torch.Tensor, leaves: Leaves) -> PathCondition:
    """When a gradient of the tensor would go through what an earlier one has used up."""
    if not session.graph.used_up or not session.info(tensor).requires_grad:
        return NEVER
    roots, stops = [session.read(tensor)], [session.read(one) for one, _ in leaves]
    return any_of(
        _meets(session, roots, stops, used, lambda paths: paths.through)[0] for used in session.graph.used_up)


def _meets(
    session: Session, roots: list[Variable], stops: Collection[Variable], used: UsedUp,
    through: Callable[[Paths], Iterable[Operator]],
) -> tuple[PathCondition, bool]:  # fmt: skip
    """When a gradient goes through what an earlier one has used up: where that was asked for, and on the paths of
    earlier branches that made one of what it used up. And whether that is so in each run that takes these paths: which
    iterations of a loop two gradients have in common is not known."""

    def met(taken: Taken) -> Paths | None:
        paths = reached(session, roots, stops, taken)
        steps = used.on(taken) if taken and used.on is not None else used.steps
        shared = {op for op, _ in steps & _steps(paths, through(paths)) if not _keeps_nothing(session, op)}
        sure.update(shared & used.sure & paths.sure)
        return paths if shared else None

    sure: set[Operator] = set()
    paths = met(used.taken)
    if paths is None:
        return NEVER, True
    when = used.when
    for scope in session.scope.chain():
        for op in scope.block.ops:
            ends = session.looks.path_ends.get(op) if flow_of(op).kind is Kind.BRANCH else None
            if ends is None or op in used.taken or (paths.met | used.met).isdisjoint(op.outputs):
                continue
            on = [known(met({**used.taken, op: number}) is not None) for number in range(len(ends))]
            when &= joined(session, op, scope, list(zip(ends, on)))
    return when, bool(sure)


_KEEP_NOTHING = frozenset(f"aten.{name}" for name in (
    "add", "sub", "rsub", "neg", "sum", "mean", "expand", "t", "transpose", "permute", "reshape", "view", "unsqueeze",
    "squeeze", "select", "slice", "cat", "stack", "clone", "_to_copy", "to", "alias", "narrow", "unbind", "split",
    "chunk", "flatten", "contiguous", "add_", "sub_", "zero_", "copy_", "fill_"))  # fmt: skip


def _steps(paths: Paths, ops: Iterable[Operator]) -> Steps:
    taken = set(ops)
    return frozenset(step for step in paths.steps if step[0] in taken)


def _innermost_loop(session: Session) -> list[Scope]:
    """The Blocks that are open from the innermost loop's body on; none outside of loops."""
    scopes = list(session.scope.chain())
    loop = next((number for number, scope in enumerate(scopes) if scope.flow.kind is Kind.LOOP), None)
    return [] if loop is None else scopes[: loop + 1]


def _keeps_nothing(session: Session, op: Operator) -> bool:
    """Whether autograd keeps no tensor of an Operator for backward."""
    if op.name == FORMULA:
        return not op.attrs["keeps"]
    if op.name.rpartition(".")[0] in _KEEP_NOTHING:
        return True
    active = [var for var in op.inputs if (look := session.looks.of.get(var)) is not None and look.requires_grad]
    return bool(active) and on_stand_ins(session, op, active[0], _nothing_kept) is True


def _nothing_kept(results: list[Any], stand_ins: dict[Variable, Any]) -> bool:
    todo = [torch_internals.node_of(one) for one in results if is_a(one, torch.Tensor)]
    for node in todo:  # which grows
        if node is not None:
            if torch_internals.saved_by(node):
                return False
            todo += [one for one, _ in node.next_functions]
    return True


def returned(
    session: Session, tensor: torch.Tensor, value: Variable, when: PathCondition, leaves: Leaves
) -> Variable:
    """``value``, as which a tensor leaves the function, without its graph where that was used up: ``when``.

    Where what was used up leads to leaves of the function's own only, it has its graph, and who asks for the gradient
    of all leaves gets eager's error.
    """
    roots, stops = [session.read(tensor)], [session.read(one) for one, _ in leaves]
    theirs = {session.read(one) for one, info in leaves if info.storage.origin is not None}
    hidden = all(
        _meets(session, roots, stops, used, lambda paths: paths.run(paths.leading(theirs)))[0].never
        for used in session.graph.used_up)  # fmt: skip

    def without() -> Variable:
        return _with_trap(session, tensor) if hidden else _without_graph(session, tensor, leaves)

    if when.always:
        return without()
    flag = when.operand(session)
    with session.open("cond") as gone:
        gone.block.yields = [without()]
    with session.open("cond") as there:
        there.block.yields = [value]
    type_ = session.type_of(session.fake(tensor))
    return session.emit("cond", [flag], types=[type_], blocks=[gone.block, there.block])[0]


def _with_trap(session: Session, tensor: torch.Tensor) -> Variable:
    """A tensor with its graph, and with a leaf more, to which no gradient can be asked for alone: on the way there is
    eager's error."""
    session.inputs.require_decided()
    value, type_ = session.read(tensor), session.type_of(session.fake(tensor))
    (held,) = session.emit("aten.detach.default", [value], types=[type_])
    (leaf,) = session.emit("grad.leaf", [held], types=[type_])

    def emit(operands: list[Variable], raises: bool) -> Variable:
        with session.open("custom_grad") as forward:
            forward.block.args = [session.new_variable(type_) for _ in operands]
            forward.block.yields = list(forward.block.args[:1])
        with session.open("custom_grad") as back:
            (gradient,) = back.block.args = [session.new_variable(type_)]
            if raises:
                stage_raise(session, RuntimeError(SECOND))
            back.block.yields = [gradient] * len(operands)
        return session.emit("custom_grad", operands, types=[type_], blocks=[forward.block, back.block],
                            attrs={"n_outputs": 1})[0]  # fmt: skip

    return emit([value, emit([leaf], True)], False)


def _without_graph(session: Session, tensor: torch.Tensor, leaves: Leaves) -> Variable:
    """A tensor that leaves the function after its graph was used up: what it holds, and an error for who asks for its
    gradient."""
    session.inputs.require_decided()
    value, type_ = session.read(tensor), session.type_of(session.fake(tensor))
    (held,) = session.emit("aten.detach.default", [value], types=[type_])
    origins = [info.storage.origin for _, info in leaves if info.storage.origin is not None]
    met = reached(session, [value], set(origins)).met
    origins = [one for one in dict.fromkeys(origins) if one in met] or origins[:1]
    if not origins:  # there must be a way back
        origins = [*session.emit("grad.leaf", [held], types=[type_])]
    operands = [held, *origins]
    types = [one.type for one in operands]
    with session.open("custom_grad") as forward:
        forward.block.args = [session.new_variable(one) for one in types]
        forward.block.yields = list(forward.block.args)  # what leads back is kept for backward
    with session.open("custom_grad") as back:
        *kept, _ = back.block.args = [session.new_variable(one) for one in (*types[1:], type_)]
        stage_raise(session, RuntimeError(SECOND))
        zeros = [session.emit("aten.zeros_like.default", [one], types=[one.type])[0] for one in kept]
        back.block.yields = [None, *zeros]
    return session.emit("custom_grad", operands, types=[type_], blocks=[forward.block, back.block],
                        attrs={"n_outputs": 1})[0]  # fmt: skip


__all__ = ["SECOND", "met_when", "returned", "use"]
